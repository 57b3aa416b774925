"""Warm start and continual learning on digits: SWR beside all methods of its paper.

The MLP with the coefficients chosen for it on MNIST (Tables 2 and 3,
pretrain/recipes/swr_study.py). SWR's
acts once a step, of which there are 40 to 70 times fewer here, so it is 50 times as large. Warm
start takes 500 images, which leaves room for a gap; the continual settings take all 1,437. Means of
few seeds on 360 test images: a difference below a point is hard to see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from fsbench.core.panels import Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import _digits, _swr
from fsbench.reproductions._outcome import (
    OVERALL,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    judge_claim,
)
from fsbench.reproductions._pool import run_jobs

SOURCE = "soft weight rescaling, sections 4.1 and 4.2, Figures 2 to 4"
CLAIM = "SWR is comparable to or better than resets and penalties when data arrive in stages"
MARGIN = 0.5
"""Percentage points."""
RULE = (
    f"{_swr.ABOVE}. A comparable to B: reproduced when the mean of A - B is at least -{MARGIN}"
    " percentage points, else not. Final: test accuracy (%) after the last stage; later: mean over"
    " the ends of all stages but the first; switch: accuracy after the first epoch of a stage minus"
    f" that before it, mean over stages; {OVERALL}"
)
SEEDS = 3
BATCH, SWR_FACTOR = 32, 50
METHODS = {
    "vanilla": "normal",
    "cold": "full_reset",
    "L2": "l2",
    "L2 Init": "l2_init",
    "S&P": "shrink_perturb",
    "head reset": "head_reset",
    "SWR": "swr",
}
"""Name in the paper -> method."""


class ScenarioSetup(NamedTuple):
    """Training images, and epochs a stage."""

    images: int
    epochs: int


SETUPS = {
    "warm-start": ScenarioSetup(500, 40),
    "continual-full": ScenarioSetup(1437, 8),
    "continual-limited": ScenarioSetup(1437, 8),
}

ScenarioJob = tuple[str, str, int]
"""Scenario, method, seed."""
ScenarioTraces = Mapping[tuple[str, str], Sequence[_swr.AccuracyTrace]]
"""Scenario and method -> runs by seed."""


class ScenarioStatement(NamedTuple):
    """A sentence of the paper: `a` above `b` (none: above 0) or comparable to it.

    measure: final, later, switch or drop (minus the switch).
    """

    scenario: str
    measure: str
    a: str
    b: str | None
    comparable: bool = False

    def __str__(self) -> str:
        relation = " comparable to " if self.comparable else " above "
        return f"{self.scenario}, {self.measure}: {self.a}{relation}{self.b or 0}"


OTHERS = tuple(name for name in METHODS if name not in ("SWR", "cold"))
STATEMENTS = (
    ScenarioStatement("warm-start", "final", "cold", "vanilla"),
    ScenarioStatement("warm-start", "final", "SWR", "vanilla"),
    *(ScenarioStatement("warm-start", "final", name, "cold") for name in ("L2", "L2 Init")),
    *(ScenarioStatement("warm-start", "final", name, "vanilla") for name in ("S&P", "head reset")),
    *(ScenarioStatement("warm-start", "final", "SWR", name, True) for name in OTHERS[1:]),
    *(
        ScenarioStatement("continual-full", "later", name, "vanilla")
        for name in (*OTHERS[1:], "SWR")
    ),
    *(ScenarioStatement("continual-full", "drop", name, None) for name in ("S&P", "head reset")),
    *(ScenarioStatement("continual-limited", "switch", "SWR", name) for name in ("L2", "L2 Init")),
    *(
        ScenarioStatement("continual-limited", "later", "S&P", name, True)
        for name in ("L2", "L2 Init")
    ),
)
"""What sections 4.1 and 4.2 say of small networks, in their order."""


def run(seeds: int = SEEDS, report: Reporter = SILENT) -> ClaimOutcome:
    """All methods in all scenarios over this many seeds. Raises UsageError below two."""
    _swr.require_two_seeds(seeds)
    cells = [(scenario, method) for scenario in SETUPS for method in METHODS]
    jobs: list[ScenarioJob] = [(*cell, seed) for cell in cells for seed in range(seeds)]
    runs = run_jobs(_run_job, jobs, "swr_scenarios", report)
    found = {cell: runs[i * seeds : (i + 1) * seeds] for i, cell in enumerate(cells)}
    figures = tuple(judge_statement(statement, found) for statement in STATEMENTS)
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=judge_claim(figures),
        notes=tuple(_describe_finals(scenario, found) for scenario in SETUPS),
        panels=tuple(_scenario_panel(scenario, found) for scenario in SETUPS),
    )


def _run_job(job: ScenarioJob) -> _swr.AccuracyTrace:
    scenario, name, seed = job
    setup = SETUPS[scenario]
    recipe = _swr.swr_recipe(method_settings(scenario, name), seed, setup.epochs, BATCH, scenario)
    return _swr.train_recipe(recipe, _digits.load_digits_source(seed, setup.images))


def method_settings(scenario: str, name: str) -> dict[str, object]:
    """The method with the coefficients that the paper chose for its MLP."""
    from pretrain.recipes import swr_study

    method = METHODS[name]
    chosen = swr_study.settings(method, scenario, "mnist mlp")
    factor = SWR_FACTOR if method == "swr" else 1
    return {"name": method, **{key.split(".")[1]: v * factor for key, v in chosen.items()}}


def measure_trace(measure: str, scenario: str, run: _swr.AccuracyTrace) -> float:
    """One number of a run (%): see RULE."""
    if measure == "final":
        return run.stages[-1]
    if measure == "later":
        return mean(run.stages[1:])
    epochs = SETUPS[scenario].epochs
    firsts = run.epochs[epochs::epochs]
    switch = mean(b - a for a, b in zip(run.stages[:-1], firsts, strict=True))
    return -switch if measure == "drop" else switch


def judge_statement(statement: ScenarioStatement, found: ScenarioTraces) -> ClaimFigure:
    """A statement and what we see."""

    def side(method: str | None) -> list[float]:
        runs = found[statement.scenario, method or statement.a]
        values = [measure_trace(statement.measure, statement.scenario, run) for run in runs]
        return values if method else [0.0] * len(values)

    gained = _swr.paired_difference(side(statement.a), side(statement.b))
    return ClaimFigure(
        what=str(statement),
        published=f"at least -{MARGIN}" if statement.comparable else "above 0",
        ours=str(gained),
        verdict=judge_gain(statement, gained),
    )


def judge_gain(statement: ScenarioStatement, gained: _swr.PairedDifference) -> ClaimVerdict:
    """The verdict on a statement by RULE."""
    if statement.comparable:
        return "reproduced" if gained.mean >= -MARGIN else "not reproduced"
    return _swr.judge_above(gained)


def _describe_finals(scenario: str, found: ScenarioTraces) -> str:
    """Mean final accuracies of all methods in words."""
    finals = {m: mean(run.stages[-1] for run in found[scenario, m]) for m in METHODS}
    return f"{scenario}, final: " + ", ".join(f"{m} {value:.1f}" for m, value in finals.items())


def _scenario_panel(scenario: str, found: ScenarioTraces) -> Panel:
    """Test accuracy by stage; by epoch of the second stage in warm start, as Figure 2 draws it."""
    if scenario == "warm-start":
        start = SETUPS[scenario].epochs
        drawn = {m: [run.epochs[start:] for run in found[scenario, m]] for m in METHODS}
        x = "epoch after all images arrived"
    else:
        drawn = {m: [run.stages for run in found[scenario, m]] for m in METHODS}
        x = "stage"
    curves = tuple(_swr.mean_curve(m, runs, 1) for m, runs in drawn.items())
    return Panel(title=scenario, x=x, y="test accuracy (%)", curves=curves)
