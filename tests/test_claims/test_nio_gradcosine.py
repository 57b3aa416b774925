"""The claim of NIO: verdicts on made-up numbers, and the measurement of a real network."""

from typing import Any

import pytest
import torch
from support.claims import judge_planted, list_verdicts

from fsbench.backbones.networks import load_architecture
from fsbench.claims import nio_gradcosine
from fsbench.claims.engine import ClaimJob
from fsbench.claims.nio_gradcosine import CLAIM, SETTINGS, has_valid_factors
from fsbench.core import seeding

GAMMA = SETTINGS["with BN"][-1]


def make_effect(
    gc: tuple[float, float] = (0.2, 0.4), gn: tuple[float, float] = (1.0, 4.0), **quantities: Any
) -> dict[str, Any]:
    factors = quantities.get("factors", {"fc.weight": 1.5})
    effect = {"GC": gc, "GN": gn, "GN after": gn[1], "misfit": 0.0, "zero": 2, "still zero": 2}
    return effect | {"factors": factors, "smallest factor": min(factors.values())} | quantities


def judge_effects(*effects: dict[str, Any]) -> list[Any]:
    """Outcomes of the two objectives, with the same effects of both networks under both."""
    runs = {(kind, objective): effects for kind in SETTINGS for objective in CLAIM.statements}
    return list(judge_planted(CLAIM, runs).values())


def verdicts(*effects: dict[str, Any]) -> tuple[list[str], ...]:
    """Verdicts on the network with batch norm under the objectives gc and gc_gn_sqrt."""
    return tuple(list_verdicts(outcome.figures[3:]) for outcome in judge_effects(*effects))


GOOD = make_effect()
FULL = ["reproduced"] * 3


def test_effects_as_in_the_paper_are_reproduced() -> None:
    assert verdicts(GOOD, GOOD) == (FULL, FULL)
    gc, gn = judge_effects(GOOD, make_effect(gc=(0.4, 0.7)))
    assert gc.figures[3].ours == "0.300 to 0.550"
    assert [figure.what.split(":")[0] for figure in gn.figures] == [
        *["without BN"] * 3,
        *["with BN"] * 3,
    ]
    assert gn.figures[5].ours == "smallest 1.500; off by 0; 4 of 4 zero tensors stay"


def test_cosine_is_judged_under_the_objective_gc_alone() -> None:
    assert verdicts(make_effect(gc=(0.4, 0.2))) == (["not reproduced", *FULL[1:]], FULL)


def test_the_norm_must_come_nearer_to_the_cap_and_not_pass_it() -> None:
    assert verdicts(make_effect(gn=(2.0, 1.0))) == (FULL, ["not reproduced", *FULL[1:]])
    assert verdicts(make_effect(gn=(9.0, 5.2))) == (FULL, FULL)
    passed = verdicts(GOOD, make_effect(gn=(9.0, 1.11 * GAMMA)))
    assert [by_objective[1] for by_objective in passed] == ["not reproduced"] * 2


@pytest.mark.parametrize(
    "broken",
    [
        make_effect(misfit=1e-3),
        make_effect(**{"still zero": 1}),
        make_effect(factors={"fc.weight": 0.009, "fc.bias": 1.0}),
        make_effect(factors={"fc.weight": 1.0, "fc.bias": -0.1}),
    ],
)
def test_a_tensor_that_is_not_one_allowed_factor_fails(broken: dict[str, Any]) -> None:
    assert [v[2] for v in verdicts(GOOD, broken)] == ["not reproduced"] * 2


def test_the_factor_of_a_bias_may_be_zero() -> None:
    assert has_valid_factors(make_effect(factors={"fc.weight": 0.01, "fc.bias": 0.0}))


@pytest.mark.parametrize(
    ("effect", "holds"),
    [
        (make_effect(gn=(1.0, 4.0)), [True, True, True]),
        (make_effect(gc=(0.995, 0.999)), [False, True, True]),
        (make_effect(gn=(6.0, 4.0)), [True, False, True]),
        (make_effect(gn=(1.0, 2.0)), [True, True, False]),
    ],
)
def test_gradients_must_be_apart_and_the_cap_within_reach(
    effect: dict[str, Any], holds: list[bool]
) -> None:
    conditions = [c for outcome in judge_effects(effect) for c in outcome.conditions]
    assert [condition.holds for condition in conditions] == holds


def test_some_seed_of_every_network_must_come_near_the_cap() -> None:
    near, far = make_effect(gn=(1.0, 4.0)), make_effect(gn=(1.0, 2.0))
    assert judge_effects(near, far)[1].conditions[1].ours == "0.8"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nio_gradcosine, "BATCH", 16)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", ["without BN", "with BN"])
def test_a_real_run_is_measured_before_training(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nio_gradcosine, "STEPS", 2)
    job = ClaimJob((kind, "gc"), 1)
    effect = nio_gradcosine.measure(job)
    bn = kind == "with BN"
    with seeding.stream(*nio_gradcosine.build_nio_recipe(job).stream("init")):
        model = load_architecture(SETTINGS[kind][0]).at(16).build(10)
    zero = {n for n, p in model.named_parameters() if not p.any()}
    assert zero == ({"layer1.1.bias", "layer2.1.bias"} if bn else set())
    assert set(effect["factors"]) == {n for n, _ in model.named_parameters()} - zero
    assert effect["zero"] == effect["still zero"] == len(zero)
    assert effect["misfit"] <= 1e-6
    rate = SETTINGS[kind][2]
    first = {abs(m - 1) for m in effect["factors"].values()}
    assert 0 < max(first) <= 2.1 * rate  # two steps of Adam
    assert effect["GC"][0] != effect["GC"][1] == effect["GC after"]
    assert -1 <= effect["GC after"] <= 1


@pytest.mark.usefixtures("few")
def test_the_measurement_detects_a_changed_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    from pretrain.bases import init_scales

    write = init_scales.ScaleOptimizer.write

    def turned(self: init_scales.ScaleOptimizer, m: torch.Tensor) -> None:
        write(self, m)
        with torch.no_grad():
            self.live["fc.weight"][0, 0] *= 1.1

    monkeypatch.setattr(init_scales.ScaleOptimizer, "write", turned)
    monkeypatch.setattr(nio_gradcosine, "STEPS", 1)
    effect = nio_gradcosine.measure(ClaimJob(("without BN", "gc"), 0))
    assert effect["misfit"] > 1e-3
    assert not has_valid_factors(effect)


def test_settings_of_the_appendix() -> None:
    job = ClaimJob(("with BN", "gc_gn_sqrt"), 3)
    recipe: Any = nio_gradcosine.build_nio_recipe(job).method("nio")
    assert (recipe.parts, recipe.batch_size, recipe.overlap) == (2, 128, 0.6)
    assert (recipe.rate, recipe.gamma, recipe.iterations) == (0.015, 5.0, 50)
    assert recipe.objective == "gc_gn_sqrt"
    job = ClaimJob(("without BN", "gc"), 3)
    other: Any = nio_gradcosine.build_nio_recipe(job).method("nio")
    assert (other.overlap, other.rate, other.gamma) == (0.7, 0.015, 4.0)
