"""Rows of a method board: entries whose recipe is known, a run per seed."""

import json
from collections.abc import Iterable, Mapping, Sequence
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
    """A network of an entry: its name, its backbone, its outcomes by column."""

    entry: str
    facts: BackboneFacts
    outcomes: Mapping[str, Outcomes]

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
    """The runs of an entry, sorted by seed; the name is unique on the board.

    own_controls: controls that the entry takes along.
    """

    name: str
    entry: str
    runs: tuple[MethodRun, ...]
    own_controls: "tuple[SeedGroup, ...]" = ()

    @property
    def training(self) -> Training | None:
        """The training of the first seed; the others differ in seed and cost only."""
        return self.runs[0].training

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


def group_rows(
    rows: Mapping[str, Sequence[MethodRun]], own_controls: Mapping[str, Sequence[MethodRun]]
) -> tuple[tuple[SeedGroup, ...], dict[str, str]]:
    """Return the rows, and the reason for every entry whose training is unknown.

    rows: entry -> its runs; own_controls: entry -> the controls that it takes along.
    """
    left_out: dict[str, str] = {}
    groups = []
    for entry, runs in rows.items():
        first = runs[0]
        if first.training is None and first.facts.random_init is None:
            left_out[entry] = NO_RECIPE if first.facts.source == "run" else NO_RUN
        else:
            controls = group_controls(entry, own_controls.get(entry, ()))
            groups.append(SeedGroup("", entry, tuple(runs), controls))
    twins: dict[str, list[SeedGroup]] = {}
    for group in groups:
        twins.setdefault(group.method, []).append(group)
    return tuple(replace(g, name=make_name(g, twins[g.method])) for g in groups), left_out


def group_controls(entry: str, runs: Iterable[MethodRun]) -> tuple[SeedGroup, ...]:
    """Return the controls that an entry takes along, one group per recipe."""
    parts: dict[str, list[MethodRun]] = {}
    for run in runs:
        parts.setdefault(run.row, []).append(run)
    return tuple(SeedGroup(f"control of {entry}", entry, tuple(p)) for p in parts.values())


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
            shown.append(group.entry if same_recipe else group.runs[0].row[-6:])
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
