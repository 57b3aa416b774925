"""Runs of our own as a method board sees them: recipes and costs without training."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from support import fakes

from fsbench.core.io import write_record
from fsbench.core.schema import BackboneFacts, Training
from leaderboard.intake.submission import Submission
from leaderboard.methods.board import build_method_board
from leaderboard.methods.record import MethodBoard
from leaderboard.methods.runs import MethodRun, SeedGroup, group_rows
from leaderboard.official import BOARD_FILE
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.tiers import Ranking
from leaderboard.store import Board
from leaderboard.tables import BoardTable, Row

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


def outcomes(values: ArrayLike, draws: str = "a", index: Sequence[int] | None = None) -> Outcomes:
    array = np.asarray(values, np.float64)
    return Outcomes(np.arange(array.size) if index is None else np.array(index), array, draws)


def run(entry: str, facts: BackboneFacts, **columns: ArrayLike) -> MethodRun:
    """Outcomes by column; the episodes of every column are its own."""
    return MethodRun(entry, facts, {c: outcomes(values, draws=c) for c, values in columns.items()})


def groups(*entries: BackboneFacts | Sequence[BackboneFacts]) -> tuple[SeedGroup, ...]:
    """Rows of entries 0, 1, ... with two outcomes each; several facts are the seeds of one."""
    rows = {}
    for i, entry in enumerate(entries):
        seeds = [entry] if isinstance(entry, BackboneFacts) else entry
        rows[str(i)] = [run(f"{i} seed {n}", made, a=[0.25, 0.5]) for n, made in enumerate(seeds)]
    return group_rows(rows, {})[0]


def build_board(columns: Sequence[str], runs: Sequence[MethodRun]) -> MethodBoard:
    """The board of these runs, the seeds of each recipe as an entry; it names all as controls."""
    by_recipe: dict[str, list[MethodRun]] = {}
    for one in runs:
        by_recipe.setdefault(one.row, []).append(one)
    rows = {seeds[0].entry: seeds for seeds in by_recipe.values()}
    table = BoardTable(
        name="b",
        ranking=Ranking(tuple(columns)),
        rows={name: Row(name, seeds[0].facts, seeds[0].outcomes) for name, seeds in rows.items()},
        controls=tuple(rows),
        pooled=tuple(rows),
    )
    return build_method_board(table, "", rows)


def runs_of(
    entries: Mapping[str, Mapping[str, Outcomes]], facts: Mapping[str, BackboneFacts]
) -> list[MethodRun]:
    """Networks of these names."""
    return [MethodRun(name, facts[name], columns) for name, columns in entries.items()]


def name_controls(board: Path, submissions: Sequence[Submission]) -> None:
    """Let board.json name plain training and random initializations among these as controls."""
    plain = (s.name for s in submissions if s.facts.training is None or s.facts.training.plain)
    file = Board.open(board).file.model_copy(update={"controls": tuple(plain)})
    write_record(board / BOARD_FILE, file)
