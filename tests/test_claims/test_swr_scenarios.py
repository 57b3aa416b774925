"""Warm start and continual learning: settings, what is measured, verdicts, a tiny run."""

import pytest

from fsbench.claims import _swr, swr_scenarios
from fsbench.claims._swr import AccuracyTrace, PairedDifference
from fsbench.claims.swr_scenarios import (
    METHODS,
    SETUPS,
    STATEMENTS,
    ScenarioSetup,
    ScenarioStatement,
)
from fsbench.data.source import SourceDataset
from pretrain.recipes.recipe import Recipe


@pytest.mark.parametrize(
    ("scenario", "name", "expected"),
    [
        ("warm-start", "vanilla", {"name": "normal"}),
        ("warm-start", "S&P", {"name": "shrink_perturb", "lam": 0.8}),
        ("continual-full", "L2 Init", {"name": "l2_init", "lam": 1e-2}),
        ("continual-limited", "SWR", {"name": "swr", "lam": 0.7}),
    ],
)
def test_coefficients_are_the_papers(scenario: str, name: str, expected: dict[str, object]) -> None:
    assert swr_scenarios.build_method_settings(scenario, name) == pytest.approx(expected)


def test_measures_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three stages of two epochs; switches 60 -> 50 and 80 -> 85."""
    monkeypatch.setitem(SETUPS, "continual-full", ScenarioSetup(10, 2, 1))
    run = AccuracyTrace([40, 60, 50, 80, 85, 91], [60, 80, 91])
    measures = {
        measure: swr_scenarios.measure_trace(measure, "continual-full", run)
        for measure in ("final", "later", "switch", "drop")
    }
    assert measures == {"final": 91, "later": 85.5, "switch": -2.5, "drop": 2.5}


@pytest.mark.parametrize(
    ("comparable", "gained", "verdict"),
    [
        (True, PairedDifference(-0.4, 0.1), "reproduced"),
        (True, PairedDifference(-0.6, 5.0), "not reproduced"),
        (False, PairedDifference(0.4, 0.1), "reproduced"),
        (False, PairedDifference(-0.4, 0.1), "not reproduced"),
    ],
)
def test_judge(comparable: bool, gained: PairedDifference, verdict: str) -> None:
    statement = ScenarioStatement("warm-start", "final", "SWR", "L2", comparable)
    assert swr_scenarios.judge_gain(statement, gained) == verdict


def test_a_figure_takes_the_sides_in_order() -> None:
    traces = {
        ("warm-start", "SWR"): [AccuracyTrace([], [1, 90]), AccuracyTrace([], [1, 92])],
        ("warm-start", "vanilla"): [AccuracyTrace([], [5, 80]), AccuracyTrace([], [5, 81])],
    }
    figure = swr_scenarios.judge_statement(
        ScenarioStatement("warm-start", "final", "SWR", "vanilla"), traces
    )
    assert figure.what == "warm-start, final: SWR above vanilla"
    assert (figure.ours, figure.verdict) == ("+10.50 ± 0.50", "reproduced")


def test_a_drop_is_compared_with_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETUPS, "continual-full", ScenarioSetup(10, 1, 1))
    runs = [AccuracyTrace([60, 50], [60, 50]), AccuracyTrace([60, 52], [60, 52])]
    statement = ScenarioStatement("continual-full", "drop", "S&P", None)
    figure = swr_scenarios.judge_statement(statement, {("continual-full", "S&P"): runs})
    assert (figure.what, figure.ours) == ("continual-full, drop: S&P above 0", "+9.00 ± 1.00")


def test_a_run_uses_the_images_and_epochs_of_its_scenario(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[int, int, int]] = []

    def train(recipe: Recipe, source: SourceDataset) -> AccuracyTrace:
        calls.append((len(source.train), recipe.plan.epochs, len(recipe.plan.stages)))
        return AccuracyTrace([], [])

    monkeypatch.setattr(_swr, "trace_training", train)
    for scenario in SETUPS:
        swr_scenarios._run_job(((scenario, "SWR"), 0))
    assert calls == [(500, 120, 2), (1437, 30, 10), (1437, 60, 10)]


@pytest.mark.parametrize(
    ("learned", "cold", "holds"),
    [
        (100.0, (92, 90), [True, True]),
        (90.0, (92, 90), [False, True]),
        (100.0, (80, 79), [True, False]),
    ],
)
def test_a_warm_start_must_be_learned_by_heart_and_leave_a_gap(
    monkeypatch: pytest.MonkeyPatch, learned: float, cold: tuple[int, int], holds: list[bool]
) -> None:
    """The training accuracy that counts is that of the first stage, one epoch here."""
    monkeypatch.setitem(SETUPS, "warm-start", ScenarioSetup(10, 1, 1))
    traces = {
        ("warm-start", "vanilla"): [AccuracyTrace([], [1, 80], [learned, 50])] * 2,
        ("warm-start", "cold"): [AccuracyTrace([], [1, last], [10, 10]) for last in cold],
    }
    conditions = swr_scenarios.require_learned_stages("warm-start", traces)
    assert [condition.holds for condition in conditions] == holds


def test_the_continual_scenarios_must_end_learned_by_heart() -> None:
    traces = {("continual-full", "vanilla"): [AccuracyTrace([], [], [10, 99.5])] * 2}
    (condition,) = swr_scenarios.require_learned_stages("continual-full", traces)
    assert condition.holds
    traces = {("continual-full", "vanilla"): [AccuracyTrace([], [], [99.5, 98])] * 2}
    assert not swr_scenarios.require_learned_stages("continual-full", traces)[0].holds


def test_every_method_is_compared_with_swr() -> None:
    against = {s.b for s in STATEMENTS if s.a == "SWR"}
    assert against == set(METHODS) - {"SWR", "cold"}
    assert {s.scenario for s in STATEMENTS} == set(SETUPS)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_trains_in_stages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETUPS, "warm-start", ScenarioSetup(64, 1, 1))
    run = swr_scenarios._run_job((("warm-start", name), 0))
    assert len(run.stages) == 2
    assert run.epochs == run.stages
    traces = {("warm-start", m): [run, run] for m in METHODS}
    assert len(swr_scenarios._scenario_panel("warm-start", traces).curves[0].x) == 1
    assert swr_scenarios._describe_finals("warm-start", traces).count(f"{run.stages[-1]:.1f}") == 7
