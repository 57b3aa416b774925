"""Runs of our own as a method board sees them: recipes and costs without training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from support import fakes

from fsbench.core.io import write_record
from fsbench.core.schema import BackboneFacts, Training
from leaderboard.controls import find_shape
from leaderboard.entry_networks import seed_of
from leaderboard.methods import RANDOM, MethodBoard, build_method_board
from leaderboard.official import BOARD_FILE
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.tiers import Ranking
from leaderboard.store import Board
from leaderboard.submission import Submission
from leaderboard.tables import BoardTable, Row, average_rows

COSTS: dict[str, Any] = {
    "source_fingerprint": "f" * 64,
    "steps": 120,
    "samples": 7680,
    "flops": 10**12,
    "seconds": 36.0,
    "peak_memory_bytes": 2 * 10**9,
    "device": "cpu",
}


def recipe(methods: str = "normal", seed: int = 0, **changes: Any) -> dict[str, Any]:
    """methods: names joined by +; a change of `lam` is a setting of the first one."""
    settings = {"lam": changes.pop("lam")} if "lam" in changes else {}
    first, *others = methods.split("+")
    return {
        "name": f"toy/{methods}",
        "architecture": "toy_resnet",
        "methods": [{"name": first, **settings}, *({"name": name} for name in others)],
        "plan": {"stages": [{"start": 0.0, "stop": 1.0}], "rounds": 3, "epochs": 4},
        "schedule": "cosine",
        "loader": "batches",
        "batch_size": 64,
        "lr": 0.1,
        "seed": seed,
        **changes,
    }


def training(methods: str = "normal", seed: int = 0, **changes: Any) -> Training:
    """Changes of COSTS are costs, all others fields of the recipe."""
    costs = {name: changes.pop(name, value) for name, value in COSTS.items()}
    return Training(recipe=recipe(methods, seed, **changes), **costs)


def facts(methods: str = "normal", seed: int = 0, **changes: Any) -> BackboneFacts:
    made = training(methods, seed, **changes)
    return fakes.facts(
        f"{methods}-s{seed}-{made.recipe_digest[:6]}",
        recipe=made.recipe["name"],
        recipe_digest=made.recipe_digest,
        steps=made.steps,
        training=made.model_dump(),
    )


def random_init(seed: int = 0, **changes: Any) -> BackboneFacts:
    name = f"random{seed}"
    return fakes.facts(name, random_init=seed, source_accuracy=None, **changes)


def outcomes(
    values: ArrayLike, draws: str = "a", first: int = 0, index: Sequence[int] | None = None
) -> Outcomes:
    """Values (n,) of episodes first, first + 1, ..., or of those in the index."""
    array = np.asarray(values, np.float64)
    numbers = np.arange(first, first + array.size) if index is None else np.array(index)
    return Outcomes(numbers, array, draws)


def run(name: str, facts: BackboneFacts, **columns: ArrayLike) -> Row:
    """A network with its outcomes by column; the episodes of every column are its own."""
    return network(name, facts, {c: outcomes(v, draws=c) for c, v in columns.items()})


def network(name: str, facts: BackboneFacts, outcomes: Mapping[str, Outcomes]) -> Row:
    """A row of one network."""
    nothing: dict[str, Any] = dict.fromkeys(outcomes, ())
    source, seed = facts.source_accuracy, seed_of(facts)
    return Row(name, facts, outcomes, nothing, nothing, source=source, seed=seed)


def average(name: str, runs: Sequence[Row]) -> Row:
    """The row of an entry with these runs."""
    return replace(average_rows(sorted(runs, key=lambda one: one.seed), True), name=name)


def make_rows(*entries: BackboneFacts | Sequence[BackboneFacts]) -> tuple[Row, ...]:
    """Rows 0, 1, ... with two outcomes each; several facts are the seeds of one."""
    return tuple(
        average(str(i), [run("", one, a=[0.25, 0.5]) for one in seeds])
        for i, entry in enumerate(entries)
        for seeds in [[entry] if isinstance(entry, BackboneFacts) else entry]
    )


def build_board(
    columns: Sequence[str], runs: Sequence[Row], tuned: Sequence[str] = ()
) -> MethodBoard:
    """The board of these runs, the seeds of each recipe as an entry; it names all as controls.

    An entry is called by its method if it is the only one of it, else by its first run. tuned:
    names of the entries whose settings were searched.
    """
    by_recipe: dict[str, list[Row]] = {}
    for one in runs:
        training = one.facts.training
        recipe = training.composition if training else find_shape(one.facts)
        by_recipe.setdefault(recipe, []).append(one)
    methods = Counter(name_method(seeds[0]) for seeds in by_recipe.values())
    names = [
        name if methods[name := name_method(seeds[0])] == 1 else seeds[0].name
        for seeds in by_recipe.values()
    ]
    rows = {
        name: average(name, seeds) for name, seeds in zip(names, by_recipe.values(), strict=True)
    }
    table = BoardTable(
        name="b",
        ranking=Ranking(tuple(columns)),
        rows=rows,
        controls=tuple(rows),
        tuned=tuple(tuned),
    )
    return build_method_board(table, "", rows)


def name_method(row: Row) -> str:
    training = row.facts.training
    if training is None:
        return row.name if row.facts.random_init is None else RANDOM
    return "+".join(training.methods)


def name_controls(board: Path, submissions: Sequence[Submission]) -> None:
    """Let board.json name plain training and random initializations among these as controls."""
    plain = (s.name for s in submissions if s.facts.training is None or s.facts.training.plain)
    file = Board.open(board).file.model_copy(update={"controls": tuple(plain)})
    write_record(board / BOARD_FILE, file)
