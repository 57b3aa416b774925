"""The claim of NIO: verdicts on made-up numbers, and the inspection of a real network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.claims import ClaimSettings, _runs, judge_gains, nio_gradcosine
from fsbench.claims.nio_gradcosine import (
    FAST,
    SETTINGS,
    STEPS,
    NioEffect,
    NioJob,
    has_valid_factors,
    judge_alignment,
    judge_norm,
    run_nio,
)
from fsbench.core import seeding
from fsbench.core.progress import Reporter

KIND = "with BN"
GAMMA = SETTINGS[KIND].gamma


def learned(
    gc: tuple[float, float] = (0.2, 0.4),
    gn: tuple[float, float] = (1.0, 4.0),
    factors: Mapping[str, float] | None = None,
    misfit: float = 0.0,
    zeros: tuple[int, int] = (2, 2),
) -> NioEffect:
    return NioEffect((gc[0], gn[0]), (gc[1], gn[1]), factors or {"fc.weight": 1.5}, misfit, zeros)


def verdicts(*effects: NioEffect) -> tuple[list[str], list[str]]:
    """Verdicts under the objectives gc and gc_gn_sqrt."""
    aligned, norm = judge_alignment(KIND, effects), judge_norm(KIND, effects)
    return [figure.verdict for figure in aligned], [figure.verdict for figure in norm]


GOOD = learned()
FULL = ["reproduced"] * 3


def test_effects_as_in_the_paper_are_reproduced() -> None:
    assert verdicts(GOOD, GOOD) == (FULL, FULL)


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ((0.1, 0.2), "reproduced"),
        ((0.3, -0.1), "direction only"),
        ((0.1, -0.3), "not reproduced"),
        ((0.0, 0.0), "not reproduced"),
    ],
)
def test_every_seed_or_the_mean_must_gain(gains: tuple[float, ...], verdict: str) -> None:
    assert judge_gains(gains) == verdict


def test_cosine_is_judged_under_the_objective_gc_alone() -> None:
    assert verdicts(learned(gc=(0.4, 0.2))) == (["not reproduced", *FULL[1:]], FULL)


def test_the_norm_must_come_nearer_to_the_cap_and_not_pass_it() -> None:
    assert verdicts(learned(gn=(2.0, 1.0))) == (FULL, ["not reproduced", *FULL[1:]])
    assert verdicts(learned(gn=(9.0, 5.2))) == (FULL, FULL)
    passed = verdicts(GOOD, learned(gn=(9.0, 1.11 * GAMMA)))
    assert [by_objective[1] for by_objective in passed] == ["not reproduced"] * 2


@pytest.mark.parametrize(
    "broken",
    [
        learned(misfit=1e-3),
        learned(zeros=(2, 1)),
        learned(factors={"fc.weight": 0.009, "fc.bias": 1.0}),
        learned(factors={"fc.weight": 1.0, "fc.bias": -0.1}),
    ],
)
def test_a_tensor_that_is_not_one_allowed_factor_fails(broken: NioEffect) -> None:
    assert [v[2] for v in verdicts(GOOD, broken)] == ["not reproduced"] * 2


def test_the_factor_of_a_bias_may_be_zero() -> None:
    assert has_valid_factors(learned(factors={"fc.weight": 0.01, "fc.bias": 0.0}))


def test_the_longest_runs_are_judged_and_all_are_plotted(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up(
        one: Callable[[NioJob], NioEffect],
        jobs: Sequence[NioJob],
        settings: ClaimSettings,
        name: str,
        report: Reporter,
    ) -> list[NioEffect]:
        assert len(set(jobs)) == len(jobs) == 2 * (2 * 2 * 2 + 1)
        seeds = [job.seed - 100 for job in jobs]
        return [
            learned((0.2, 0.2 + job.steps / 100 + seed / 10), (1.0, 3.8))
            for job, seed in zip(jobs, seeds, strict=True)
        ]

    monkeypatch.setattr(_runs, "run_jobs", made_up)
    outcome = nio_gradcosine.run(ClaimSettings(2))
    alignment, norm = outcome.statements
    assert [condition.ours for condition in alignment.conditions] == ["0.2"]
    assert [condition.ours for condition in norm.conditions] == ["0.25", "0.76"]
    for statement in (alignment, norm):
        networks = [figure.what.split(":")[0] for figure in statement.figures]
        assert networks == [*["without BN"] * 3, *["with BN"] * 3]
    assert alignment.figures[0].ours == "0.200 to 0.750"
    assert alignment.verdict == "reproduced"
    assert outcome.panels[0].curves[0].x == (0, *STEPS)
    assert outcome.panels[0].curves[0].y == pytest.approx((0.2, 0.5, 0.75))
    assert outcome.panels[1].curves[0].y == pytest.approx((1, 3.8, 3.8))
    notes = "\n".join(outcome.notes)
    assert f"{FAST}, gc: GC 0.200 to 0.750" in notes
    assert f"{FAST}, gc_gn" not in notes


@pytest.mark.parametrize(
    ("effect", "holds"),
    [
        (learned(gn=(1.0, 4.0)), [True, True, True]),
        (learned(gc=(0.995, 0.999)), [False, True, True]),
        (learned(gn=(6.0, 4.0)), [True, False, True]),
        (learned(gn=(1.0, 2.0)), [True, True, False]),
    ],
)
def test_gradients_must_be_apart_and_the_cap_within_reach(
    effect: NioEffect, holds: list[bool]
) -> None:
    runs = {kind: {"gc": [effect], "gc_gn_sqrt": [effect]} for kind in SETTINGS}
    room, cap = nio_gradcosine._require_room(runs), nio_gradcosine._require_near_cap(runs)
    assert [condition.holds for condition in (room, *cap)] == holds


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nio_gradcosine, "BATCH", 16)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", ["without BN", "with BN"])
def test_a_real_run_is_inspected_before_training(kind: str) -> None:
    job = NioJob(kind, "gc", 2, 1)
    effect = run_nio(job)
    bn = kind == "with BN"
    with seeding.stream(*nio_gradcosine.build_nio_recipe(job).stream("init")):
        model = ARCHITECTURES.load(SETTINGS[kind].architecture).at(16).build(10)
    zero = {n for n, p in model.named_parameters() if not p.any()}
    assert zero == ({"layer1.1.bias", "layer2.1.bias"} if bn else set())
    assert set(effect.factors) == {n for n, _ in model.named_parameters()} - zero
    assert effect.zeros == (len(zero), len(zero))
    assert effect.misfit <= 1e-6
    rate = SETTINGS[kind].rate
    first = {abs(m - 1) for m in effect.factors.values()}
    assert 0 < max(first) <= 2.1 * rate  # two steps of Adam
    assert effect.before[0] != effect.after[0]
    assert -1 <= effect.after[0] <= 1


@pytest.mark.usefixtures("few")
def test_inspection_detects_a_changed_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    from pretrain.weights import init_scales

    write = init_scales.ScaleOptimizer.write

    def turned(self: init_scales.ScaleOptimizer, m: torch.Tensor) -> None:
        write(self, m)
        with torch.no_grad():
            self.live["fc.weight"][0, 0] *= 1.1

    monkeypatch.setattr(init_scales.ScaleOptimizer, "write", turned)
    effect = run_nio(NioJob("without BN", "gc", 1, 0))
    assert effect.misfit > 1e-3
    assert not has_valid_factors(effect)


def test_settings_of_the_appendix() -> None:
    recipe: Any = nio_gradcosine.build_nio_recipe(NioJob("with BN", "gc_gn_sqrt", 50, 3)).method(
        "nio"
    )
    assert (recipe.parts, recipe.batch_size, recipe.overlap) == (2, 128, 0.6)
    assert (recipe.rate, recipe.gamma, recipe.iterations) == (0.015, 5.0, 50)
    assert recipe.objective == "gc_gn_sqrt"
    other: Any = nio_gradcosine.build_nio_recipe(NioJob("without BN", "gc", 50, 3)).method("nio")
    assert (other.overlap, other.rate, other.gamma) == (0.7, 0.015, 4.0)
