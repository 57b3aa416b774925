"""Entries of a board as rows: runs of one composition of methods under one recipe, a run a seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.canonical import digest
from fsbench.core.schema import BackboneFacts
from fsbench.core.training import Training
from leaderboard.ranking.tiers import Outcomes

RANDOM = "random init"
SHAPE = ("feature_dim", "features", "input_size", "mean", "std", "n_parameters")
"""Facts that a network shares with itself before training, beside its architecture's name."""
TELLING = ("schedule", "plan.rounds", "plan.epochs", "batch_size", "optimizer", "lr", "source")
"""Fields of a recipe that tell rows of one method apart best, where several do."""


@dataclass(frozen=True, eq=False)
class MethodRun:
    """An entry: its backbone, and its outcomes by column."""

    entry: str
    facts: BackboneFacts
    held: Mapping[str, Outcomes]

    @property
    def training(self) -> Training | None:
        """None where the weights are random, or nothing is known of their making."""
        return None if self.facts.random_init is not None else self.facts.training

    @property
    def seed(self) -> int:
        return self.training.view.seed if self.training else self.facts.random_init or 0

    @property
    def shape(self) -> str:
        """Digest of what it shares with its own random init."""
        name, _, _width = self.facts.architecture.partition("@")  # the default is not always said
        facts = self.facts.model_dump(mode="json", include=set(SHAPE))
        return digest({"name": name, **facts})

    @property
    def row(self) -> str:
        """Equal for all seeds of a row."""
        return self.training.composition if self.training else f"{RANDOM} {self.shape}"


@dataclass(frozen=True, eq=False)
class SeedGroup:
    """The runs of a row, one a seed, by seed; its name is distinct on the board."""

    name: str
    runs: tuple[MethodRun, ...]

    @property
    def training(self) -> Training | None:
        """That of the first seed: but for seed and cost they are equal."""
        return self.runs[0].training

    @property
    def method(self) -> str:
        return "+".join(self.training.methods) if self.training else RANDOM

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    @property
    def columns(self) -> set[str]:
        """Columns that every seed holds."""
        return set.intersection(*(set(run.held) for run in self.runs))

    def of(self, seeds: Iterable[int]) -> tuple[MethodRun, ...]:
        return tuple(run for run in self.runs if run.seed in set(seeds))

    @cached_property
    def fields(self) -> dict[str, str]:
        """What may tell it from another row of its method, by dotted name."""
        if self.training is None:
            return {"architecture": self.runs[0].facts.architecture}
        kept = {k: v for k, v in self.training.recipe.items() if k not in ("name", "seed")}
        return flatten_fields(kept)


def flatten_fields(value: Any, prefix: str = "") -> dict[str, str]:
    """Nested JSON as dotted name -> text of the leaf; a method's settings stand under its name."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(v, dict) and "name" in v for v in value)
    ):
        value = {str(item["name"]): item for item in value}
    if not isinstance(value, dict):
        return {prefix: value if isinstance(value, str) else json.dumps(value)}
    found: dict[str, str] = {}
    for key, item in value.items():
        found |= flatten_fields(item, key if prefix in ("", "methods") else f"{prefix}.{key}")
    return found


def group_runs(runs: Iterable[MethodRun]) -> tuple[tuple[SeedGroup, ...], dict[str, str]]:
    """The rows, and for every entry that is in none the reason."""
    rows: dict[str, dict[int, MethodRun]] = {}
    left_out: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: (-len(run.held), run.entry)):
        if run.training is None and run.facts.random_init is None:
            left_out[run.entry] = explain_unknown(run.facts)
            continue
        held = rows.setdefault(run.row, {}).setdefault(run.seed, run)
        if held is not run:
            left_out[run.entry] = f"a run of the same recipe and seed as {held.entry}"
    ordered = [tuple(run for _, run in sorted(found.items())) for found in rows.values()]
    return name_groups([SeedGroup("", found) for found in ordered]), left_out


def explain_unknown(facts: BackboneFacts) -> str:
    if facts.source != "run":
        return "no run of our own: nothing is known of its training"
    return "evaluated before results carried recipe and cost: evaluate it again with --overwrite"


def name_groups(groups: Sequence[SeedGroup]) -> tuple[SeedGroup, ...]:
    """With distinct names: the methods, and where several rows share them, what they differ in."""
    twins: dict[str, list[SeedGroup]] = {}
    for group in groups:
        twins.setdefault(group.method, []).append(group)
    return tuple(replace(g, name=make_name(g, twins[g.method])) for g in groups)


def make_name(group: SeedGroup, twins: Sequence[SeedGroup]) -> str:
    """e.g. `swr (lam=0.1)`: as few fields as tell it from the others of its method."""
    every = {name for twin in twins for name in twin.fields}
    own = {name for name in every if name.partition(".")[0] in group.method.split("+")}
    rivals, shown = [twin for twin in twins if twin is not group], []
    while rivals:
        apart = {n: [r for r in rivals if r.fields.get(n) != group.fields.get(n)] for n in every}
        best = min(every, key=lambda n: (-len(apart[n]), n not in own, *field_priority(n)))
        if not apart[best]:  # they differ in the images of their source
            shown.append(group.runs[0].row[-6:])
            break
        shown.append(f"{best}={group.fields.get(best, 'none')}"[:60])
        rivals = [rival for rival in rivals if rival not in apart[best]]
    return group.method + (f" ({', '.join(shown)})" if shown else "")


def field_priority(name: str) -> tuple[int, str]:
    return TELLING.index(name) if name in TELLING else len(TELLING), name


def align_outcomes(runs: Sequence[MethodRun], column: str) -> list[NDArray[np.float64]]:
    """Outcomes (n,) of each run over the episodes or test images that all of them have."""
    held = [run.held[column] for run in runs]
    first = held[0].index
    if all(each.index is first or np.array_equal(each.index, first) for each in held):
        return [each.values for each in held]
    index = reduce(np.intersect1d, (each.index for each in held))
    return [each.values[np.isin(each.index, index)] for each in held]
