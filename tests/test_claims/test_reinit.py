"""Claims of the reinitialization study: synthetic data, gradient descent by hand, Table 2."""

from math import comb
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from fsbench.backbones.networks import load_architecture
from fsbench.claims import (
    CLAIMS,
    _synthetic,
    load_recorded,
    reinit_figure2,
    reinit_table1,
    reinit_table3,
    reinit_table5,
)
from fsbench.claims.engine import ClaimSettings, run_claims
from fsbench.core import seeding
from pretrain.recipes.reinit_study import load_table2, table2_methods, table2_networks
from pretrain.training.loop import train_recipe


def test_three_values_carry_the_bits_of_the_label_the_rest_is_noise_of_the_seed() -> None:
    split = _synthetic.draw_split(2.0, 400, "test", 0)
    x, y = split.images.reshape(400, -1), split.labels
    assert set(y) == set(range(8))
    for bit in range(3):
        assert np.array_equal(x[:, bit], np.where(y & 2**bit, 2.0, -2.0))
    noise = x[:, 3:128].astype(np.float64)
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 1) < 0.02
    assert not x[:, 128:].any()
    one, other, strong = (_synthetic.draw_source(*a) for a in ((1.0, 0), (1.0, 1), (2.0, 0)))
    assert (len(one.train), len(one.val)) == (256, 2000)
    assert not np.array_equal(one.train.images, other.train.images)
    assert not np.array_equal(one.train.labels, one.val.labels[:256])
    assert np.array_equal(one.train.labels, strong.train.labels)


@pytest.mark.parametrize(("steps", "per_round", "penalty"), [(6, None, 0.0), (10, 2, 0.1)])
def test_a_run_is_gradient_descent_from_glorot_weights(
    steps: int,
    per_round: int | None,
    penalty: float,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Against descent written out here, on the loss plus `penalty` times the sum of the squares.

    per_round: steps after which kernels are scaled to their initial norm.
    """
    monkeypatch.setattr(_synthetic, "ROUNDS", 2)
    monkeypatch.setattr(_synthetic, "STEPS", 3)
    monkeypatch.setattr(reinit_table5, "STEPS", 10)
    recipe, source = reinit_table1.build_table1_recipe("BL", 5), _synthetic.draw_source(1.0, 5)
    if penalty:
        recipe = reinit_table5.build_table5_recipe("Rescaling", penalty, 5)
        recipe = recipe.replace({"optimizer": "sgd", "lr": 0.05, "l2.half": False})
    weights = load_file(train_recipe(recipe, source, tmp_path / "run") / "model.safetensors")
    with seeding.stream(*recipe.stream("init")):
        model = load_architecture("study_mlp").build(8)
    w = [p.detach().double() for p in model.parameters()]
    assert [tuple(p.shape) for p in w] == [(32, 128), (32,), (32, 32), (32,), (8, 32), (8,)]
    assert all(not b.any() for b in w[1::2])
    for kernel in w[::2]:
        bound = (6 / sum(kernel.shape)) ** 0.5
        assert 0.9 * bound < kernel.abs().max() <= bound
    norms = [float(p.norm()) for p in w]
    x = torch.from_numpy(source.train.images.reshape(256, -1)[:, :128].astype(np.float64))
    y = torch.from_numpy(source.train.labels)
    for step in range(steps):
        if per_round and step and step % per_round == 0:
            w = [p * (n / p.norm()) if p.ndim == 2 else p for p, n in zip(w, norms, strict=True)]
        w = [p.requires_grad_() for p in w]
        z = (((x @ w[0].T + w[1]).relu()) @ w[2].T + w[3]).relu() @ w[4].T + w[5]
        loss = functional.cross_entropy(z, y) + penalty * sum((p**2).sum() for p in w[::2])
        gradients = torch.autograd.grad(loss, w)
        w = [(p - 0.05 * g).detach() for p, g in zip(w, gradients, strict=True)]
    for ours, reference in zip((weights[n] for n, _ in model.named_parameters()), w, strict=True):
        torch.testing.assert_close(ours.double(), reference, rtol=1e-5, atol=1e-6)


def test_settings_of_table_5() -> None:
    plain = reinit_table5.build_table5_recipe("Baseline", 0.0, 3)
    assert (plain.plan.rounds, plain.plan.epochs, plain.seed) == (1, 5, 3)
    assert plain.name == "paper/normal"
    ours = reinit_table5.build_table5_recipe("LW", 0.02, 0)
    assert (ours.plan.rounds, ours.plan.epochs, ours.plan.epoch_images) == (5, 1, 360 * 256)
    assert (ours.optimizer, ours.lr, ours.weight_decay) == ("adam", 1e-2, 0.0)
    assert ours.method("lw").model_dump()["order"] == (1, 1, 2, 2, 2)
    assert ours.method("l2").model_dump() == {"lam": 0.02, "half": True, "on": "kernels"}


@pytest.mark.parametrize("network", table2_networks())
def test_p_values_are_exact_and_corrected_step_down(network: str) -> None:
    """Against sums of binomial coefficients and Holm's correction, written out."""
    comparisons = reinit_table3.compare_methods(network)
    rank = {method: i for i, method in enumerate(table2_methods())}
    pairs = [comparison for (a, b), comparison in comparisons.items() if rank[a] < rank[b]]
    assert len(pairs) == 15
    largest = 0.0
    for i, pair in enumerate(sorted(pairs, key=lambda pair: pair.p)):
        n = pair.wins + pair.losses
        tail = sum(comb(n, k) for k in range(min(pair.wins, pair.losses) + 1))
        assert pair.p == pytest.approx(min(1.0, 2 * tail / 2**n))
        largest = max(largest, min(1.0, (15 - i) * pair.p))
        assert pair.holm == pytest.approx(largest)


def test_the_best_method_of_a_tie_has_the_smaller_error() -> None:
    tied = next(r for r in load_table2() if r[:3] == ("plain", "birds2010", "resnet50"))
    assert [m for m, v in tied.accuracy.items() if v == 10.0] == ["DSD", "WELS", "LW"]
    assert reinit_figure2.select_best_method(tied) == "DSD"


@pytest.mark.parametrize("name", ["reinit_table3", "reinit_figure2"])
def test_claims_without_training_give_the_recorded_outcome(name: str) -> None:
    recorded = load_recorded(name)
    [outcome] = run_claims([CLAIMS.load(name)], ClaimSettings(seeds=7))
    assert recorded is not None
    assert (outcome.statements, outcome.notes) == (recorded.statements, recorded.notes)
    assert outcome.seeds == 0
