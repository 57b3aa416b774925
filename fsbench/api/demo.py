"""A demonstration on generated images: pretrain, evaluate, submit and rank, without a download."""

from functools import partial
from pathlib import Path

from fsbench.api.evaluate import evaluate
from fsbench.api.leaderboard import RankedBoard
from fsbench.api.pretrain import pretrain
from fsbench.api.submit import submit
from fsbench.core.progress import VERBOSITY, Reporter
from fsbench.core.schema import Declaration
from leaderboard.site.page import build_site
from pretrain.recipes.registry import load_recipe

METHODS = ("normal", "lw")
TASKS, SHOTS = ("toy",), (1, 5)
SITE = "site"
"""Folder of the board's page."""
DECLARATION = Declaration(
    name="demo",
    authors="fsbench demo",
    link="fsbench demo",
    license="Apache-2.0",
    pretraining_data=("toy_source",),
    targets_seen=(),
    statement="Made by `fsbench demo` on generated images.",
)


def run_demo(output: Path, threads: int | None, report: Reporter) -> Path:
    """Pretrain, evaluate and submit a network by each of METHODS; return the board's folder.

    Everything is written below `output`, where a stopped demo resumes; SITE is the board's page.
    """
    cache, results, board = output / "cache", output / "results", output / "board"
    train = partial(pretrain, threads=threads, cache=cache, yes=True, progress=report)
    details = report if VERBOSITY.get() > 0 else False
    test = partial(evaluate, threads=threads, cache=cache, shots=SHOTS, progress=details)
    report.log(f"random weights, {len(METHODS)} runs: each is evaluated in about 20 s")
    first = f"fsbench/{load_recipe('toy/normal').architecture}"
    test(first, TASKS, random_init=0, output=results)
    for number, name in enumerate(METHODS, start=1):
        report.log(f"run {number} of {len(METHODS)}: toy/{name}")
        run = train(f"toy/{name}", output=output / "runs")
        test(run.ref, TASKS, output=results)
    submit(results, board, declaration=DECLARATION, replace=True)
    build_site(board, output / SITE)
    return board


def describe_demo(ranked: RankedBoard) -> list[str]:
    """Return what the demo shows, in three sentences."""
    overall = {e["name"]: 100 * e["overall"] for e in ranked.to_json()[0]["entries"]}
    best, last = max(overall, key=overall.__getitem__), min(overall.values())
    return [
        f"{len(overall)} backbones, one of them with random weights, classified images of data sets"
        " that none was trained on, from 1 and 5 images a class.",
        f"{best} was right in {overall[best]:.0f} % of the queries, the last row in {last:.0f} %; a"
        " guess is right in 20 %.",
        "Every row is one pretraining seed: training is chaotic, so other machines give numbers"
        " several points apart.",
    ]
