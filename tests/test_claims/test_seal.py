"""SEAL's claims: set-up by hand, verdicts in both directions, a tiny real run of each."""

import math
from typing import Any

import pytest
from support.claims import judge_planted, list_verdicts

from fsbench.claims import seal_ascent, seal_knn_depth
from fsbench.claims.engine import ClaimJob, ClaimSettings, Runs
from fsbench.claims.seal_ascent import ARMS, extract_moments
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
    assert extract_moments(trace, 1) == (15, 19, 31)
    assert extract_moments(trace, 2) == (31, 35, 47)


def plant(low: float, after: float = 99.0) -> dict[str, list[dict[str, Any]]]:
    """Two seeds; the second ascent of the matched strength falls to `low` and ends at `after`."""

    def trace(low: float, after: float) -> list[float]:
        return [99.0] * 16 + [50, 50, 50, 12, *[99.0] * 12] + [50, 50, 50, low, *[after] * 12]

    return {
        arm: [{"training accuracy (%)": trace(*((low, after) if arm == "matched" else (99, 99)))}]
        * 2
        for arm in ARMS
    }


@pytest.mark.parametrize(
    ("low", "after", "verdicts"),
    [
        (20.0, 94.0, ["reproduced", "reproduced"]),
        (49.0, 75.0, ["direction only", "direction only"]),
        (50.0, 60.0, ["not reproduced", "not reproduced"]),
        (99.0, 99.0, ["not reproduced", "not reproduced"]),
    ],
)
def test_fall_and_return_of_the_matched_strength(
    low: float, after: float, verdicts: list[str]
) -> None:
    (outcome,) = judge_planted(seal_ascent.CLAIM, plant(low, after)).values()
    assert list_verdicts(outcome.figures) == ["reproduced", "reproduced", *verdicts]
    assert outcome.conditions[0].ours == "99 %"


def test_an_ascent_through_the_real_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_ascent, "EPOCHS", 4)
    monkeypatch.setattr(seal_ascent, "IMAGES", 64)
    monkeypatch.setitem(ARMS, "stronger", 100.0)
    gentle, strong = (seal_ascent.measure(ClaimJob(arm, 0)) for arm in ("paper's", "stronger"))
    assert gentle["S"] == seal_ascent.PAPERS_S
    assert strong["S"] == 100 * seal_ascent.match_factor(4, 64)
    gentle, strong = (run["training accuracy (%)"] for run in (gentle, strong))
    assert len(gentle) == len(strong) == 12
    assert gentle[:4] == strong[:4]
    assert min(strong[4:]) < min(gentle[4:])


PRINTED = {
    "seal": ([80.0, 90.0, 95.0, 97.0], 0.5),
    "llf": ([70.0, 71.4, 90.0, 96.0], 1.0),
    "normal": ([60.0, 64.9, 80.0, 95.0], 2.0),
}


def plant_probes(
    means: dict[str, tuple[list[float], float]], **quantities: float
) -> dict[str, list[dict[str, Any]]]:
    """One seed; the ascent reaches chance and all images are learned unless stated."""
    values = {"fit": 99.5, "low": 12.0, "chance": 10.0, **quantities}
    return {
        name: [{"accuracy of the probe (%)": accuracies, "depth": depth, **values}]
        for name, (accuracies, depth) in means.items()
    }


def test_probes_as_the_paper_has_them_are_reproduced() -> None:
    (outcome,) = judge_planted(seal_knn_depth.CLAIM, plant_probes(PRINTED)).values()
    assert list_verdicts(outcome.figures) == ["reproduced"] * 6
    assert outcome.figures[0].ours == "+18.60"
    assert outcome.figures[2].what == "block 1: accuracy (%)"


def test_reversed_probes_are_not_reproduced() -> None:
    runs = plant_probes({**PRINTED, "seal": PRINTED["normal"], "normal": PRINTED["seal"]})
    (outcome,) = judge_planted(seal_knn_depth.CLAIM, runs).values()
    assert set(list_verdicts(outcome.figures)) == {"not reproduced"}


@pytest.mark.parametrize(
    ("lead", "verdict"), [(9.3, "reproduced"), (1.0, "direction only"), (0.0, "not reproduced")]
)
def test_half_of_a_printed_lead_is_enough(lead: float, verdict: str) -> None:
    means = {**PRINTED, "seal": ([80.0, 71.4 + lead, 95.0, 97.0], 0.5)}
    assert next(seal_knn_depth.judge_probes(Runs(plant_probes(means)))).verdict == verdict


@pytest.mark.parametrize(
    ("depths", "verdict"),
    [
        ((1.0, 2.0, 3.0), "reproduced"),
        ((1.0, 3.0, 2.0), "direction only"),
        ((2.0, 1.0, 3.0), "not reproduced"),
    ],
)
def test_the_verdict_on_the_depths(depths: tuple[float, float, float], verdict: str) -> None:
    means = {m: (PRINTED[m][0], depth) for m, depth in zip(PRINTED, depths, strict=True)}
    assert list(seal_knn_depth.judge_probes(Runs(plant_probes(means))))[-1].verdict == verdict


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
    means = {name: ([50, early, 50, 50], 0.0) for name in PRINTED}
    runs = plant_probes(means, low=low)
    runs["llf"][0]["fit"] = end
    runs["seal"].append({**runs["seal"][0], "low": 12.0})  # another seed
    (outcome,) = judge_planted(seal_knn_depth.CLAIM, runs).values()
    assert [condition.holds for condition in outcome.conditions] == holds


def test_a_real_run_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_knn_depth, "EPOCHS", 4)
    monkeypatch.setattr(seal_knn_depth, "IMAGES", 64)
    runs = [seal_knn_depth.measure(ClaimJob(name, 100)) for name in seal_knn_depth.METHODS]
    assert [len(run["accuracy of the probe (%)"]) for run in runs] == [4] * len(runs)
    assert all(0 <= run["depth"] <= 4 and run["chance"] == 10 for run in runs)
    assert runs[3]["low"] == 100  # of one generation


def test_the_full_run_shortens_the_papers_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a source that is generated: 2 classes of the toy source, a small network."""
    small: dict[str, object] = {"architecture": "toy_resnet", "input_size": 16, "plan.epochs": 4}
    monkeypatch.setattr(seal_knn_depth, "FULL_SOURCE", "toy_source")
    monkeypatch.setattr(seal_knn_depth, "FULL_SUBSET", SourceSubset(classes=2, images_per_class=32))
    monkeypatch.setitem(seal_knn_depth.FULL_FIELDS, "plan.epochs", 40)
    job = ClaimJob("seal", 100, ClaimSettings(full=True))
    chosen, source = seal_knn_depth.prepare_full(job)
    assert (chosen.plan.rounds, chosen.plan.epochs, chosen.seed) == (3, 40, 100)
    assert (chosen.architecture, len(source.train)) == ("seal_resnet50", 64)
    ascent = chosen.method("seal").ascent_factor * sum_rates(chosen, 10, 64)  # type: ignore[attr-defined]
    papers = math.fsum((e + 1) / 20 for e in range(20))
    papers += math.fsum(0.5 * (1 + math.cos(math.pi * e / 140)) for e in range(20))
    assert ascent == pytest.approx(0.01 * papers * 3125 * 0.01)
    for name, value in small.items():
        monkeypatch.setitem(seal_knn_depth.FULL_FIELDS, name, value)
    run = seal_knn_depth.measure(job)
    assert len(run["accuracy of the probe (%)"]) == 4
    assert run["chance"] == 50
