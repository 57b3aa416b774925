"""SEAL's claims: set-up by hand, verdicts in both directions, a tiny real run of each."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fsbench.claims import ClaimSettings, _runs, seal_ascent, seal_knn_depth
from fsbench.claims.seal_ascent import extract_moments, judge_fall, judge_return
from fsbench.claims.seal_knn_depth import (
    ProbedRun,
    ProbeMeans,
    judge_depths,
    judge_half,
    judge_probes,
)
from fsbench.core.progress import Reporter
from fsbench.core.specs import SourceSubset
from pretrain.recipes.schedules import sum_rates


def test_the_matched_ascent_is_as_long_as_the_papers() -> None:
    papers = sum((e + 1) / 20 for e in range(20))
    papers += sum(0.5 * (1 + math.cos(math.pi * e / 140)) for e in range(20))
    ours = 2 * 44 * 0.1  # 1437 images: 44 steps; one epoch of warm-up and the cosine's first
    assert seal_ascent.match_factor(8, 1437) == pytest.approx(0.01 * papers * 3125 * 0.01 / ours)


def test_all_methods_share_everything_but_the_method() -> None:
    ours, control = (
        seal_ascent.build_seal_recipe("seal", 8, 1, 0.5),
        seal_ascent.build_seal_recipe("normal", 8, 1, 0.5),
    )
    assert ours.method("seal").ascent_factor == 0.5  # type: ignore[attr-defined]
    plain = {"name": control.name, "methods": control.methods}
    assert {**dict(ours), **plain} == dict(control)


def test_the_moments_of_a_generation() -> None:
    trace = [float(epoch) for epoch in range(48)]
    assert extract_moments(1, trace) == (15, 19, 31)
    assert extract_moments(2, trace) == (31, 35, 47)


@pytest.mark.parametrize(
    ("low", "verdict"), [(20.0, "reproduced"), (45.0, "direction only"), (50.0, "not reproduced")]
)
def test_the_verdict_on_a_fall(low: float, verdict: str) -> None:
    assert judge_fall(98.0, low) == verdict


@pytest.mark.parametrize(
    ("low", "after", "verdict"),
    [
        (10.0, 93.0, "reproduced"),
        (10.0, 60.0, "direction only"),
        (10.0, 50.0, "not reproduced"),
        (98.0, 98.0, "not reproduced"),
    ],
)
def test_the_verdict_on_a_return(low: float, after: float, verdict: str) -> None:
    assert judge_return(98.0, low, after) == verdict


def here(
    one: Callable[[Any], Any],
    jobs: Sequence[Any],
    settings: ClaimSettings,
    name: str,
    report: Reporter,
) -> list[Any]:
    return [one(job) for job in jobs]


def test_only_the_matched_strength_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(run: tuple[float, int]) -> list[float]:
        low = 99.0 if run[0] == seal_ascent.PAPERS_S else 12.0 if run[0] < 2 else 90.0
        return [99.0] * 16 + [50.0, 50.0, 50.0, low, *[99.0] * 12] * 2

    monkeypatch.setattr(_runs, "run_jobs", here)
    monkeypatch.setattr(seal_ascent, "trace_accuracy", made)
    outcome = seal_ascent.run(ClaimSettings(2))
    (forgetting,) = outcome.statements
    assert forgetting.verdict == "reproduced"
    assert [figure.verdict for figure in forgetting.figures] == ["reproduced"] * 4
    assert forgetting.conditions[0].ours == "99 %"
    assert outcome.notes[1] == "S = 0.01: 99 -> 99 -> 99 %, then 99 -> 99 -> 99 %"
    assert [len(curve.y) for curve in outcome.panels[0].curves] == [48] * 3


def test_an_ascent_through_the_real_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_ascent, "EPOCHS", 4)
    monkeypatch.setattr(seal_ascent, "IMAGES", 64)
    gentle, strong = (seal_ascent.trace_accuracy((s, 0)) for s in (0.0, 50.0))
    assert len(gentle) == len(strong) == 12
    assert gentle[:4] == strong[:4]
    assert min(strong[4:]) < min(gentle[4:])


PRINTED: ProbeMeans = {
    "seal": ([80.0, 90.0, 95.0, 97.0], 0.5),
    "llf": ([70.0, 71.4, 90.0, 96.0], 1.0),
    "normal": ([60.0, 64.9, 80.0, 95.0], 2.0),
}


def test_figures_as_the_paper_has_them_are_reproduced() -> None:
    figures = judge_probes(PRINTED)
    assert [figure.verdict for figure in figures] == ["reproduced"] * 6
    assert figures[0].ours == "+18.60"
    assert figures[2].what == "block 1: accuracy (%)"


def test_reversed_figures_are_not_reproduced() -> None:
    figures = judge_probes({**PRINTED, "seal": PRINTED["normal"], "normal": PRINTED["seal"]})
    assert {figure.verdict for figure in figures} == {"not reproduced"}


@pytest.mark.parametrize(
    ("ours", "verdict"), [(9.3, "reproduced"), (1.0, "direction only"), (0.0, "not reproduced")]
)
def test_the_verdict_on_a_difference(ours: float, verdict: str) -> None:
    assert judge_half(18.54, ours) == verdict


@pytest.mark.parametrize(
    ("depths", "verdict"),
    [
        ((1.0, 2.0, 3.0), "reproduced"),
        ((1.0, 3.0, 2.0), "direction only"),
        ((2.0, 1.0, 3.0), "not reproduced"),
    ],
)
def test_the_verdict_on_the_depths(depths: tuple[float, float, float], verdict: str) -> None:
    assert judge_depths(*depths) == verdict


def test_probes_of_real_runs_are_assigned_to_their_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runs, "run_jobs", here)
    monkeypatch.setattr(seal_knn_depth, "EPOCHS", 4)
    monkeypatch.setattr(seal_knn_depth, "IMAGES", 64)
    outcome = seal_knn_depth.run(ClaimSettings(1))
    assert [note.split(":")[0] for note in outcome.notes] == list(seal_knn_depth.METHODS)
    assert [len(curve.y) for curve in outcome.panels[0].curves] == [4] * len(outcome.notes)
    accuracies, depth, train = seal_knn_depth.probe_run(("llf", 100), ClaimSettings(1))
    assert f"{accuracies[0]:.1f}," in outcome.notes[1]
    assert 0 <= depth <= 4
    assert len(train) == 12


def test_the_full_run_shortens_the_papers_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a source that is generated: 2 classes of the toy source, a small network."""
    small: dict[str, object] = {"architecture": "toy_resnet", "input_size": 16, "plan.epochs": 4}
    monkeypatch.setattr(seal_knn_depth, "FULL_SOURCE", "toy_source")
    monkeypatch.setattr(seal_knn_depth, "FULL_SUBSET", SourceSubset(classes=2, images_per_class=32))
    monkeypatch.setitem(seal_knn_depth.FULL_FIELDS, "plan.epochs", 40)
    settings = ClaimSettings(1, full=True)
    chosen, source = seal_knn_depth.prepare_full("seal", 100, settings)
    assert (chosen.plan.rounds, chosen.plan.epochs, chosen.seed) == (3, 40, 100)
    assert (chosen.architecture, len(source.train)) == ("seal_resnet50", 64)
    ascent = chosen.method("seal").ascent_factor * sum_rates(chosen, 10, 64)  # type: ignore[attr-defined]
    papers = math.fsum((e + 1) / 20 for e in range(20))
    papers += math.fsum(0.5 * (1 + math.cos(math.pi * e / 140)) for e in range(20))
    assert ascent == pytest.approx(0.01 * papers * 3125 * 0.01)
    for name, value in small.items():
        monkeypatch.setitem(seal_knn_depth.FULL_FIELDS, name, value)
    run = seal_knn_depth.probe_run(("seal", 100), settings)
    assert len(run.train) == 12
    assert len(run.accuracies) == 4


@pytest.mark.parametrize(
    ("low", "end", "early", "holds"),
    [
        (12.0, 99.5, 80.0, [True, True, True, True]),
        (30.0, 99.5, 80.0, [False, True, True, True]),
        (12.0, 98.0, 80.0, [True, False, True, True]),
        (12.0, 99.5, 89.0, [True, True, True, False]),
    ],
)
def test_the_ascent_the_training_and_the_room_are_required(
    low: float, end: float, early: float, holds: list[bool]
) -> None:
    """Room: llf at most 100 - 18.54 / 2, normal at most 100 - 25.04 / 2."""
    train = [90.0, 91, 92, 93, low, 50, 60, 99, low, 50, 60, end]
    results = {name: [ProbedRun([], 0, train)] for name in ("seal", "llf", "normal")}
    means: ProbeMeans = {name: ([50, early], 0) for name in results}
    conditions = seal_knn_depth.require_ascent_and_room(results, means, 10.0)
    assert [condition.holds for condition in conditions] == holds
