"""Warm start and continual learning: SWR and the comparators of its paper.

https://arxiv.org/abs/2507.04683, sections 4.1 and 4.2, Figures 2 to 4. The MLP on digits, with the
coefficients that the paper chose for it on MNIST (Tables 2 and 3, pretrain/recipes/swr_study.py).
SWR's coefficient acts once per step; here are 40 to 70 times fewer steps, so it is 50 times as
large. Warm start uses 500 images, which leaves room for a gap; the continual scenarios use all
1,437. These are means of few seeds on 360 test images: a difference below one point is hard to see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from fsbench.core.panels import Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    _runs,
    _swr,
    choose_verdict,
    require_two_seeds,
)

MARGIN = 0.5
"""Percentage points."""
CLAIM = Claim(
    source="soft weight rescaling, sections 4.1 and 4.2, Figures 2 to 4",
    statement="SWR is comparable to or better than resets and penalties when data arrive in stages",
    rule=(
        f"{_swr.ABOVE}. A comparable to B: reproduced if the mean of A - B is at least -{MARGIN}"
        " percentage points, otherwise not. Final: test accuracy (%) after the last stage; later:"
        " mean over the ends of all stages but the first; switch: accuracy after the first epoch of"
        f" a stage minus that before it, mean over stages"
    ),
    seeds=3,
)
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
"""Method by its name in the paper."""


class ScenarioSetup(NamedTuple):
    """Training images, and epochs per stage."""

    images: int
    epochs: int


SETUPS = {
    "warm-start": ScenarioSetup(500, 40),
    "continual-full": ScenarioSetup(1437, 8),
    "continual-limited": ScenarioSetup(1437, 8),
}

ScenarioTraces = Mapping[tuple[str, str], Sequence[_swr.AccuracyTrace]]
"""Traces of all seeds by scenario and method."""


class ScenarioStatement(NamedTuple):
    """A statement of the paper: `a` above `b` (None: above 0) or comparable to it.

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
"""Statements of sections 4.1 and 4.2 on small networks, in their order."""


def run(seeds: int = CLAIM.seeds, report: Reporter = SILENT) -> ClaimOutcome:
    """Run all methods in all scenarios. Raises UsageError for fewer than two seeds."""
    require_two_seeds(seeds)
    cells = [(scenario, method) for scenario in SETUPS for method in METHODS]
    traces = _runs.run_seeds(_run_job, cells, seeds, "swr_scenarios", report)
    return CLAIM.judge(
        seeds,
        (judge_statement(statement, traces) for statement in STATEMENTS),
        notes=(_describe_finals(scenario, traces) for scenario in SETUPS),
        panels=(_scenario_panel(scenario, traces) for scenario in SETUPS),
    )


def _run_job(job: tuple[tuple[str, str], int]) -> _swr.AccuracyTrace:
    """Train once; job: scenario and method, seed."""
    (scenario, name), seed = job
    setup = SETUPS[scenario]
    recipe = _swr.build_swr_recipe(
        build_method_settings(scenario, name), seed, setup.epochs, BATCH, scenario
    )
    return _swr.trace_training(recipe, _runs.load_digits_source(seed, setup.images))


def build_method_settings(scenario: str, name: str) -> dict[str, object]:
    """Return the method with the coefficients that the paper chose for its MLP."""
    from pretrain.recipes import swr_study

    method = METHODS[name]
    chosen = swr_study.chosen_coefficients(method, scenario, "mnist mlp")
    factor = SWR_FACTOR if method == "swr" else 1
    return {"name": method, **{key.split(".")[1]: v * factor for key, v in chosen.items()}}


def measure_trace(measure: str, scenario: str, run: _swr.AccuracyTrace) -> float:
    """Return one measure of a run (%), defined in the rule."""
    if measure == "final":
        return run.stages[-1]
    if measure == "later":
        return mean(run.stages[1:])
    epochs = SETUPS[scenario].epochs
    firsts = run.epochs[epochs::epochs]
    switch = mean(b - a for a, b in zip(run.stages[:-1], firsts, strict=True))
    return -switch if measure == "drop" else switch


def judge_statement(statement: ScenarioStatement, traces: ScenarioTraces) -> ClaimFigure:
    """Judge a statement by the rule."""

    def side(method: str | None) -> list[float]:
        runs = traces[statement.scenario, method or statement.a]
        values = [measure_trace(statement.measure, statement.scenario, run) for run in runs]
        return values if method else [0.0] * len(values)

    gained = _swr.compute_paired_difference(side(statement.a), side(statement.b))
    return ClaimFigure(
        what=str(statement),
        published=f"at least -{MARGIN}" if statement.comparable else "above 0",
        ours=str(gained),
        verdict=judge_gain(statement, gained),
    )


def judge_gain(statement: ScenarioStatement, gained: _swr.PairedDifference) -> ClaimVerdict:
    """Return the verdict on a statement by the rule."""
    if statement.comparable:
        return choose_verdict(gained.mean >= -MARGIN)
    return _swr.judge_above(gained)


def _describe_finals(scenario: str, traces: ScenarioTraces) -> str:
    """Describe the mean final accuracies of all methods."""
    finals = {m: mean(run.stages[-1] for run in traces[scenario, m]) for m in METHODS}
    return f"{scenario}, final: " + ", ".join(f"{m} {value:.1f}" for m, value in finals.items())


def _scenario_panel(scenario: str, traces: ScenarioTraces) -> Panel:
    """Plot test accuracy by stage; for warm start by epoch of the second stage, as Figure 2."""
    if scenario == "warm-start":
        start = SETUPS[scenario].epochs
        drawn = {m: [run.epochs[start:] for run in traces[scenario, m]] for m in METHODS}
        x = "epoch after all images arrived"
    else:
        drawn = {m: [run.stages for run in traces[scenario, m]] for m in METHODS}
        x = "stage"
    curves = tuple(_swr.average_curves(m, runs, 1) for m, runs in drawn.items())
    return Panel(title=scenario, x=x, y="test accuracy (%)", curves=curves)
