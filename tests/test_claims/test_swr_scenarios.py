"""Warm start and continual learning: settings, what is measured, verdicts, a tiny run."""

from typing import Any

import pytest
from support.claims import judge_planted, list_verdicts

from fsbench.claims import _training, swr_scenarios
from fsbench.claims._training import TrainedRun
from fsbench.claims.engine import ClaimJob, Runs
from fsbench.claims.swr_scenarios import CLAIM, FULL, LIMITED, METHODS, SCENARIOS, SETUPS, WARM
from fsbench.data.source import SourceDataset
from pretrain.recipes.recipe import Recipe


@pytest.mark.parametrize(
    ("scenario", "name", "expected"),
    [
        (WARM, "vanilla", {"name": "normal"}),
        (WARM, "S&P", {"name": "shrink_perturb", "lam": 0.8}),
        (FULL, "L2 Init", {"name": "l2_init", "lam": 1e-2}),
        (LIMITED, "SWR", {"name": "swr", "lam": 0.7}),
    ],
)
def test_coefficients_are_the_papers(scenario: str, name: str, expected: dict[str, object]) -> None:
    assert swr_scenarios.build_method_settings(scenario, name) == pytest.approx(expected)


def test_measures_by_hand() -> None:
    """Three stages of two epochs; switches 60 -> 50 and 80 -> 85."""
    run = TrainedRun([40, 60, 50, 80, 85, 91], [60, 80, 91], [10, 20, 30, 40, 50, 60])
    assert swr_scenarios.measure_stages(run, 2) == {
        "final": 91,
        "later": 85.5,
        "switch": -2.5,
        "drop": 2.5,
        "first fit": 20,
        "last fit": 60,
        "test accuracy (%) by stage": [60, 80, 91],
        "test accuracy (%) after the first stage": [50, 80, 85, 91],
    }


def plant(**quantities: float) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Two seeds, equal for all methods."""
    values = {"final": 80, "later": 80, "switch": 0, "drop": 0, "first fit": 100, "last fit": 100}
    return {
        (scenario, method): [{**values, **quantities} for _ in range(2)]
        for scenario in SCENARIOS
        for method in METHODS
    }


@pytest.mark.parametrize(("gain", "verdict"), [(-0.4, "reproduced"), (-0.6, "not reproduced")])
def test_comparable_is_half_a_point_below(gain: float, verdict: str) -> None:
    runs = plant()
    for run, spread in zip(runs[WARM, "SWR"], (-5, 5), strict=True):
        run["final"] += gain + spread
    figure = swr_scenarios.judge_pair(Runs(runs), WARM, "final", "SWR", "L2", comparable=True)
    assert figure.what == "warm-start, final: SWR comparable to L2"
    assert (figure.published, figure.verdict) == ("at least -0.5", verdict)


def test_figures_have_their_scenario_measure_and_sides() -> None:
    runs = plant()
    for run, final in zip(runs[WARM, "SWR"], (90, 92), strict=True):
        run["final"] = final
    for run, drop in zip(runs[FULL, "S&P"], (10, 8), strict=True):
        run["drop"] = drop
    outcomes = judge_planted(CLAIM, runs)
    assert [len(outcome.figures) for outcome in outcomes.values()] == [10, 7, 4]
    better = outcomes[WARM].figures[1]
    assert (better.what, better.ours) == ("warm-start, final: SWR above vanilla", "+11.00 ± 1.00")
    drop = outcomes[FULL].figures[5]
    assert (drop.what, drop.ours) == ("continual-full, drop: S&P above 0", "+9.00 ± 1.00")
    assert list_verdicts(outcomes[FULL].figures) == ["not reproduced"] * 5 + [
        "reproduced",
        "not reproduced",
    ]


def test_every_method_is_compared_with_swr() -> None:
    figures = [f.what for s in judge_planted(CLAIM, plant()).values() for f in s.figures]
    for method in set(METHODS) - {"SWR", "cold"}:
        assert any(
            f"SWR above {method}" in f or f"SWR comparable to {method}" in f for f in figures
        )


@pytest.mark.parametrize(
    ("fits", "cold", "holds"),
    [
        ((100, 50), (92, 90), [True, True, False, False]),
        ((90, 99), (92, 90), [False, True, True, True]),
        ((100, 99), (80, 79), [True, False, True, True]),
    ],
)
def test_stages_must_be_learned_by_heart_and_a_warm_start_leave_a_gap(
    fits: tuple[float, float], cold: tuple[int, int], holds: list[bool]
) -> None:
    """A warm start needs the end of the first stage, the others that of the last."""
    runs = plant(**dict(zip(("first fit", "last fit"), fits, strict=True)))
    for run, final in zip(runs[WARM, "cold"], cold, strict=True):
        run["final"] = final
    conditions = [c for s in judge_planted(CLAIM, runs).values() for c in s.conditions]
    assert [condition.holds for condition in conditions] == holds


def test_a_run_uses_the_images_and_epochs_of_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int, int]] = []

    def train(recipe: Recipe, source: SourceDataset) -> Any:
        calls.append((len(source.train), recipe.plan.epochs, len(recipe.plan.stages)))
        stages = [50.0] * len(recipe.plan.stages)
        return TrainedRun([50.0] * len(stages) * recipe.plan.epochs, stages, [100.0] * 200)

    monkeypatch.setattr(_training, "train_once", train)
    for scenario in SETUPS:
        swr_scenarios.measure(ClaimJob((scenario, "SWR"), 0))
    assert calls == [(500, 120, 2), (1437, 30, 10), (1437, 60, 10)]


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_trains_in_stages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETUPS, WARM, (64, 1))
    run = swr_scenarios.measure(ClaimJob((WARM, name), 0))
    assert len(run["test accuracy (%) by stage"]) == 2
    assert run["test accuracy (%) after the first stage"] == [run["final"]]
