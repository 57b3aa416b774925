"""Warm start and continual learning: settings, what is measured, verdicts, a tiny run."""

from __future__ import annotations

import pytest

from fsbench.data.source import SourceDataset
from fsbench.reproductions import _swr, swr_scenarios
from fsbench.reproductions._swr import AccuracyTrace, PairedDifference
from fsbench.reproductions.swr_scenarios import (
    METHODS,
    SETUPS,
    STATEMENTS,
    ScenarioSetup,
    ScenarioStatement,
)
from pretrain.recipes.recipe import Recipe


@pytest.mark.parametrize(
    ("scenario", "name", "expected"),
    [
        ("warm-start", "vanilla", {"name": "normal"}),
        ("warm-start", "S&P", {"name": "shrink_perturb", "lam": 0.4}),
        ("continual-full", "L2 Init", {"name": "l2_init", "lam": 1e-4}),
        ("continual-limited", "SWR", {"name": "swr", "lambda_f": 5e-3, "lambda_c": 5e-3}),
    ],
)
def test_coefficients_are_the_papers(scenario: str, name: str, expected: dict[str, object]) -> None:
    assert swr_scenarios.build_method_settings(scenario, name) == pytest.approx(expected)


def test_measures_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three stages of two epochs; switches 60 -> 50 and 80 -> 85."""
    monkeypatch.setitem(SETUPS, "continual-full", ScenarioSetup(10, 2))
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
    monkeypatch.setitem(SETUPS, "continual-full", ScenarioSetup(10, 1))
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
    assert calls == [(500, 40, 2), (1437, 8, 10), (1437, 8, 10)]


def test_every_method_is_compared_with_swr() -> None:
    against = {s.b for s in STATEMENTS if s.a == "SWR"}
    assert against == set(METHODS) - {"SWR", "cold"}
    assert {s.scenario for s in STATEMENTS} == set(SETUPS)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_trains_in_stages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETUPS, "warm-start", ScenarioSetup(64, 1))
    run = swr_scenarios._run_job((("warm-start", name), 0))
    assert len(run.stages) == 2
    assert run.epochs == run.stages
    traces = {("warm-start", m): [run, run] for m in METHODS}
    assert len(swr_scenarios._scenario_panel("warm-start", traces).curves[0].x) == 1
    assert swr_scenarios._describe_finals("warm-start", traces).count(f"{run.stages[-1]:.1f}") == 7
