"""Rows of a method board: one owner's runs of the same methods under one recipe, a run per seed."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.schema import BackboneFacts, Training
from fsbench.core.specs import digest
from leaderboard.ranking.tiers import Outcomes

RANDOM = "random init"
SHAPE = ("feature_dim", "features", "input_size", "mean", "std", "n_parameters")
"""Facts, beside the architecture, that a network shares with its random initialization."""
TELLING = ("schedule", "plan.rounds", "plan.epochs", "batch_size", "optimizer", "lr", "source")
PRIORITY = {name: i for i, name in enumerate(TELLING)}
"""Fields of a recipe that are preferred for distinguishing rows of one method."""
NO_RUN = "not pretrained by fsbench: its training is unknown"
NO_RECIPE = "its results have no recipe and cost: evaluate it again with --overwrite"


@dataclass(frozen=True, eq=False)
class MethodRun:
    """An entry: its backbone, its outcomes by column, and whose it is."""

    entry: str
    facts: BackboneFacts
    outcomes: Mapping[str, Outcomes]
    owner: str = ""

    @property
    def training(self) -> Training | None:
        """None if the weights are random, or if their training is unknown."""
        return None if self.facts.random_init is not None else self.facts.training

    @property
    def seed(self) -> int:
        return self.training.view.seed if self.training else self.facts.random_init or 0

    @property
    def shape(self) -> str:
        """Digest of what a network shares with its random initialization."""
        # without the width, which is not always stated
        name = self.facts.architecture.partition("@")[0]
        facts = self.facts.model_dump(mode="json", include=set(SHAPE))
        return digest({"name": name, **facts})

    @property
    def row(self) -> str:
        """Key of the row, equal for all its seeds."""
        return self.training.composition if self.training else f"{RANDOM} {self.shape}"


@dataclass(frozen=True, eq=False)
class SeedGroup:
    """The runs of a row, sorted by seed; the name is unique on the board."""

    name: str
    runs: tuple[MethodRun, ...]

    @property
    def training(self) -> Training | None:
        """The training of the first seed; the others differ in seed and cost only."""
        return self.runs[0].training

    @property
    def owner(self) -> str:
        return self.runs[0].owner

    @property
    def method(self) -> str:
        return "+".join(self.training.methods) if self.training else RANDOM

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    @property
    def columns(self) -> set[str]:
        """Columns that every seed has."""
        return set.intersection(*(set(run.outcomes) for run in self.runs))

    def of(self, seeds: Iterable[int]) -> tuple[MethodRun, ...]:
        return tuple(run for run in self.runs if run.seed in set(seeds))

    @cached_property
    def fields(self) -> dict[str, str]:
        """Fields that may distinguish the row from others of its method, by dotted name."""
        if self.training is None:
            return {"architecture": self.runs[0].facts.architecture}
        recipe = {k: v for k, v in self.training.recipe.items() if k not in ("name", "seed")}
        return flatten_fields(recipe)


def flatten_fields(value: Any, prefix: str = "") -> dict[str, str]:
    """Flatten JSON to dotted name -> text; settings of a method are prefixed by its name."""
    items = value if isinstance(value, list) else []
    if items and all(isinstance(item, dict) and "name" in item for item in items):
        value = {str(item["name"]): item for item in items}
    if not isinstance(value, dict):
        return {prefix: value if isinstance(value, str) else json.dumps(value)}
    fields: dict[str, str] = {}
    for key, item in value.items():
        fields |= flatten_fields(item, key if prefix in ("", "methods") else f"{prefix}.{key}")
    return fields


def group_runs(
    runs: Iterable[MethodRun], trusted: Collection[str] = ()
) -> tuple[tuple[SeedGroup, ...], dict[str, str]]:
    """Return the rows, and the reason for every entry that is in no row.

    The runs of a row have one recipe and one owner, so that nobody lowers another's row by a bad
    seed. A recipe and seed give one network. Entries that claim both with other weights contradict
    each other, so that none of them counts, unless one of them alone is trusted.
    """
    claims: dict[tuple[str, int], list[MethodRun]] = {}
    left_out: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: (-len(run.outcomes), run.entry)):
        if run.training is None and run.facts.random_init is None:
            left_out[run.entry] = NO_RECIPE if run.facts.source == "run" else NO_RUN
        else:
            claims.setdefault((run.row, run.seed), []).append(run)
    rows: dict[tuple[str, str], dict[int, MethodRun]] = {}
    for (row, seed), claimed in claims.items():
        genuine = [run for run in claimed if run.entry in trusted] or claimed
        agreed = len({run.facts.weights_hash for run in genuine}) == 1
        chosen = genuine[0] if agreed else None
        if chosen:
            rows.setdefault((row, chosen.owner), {})[seed] = chosen
        left_out |= {r.entry: explain_claim(r, chosen, claimed) for r in claimed if r is not chosen}
    groups = [SeedGroup("", tuple(r[seed] for seed in sorted(r))) for r in rows.values()]
    twins: dict[str, list[SeedGroup]] = {}
    for group in groups:
        twins.setdefault(group.method, []).append(group)
    return tuple(replace(g, name=make_name(g, twins[g.method])) for g in groups), left_out


def group_seeds(
    runs: Iterable[MethodRun], columns: Iterable[str], trusted: Collection[str] = ()
) -> dict[str, tuple[MethodRun, ...]]:
    """Return the rows of a tier table that have two or more seeds, by name.

    The runs of a row have one recipe and owner, the same features and the same episodes. All others
    are rows of their own, also networks without a recipe and two runs that claim one seed with
    other weights.
    """
    runs, columns = tuple(runs), tuple(columns)
    parts: dict[tuple[object, ...], list[MethodRun]] = {}
    for run in runs:
        if run.training is None:
            continue
        features = (run.facts.features, run.facts.feature_spec)
        episodes = ((run.outcomes[c].draws, run.outcomes[c].numbering) for c in columns)
        parts.setdefault((run.owner, features, *episodes), []).append(run)
    taken = {run.entry.casefold() for run in runs}
    rows: dict[str, tuple[MethodRun, ...]] = {}
    for part in parts.values():
        for group in group_runs(part, trusted)[0]:
            if len(group.runs) > 1:
                name = name_row([run.entry for run in group.runs], taken)
                taken.add(name.casefold())
                rows[name] = group.runs
    return rows


def name_row(entries: Sequence[str], taken: Collection[str]) -> str:
    """Return what the names of seeds have in common, e.g. swr of swr-s0 and swr-s1.

    Where that is little or taken, return e.g. `first (+2)`, which no entry can be called.
    """
    shortest, letters = min(map(len, entries)), zip(*entries, strict=False)
    equal = next((i for i, letter in enumerate(letters) if len(set(letter)) > 1), shortest)
    common = re.sub(r"[-_.]+((s|seed)[-_.]?\d*)?$", "", entries[0][:equal])
    if not common or 2 * equal < shortest or common.casefold() in taken:
        return f"{entries[0]} (+{len(entries) - 1})"
    return common


def explain_claim(run: MethodRun, chosen: MethodRun | None, claimed: Sequence[MethodRun]) -> str:
    """Return why a run does not count among those that claim its recipe and seed."""
    weights = run.facts.weights_hash
    if chosen and chosen.facts.weights_hash == weights:
        return f"a run of the same recipe and seed as {chosen.entry}"
    rival = chosen or next(other for other in claimed if other.facts.weights_hash != weights)
    decided = "which has a signed badge" if chosen else "and no signed badge says whose are right"
    return f"the recipe and seed of {rival.entry} with other weights, {decided}"


def make_name(group: SeedGroup, twins: Sequence[SeedGroup]) -> str:
    """Return e.g. `swr (lam=0.1)`: the fewest fields that distinguish a row from its twins."""
    names = {name for twin in twins for name in twin.fields if not name.endswith(".code")}
    preferred = {name for name in names if name.partition(".")[0] in group.method.split("+")}
    rivals, shown = [twin for twin in twins if twin is not group], []
    while rivals:
        apart = {n: [r for r in rivals if r.fields.get(n) != group.fields.get(n)] for n in names}
        best = min(
            names, key=lambda n: (-len(apart[n]), n not in preferred, PRIORITY.get(n, 99), n)
        )
        if not apart[best]:  # only the source images differ, or the owner
            same_recipe = any(rival.runs[0].row == group.runs[0].row for rival in rivals)
            shown.append(group.runs[0].entry if same_recipe else group.runs[0].row[-6:])
            break
        shown.append(f"{best}={group.fields.get(best, 'none')}"[:60])
        rivals = [rival for rival in rivals if rival not in apart[best]]
    custom = group.training.custom_code if group.training else {}
    shown = [*(f"custom code {sha[:8]}" for sha in custom.values()), *shown]
    return group.method + (f" ({', '.join(shown)})" if shown else "")


def align_outcomes(runs: Sequence[MethodRun], column: str) -> list[NDArray[np.float64]]:
    """Return the outcomes (n,) of each run on the episodes or test images that all have."""
    outcomes = [run.outcomes[column] for run in runs]
    first = outcomes[0].index
    if all(o.index is first or np.array_equal(o.index, first) for o in outcomes):
        return [o.values for o in outcomes]
    index = reduce(np.intersect1d, (o.index for o in outcomes))
    return [o.values[np.isin(o.index, index)] for o in outcomes]
