"""Rows of a method board: entries whose recipe is known, a run per seed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from fsbench.core.io import flatten_mapping
from fsbench.core.schema import BackboneFacts, Training
from fsbench.core.specs import digest
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.seeds import Columns
from leaderboard.store import seed_of

RANDOM = "random init"
SHAPE = ("feature_dim", "features", "input_size", "mean", "std", "n_parameters")
"""Facts, beside the architecture, that a network shares with its random initialization."""
TELLING = ("schedule", "plan.rounds", "plan.epochs", "batch_size", "optimizer", "lr", "source")
PRIORITY = {name: i for i, name in enumerate(TELLING)}
"""Fields of a recipe that are preferred for distinguishing rows of one method."""
NO_RUN = "not pretrained by fsbench: its training is unknown"
NO_RECIPE = "its results have no recipe and cost, which a new evaluation would record"


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
    def shape(self) -> str:
        """Digest of what a network shares with its random initialization."""
        # without the width, which is not always stated
        name = self.facts.architecture.partition("@")[0]
        return digest({"name": name, **self.facts.model_dump(mode="json", include=set(SHAPE))})

    @property
    def row(self) -> str:
        """Key of the row, equal for all its seeds."""
        return self.training.composition if self.training else f"{RANDOM} {self.shape}"


@dataclass(frozen=True, eq=False)
class SeedGroup:
    """The runs of an entry, a seed each; the name is unique on the board.

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
        return tuple(seed_of(run.facts) for run in self.runs)

    def has_columns(self, columns: Iterable[str]) -> bool:
        """Return whether every seed has these columns."""
        return all(column in run.outcomes for column in columns for run in self.runs)

    def select(self, seeds: Sequence[int]) -> "SeedGroup":
        """Return the group with these seeds, in their order."""
        runs = (run for run in self.runs if seed_of(run.facts) in seeds)
        return replace(self, runs=tuple(sorted(runs, key=lambda run: seed_of(run.facts))))

    @cached_property
    def serves(self) -> str:
        """What the rows share whose control it may be; empty for a method.

        It is the conditions of plain training, or the shape of a random initialization.
        """
        if self.training is None:
            return self.runs[0].shape
        return self.training.conditions() if self.training.plain else ""

    @cached_property
    def fields(self) -> dict[str, str]:
        """Fields that may distinguish the row from others of its method, by dotted name."""
        if self.training is None:
            return {"architecture": self.runs[0].facts.architecture}
        recipe: dict[str, Any] = {**self.training.recipe}
        recipe |= {method["name"]: method for method in recipe.pop("methods")}
        fields = flatten_mapping({k: v for k, v in recipe.items() if k not in ("name", "seed")})
        return {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}


def group_rows(
    rows: Mapping[str, Sequence[MethodRun]], own_controls: Mapping[str, Sequence[MethodRun]]
) -> tuple[list[SeedGroup], dict[str, str]]:
    """Return the rows, and the reason for every entry whose training is unknown.

    rows: entry -> its runs; own_controls: entry -> the controls that it takes along.
    """
    left_out: dict[str, str] = {}
    groups: list[SeedGroup] = []
    for entry, runs in rows.items():
        first = runs[0].facts
        if first.training is None and first.random_init is None:
            left_out[entry] = NO_RECIPE if first.source == "run" else NO_RUN
            continue
        by_recipe: dict[str, list[MethodRun]] = {}
        for run in own_controls.get(entry, ()):
            by_recipe.setdefault(run.row, []).append(run)
        name = f"control of {entry}"
        controls = (SeedGroup(name, entry, tuple(part)) for part in by_recipe.values())
        groups.append(SeedGroup("", entry, tuple(runs), tuple(controls)))
    twins: dict[str, list[SeedGroup]] = {}
    for group in groups:
        twins.setdefault(group.method, []).append(group)
    named = [replace(group, name=make_name(group, twins[group.method])) for group in groups]
    return named, left_out


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


def align_runs(runs: Sequence[MethodRun], columns: Sequence[str]) -> list[Columns]:
    """Return of each run the outcomes (n,) by column, on the episodes or images that all have."""
    aligned = []
    for outcomes in ([run.outcomes[column] for run in runs] for column in columns):
        first = outcomes[0].index
        if all(o.index is first or np.array_equal(o.index, first) for o in outcomes):
            aligned.append([o.values for o in outcomes])
        else:
            index = reduce(np.intersect1d, (o.index for o in outcomes))
            aligned.append([o.values[np.isin(o.index, index)] for o in outcomes])
    return [list(columns_of_run) for columns_of_run in zip(*aligned, strict=True)]


def list_draws(runs: Sequence[MethodRun], columns: Sequence[str]) -> list[str]:
    """Return the identity of what was drawn in each column, which all runs share."""
    return [runs[0].outcomes[column].draws for column in columns]
