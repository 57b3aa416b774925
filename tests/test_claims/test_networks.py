"""Claims of NIO, SEAL and weight compander: settings and measures by hand, and tiny runs."""

import math
from typing import Any

import pytest
import torch

from fsbench.backbones.networks import load_architecture
from fsbench.claims import nio_gradcosine, seal_ascent, seal_knn_depth, wc_weights
from fsbench.claims.engine import ClaimJob, ClaimSettings
from fsbench.claims.wc_weights import ARMS, BOUND, FIRST
from fsbench.core import seeding
from pretrain.bases import init_scales
from protocols.analyses.weight_percentiles import WeightSpread


@pytest.mark.parametrize("kind", ["without BN", "with BN"])
def test_nio_is_measured_before_training(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nio_gradcosine, "BATCH", 16)
    monkeypatch.setattr(nio_gradcosine, "STEPS", 2)
    job, bn = ClaimJob((kind, "gc"), 1), kind == "with BN"
    architecture, _, rate, _ = nio_gradcosine.SETTINGS[kind]
    with seeding.stream(*nio_gradcosine.build_nio_recipe(job).stream("init")):
        model = load_architecture(architecture).at(16).build(10)
    zero = {n for n, p in model.named_parameters() if not p.any()}
    assert zero == ({"layer1.1.bias", "layer2.1.bias"} if bn else set())
    effect = nio_gradcosine.measure(job)
    assert effect["zero"] == effect["still zero"] == len(zero)
    assert effect["misfit"] <= 1e-6
    assert 0 < abs(effect["smallest factor"] - 1) <= 2.1 * rate  # two steps of Adam
    assert effect["of a weight"] >= effect["smallest factor"]
    assert effect["GC before"] != effect["GC after"]
    assert -1 <= effect["GC after"] <= 1


def test_a_changed_direction_after_nio_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    write = init_scales.ScaleOptimizer.write

    def turn(self: init_scales.ScaleOptimizer, m: torch.Tensor) -> None:
        write(self, m)
        with torch.no_grad():
            self.live["fc.weight"][0, 0] *= 1.1

    monkeypatch.setattr(init_scales.ScaleOptimizer, "write", turn)
    monkeypatch.setattr(nio_gradcosine, "BATCH", 16)
    monkeypatch.setattr(nio_gradcosine, "STEPS", 1)
    assert nio_gradcosine.measure(ClaimJob(("without BN", "gc"), 0))["misfit"] > 1e-3


def test_settings_of_nio() -> None:
    nio: Any = nio_gradcosine.build_nio_recipe(ClaimJob(("with BN", "gc_gn_sqrt"), 3)).method("nio")
    assert (nio.overlap, nio.rate, nio.gamma) == (0.6, 0.015, 5.0)
    assert (nio.parts, nio.iterations, nio.objective) == (2, 50, "gc_gn_sqrt")


PAPERS_ASCENT = (
    0.01
    * 3125
    * 0.1
    * sum(
        [(e + 1) / 20 / 10 for e in range(20)]
        + [0.05 * (1 + math.cos(math.pi * e / 140)) for e in range(20)]
    )
)
"""S times the sum of the rates over the paper's 40 epochs of 3,125 steps: warm-up, cosine."""


def test_seal_has_the_papers_ratio_and_all_else_is_that_of_the_control() -> None:
    """8 epochs of 44 steps: one of warm-up, then the cosine; two of them ascend."""
    seal = seal_ascent.build_seal_recipe("seal", 8, 1)
    control = seal_ascent.build_seal_recipe("normal", 8, 1)
    assert {**dict(seal), "name": control.name, "methods": control.methods} == dict(control)
    descent = sum(0.05 * (1 + math.cos(math.pi * e / 7)) for e in range(1, 7))
    measured = seal_ascent.measure_ascent(seal, 1437)
    expected = {"S": 0.01, "length": 0.01 * 2 * 44 * 0.1, "ratio": descent / 0.2 / 0.01}
    assert measured == pytest.approx(expected)
    longer = seal_ascent.measure_ascent(seal_ascent.lengthen_ascent(seal, 1437), 1437)
    assert longer["length"] == pytest.approx(PAPERS_ASCENT)
    assert longer["ratio"] == pytest.approx(measured["ratio"] * measured["length"] / PAPERS_ASCENT)


def test_the_moments_of_a_generation() -> None:
    trace = [float(epoch) for epoch in range(48)]
    for generation, generations, expected in ((2, 3, (15, 19, 31)), (2, 2, (23, 29, 47))):
        moments = seal_ascent.extract_moments(trace, generation, generations)
        assert moments == dict(zip(("before", "low", "end"), expected, strict=True))


def test_the_full_run_has_the_papers_recipes_and_ascent(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a source that is generated, then with a small network."""
    monkeypatch.setitem(seal_knn_depth.FULL_FIELDS, "source", "toy_source")
    job = ClaimJob("seal", 100, ClaimSettings(full=True))
    recipe, source = seal_knn_depth.prepare_full(job)
    assert (recipe.plan.rounds, recipe.plan.epochs, recipe.seed) == (2, 160, 100)
    assert (recipe.architecture, len(source.train)) == ("seal_resnet50", 3000)
    measured = seal_ascent.measure_ascent(recipe, seal_ascent.PAPERS_IMAGES)
    assert measured["length"] == pytest.approx(PAPERS_ASCENT)
    small = {"architecture": "toy_resnet", "input_size": 16, "plan.epochs": 4}
    for name, value in {**small, "plan.epoch_images": 64}.items():
        monkeypatch.setitem(seal_knn_depth.FULL_FIELDS, name, value)
    run: Any = seal_knn_depth.measure(job)
    assert (len(run["accuracy of the probe (%)"]), run["chance"]) == (4, 5)


def test_quantities_of_weights_by_hand() -> None:
    """Two epochs: the peak comes first, the rest is read at the end."""

    def spread(largest: float, dead: float, width: float) -> WeightSpread:
        lines = (-1.0, -0.9, -width / 2, -width / 8, 0.0, width / 8, width / 2, 0.9, 1.0)
        return WeightSpread(100, lines, largest, dead)

    first = {FIRST: spread(2.0, 0.9, 0.1), "layer1.0.conv1": spread(0.1, 0.9, 0.1)}
    last = {FIRST: spread(1.0, 0.2, 0.4), "layer1.0.conv1": spread(0.1, 0.3, 0.1)}
    whole = {"all": spread(0.1, 0.99, 0.1)}
    weights = wc_weights.summarize_weights([first | whole, last | whole])
    assert (weights["largest"], weights["largest |w|"]) == (2.0, [2.0, 1.0])
    assert weights["peak"] == pytest.approx(2.0 / BOUND)
    assert (weights["dead"], weights["later"], weights["width"]) == pytest.approx((20, 30, 0.4))
    assert weights["w"]["84 %"] == [0.05, 0.2]
    assert len(weights["start"]) == 3 * 9


def test_the_control_has_the_rate_of_the_compander_at_zero_and_the_rest_is_the_papers() -> None:
    plain, wc, control = (wc_weights.build_compander_recipe(ClaimJob(arm, 0)) for arm in ARMS)
    assert plain.lr == wc.lr == 0.1
    assert control.lr == pytest.approx(0.1 * 2.56)
    assert control.replace({"lr": 0.1}) == plain
    compander: Any = wc.method("weight_compander")
    assert (compander.a, compander.b, compander.decays) == (0.8, 0.5, "w")
    assert pytest.approx(1.2566, abs=1e-4) == BOUND
    assert (plain.weight_decay, plain.schedule, plain.milestones) == (1e-4, "step", (0.45, 0.68))
    network = load_architecture(plain.architecture).build(10, plain.width)
    limit = (6 / 27) ** 0.5  # kaiming-uniform: sqrt(6 / fan-in)
    assert 0.95 * limit < network.state_dict()["conv1.weight"].abs().max() <= limit
