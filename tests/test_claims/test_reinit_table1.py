"""Table 1 on synthetic data: its data, its gradient descent, its verdicts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from support.claims import judge_planted
from torch.nn import functional

from fsbench.backbones.networks import load_architecture
from fsbench.claims import _synthetic, reinit_table1
from fsbench.claims.engine import ClaimJob, Runs
from fsbench.claims.reinit_table1 import CLAIM, PUBLISHED, TABLE
from fsbench.core import seeding


def vectors(signal: float = 2.0, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    split = _synthetic.draw_split(signal, n, "test", 0)
    return split.images.reshape(n, -1), split.labels


def test_three_values_carry_the_bits_of_the_label_the_rest_is_noise() -> None:
    x, y = vectors()
    assert set(y) == set(range(8))
    for bit in range(3):
        assert np.array_equal(x[:, bit], np.where(y & 2**bit, 2.0, -2.0))
    noise = x[:, 3:128].astype(np.float64)
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 1) < 0.02
    assert not x[:, 128:].any()


def test_seeds_and_parts_differ_signals_share_their_noise() -> None:
    one, other, strong = (_synthetic.draw_source(*a) for a in ((1.0, 0), (1.0, 1), (2.0, 0)))
    assert not np.array_equal(one.train.images, other.train.images)
    assert not np.array_equal(one.train.labels, one.val.labels[:256])
    assert np.array_equal(one.train.labels, strong.train.labels)
    assert (len(one.train), len(one.val)) == (256, 2000)


def test_a_run_is_gradient_descent_from_glorot_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Against descent written out here: same weights after 2 rounds of 3 steps."""
    from safetensors.torch import load_file

    from pretrain.training.loop import train_recipe

    monkeypatch.setattr(_synthetic, "ROUNDS", 2)
    monkeypatch.setattr(_synthetic, "STEPS", 3)
    recipe, source = _synthetic.build_column_recipe("BL", 5), _synthetic.draw_source(1.0, 5)
    weights = load_file(train_recipe(recipe, source, tmp_path / "run") / "model.safetensors")
    with seeding.stream(*recipe.stream("init")):
        model = load_architecture("study_mlp").build(8)
    w = [p.detach().double() for p in model.parameters()]
    assert [tuple(p.shape) for p in w] == [(32, 128), (32,), (32, 32), (32,), (8, 32), (8,)]
    assert all(not b.any() for b in w[1::2])
    for kernel in w[::2]:
        bound = (6 / sum(kernel.shape)) ** 0.5
        assert 0.9 * bound < kernel.abs().max() <= bound
    x = torch.from_numpy(source.train.images.reshape(256, -1)[:, :128].astype(np.float64))
    y = torch.from_numpy(source.train.labels)
    for _ in range(6):
        w = [p.requires_grad_() for p in w]
        z = (((x @ w[0].T + w[1]).relu()) @ w[2].T + w[3]).relu() @ w[4].T + w[5]
        gradients = torch.autograd.grad(functional.cross_entropy(z, y), w)
        w = [(p - 0.05 * g).detach() for p, g in zip(w, gradients, strict=True)]
    for ours, reference in zip((weights[n] for n, _ in model.named_parameters()), w, strict=True):
        torch.testing.assert_close(ours.double(), reference, rtol=1e-5, atol=1e-6)


def test_the_distribution_of_initial_weights() -> None:
    with seeding.stream("laws"):
        first = next(load_architecture("study_mlp").build(8).parameters())
    assert first.std().item() == pytest.approx((2 / (128 + 32)) ** 0.5, rel=0.05)


@pytest.mark.parametrize("method", list(_synthetic.METHODS))
def test_every_method_trains_and_is_scored(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_synthetic, "STEPS", 2)
    job = ClaimJob((method, 2.0), 0)
    first = reinit_table1.measure(job)
    assert first == reinit_table1.measure(job)
    assert all(0 < accuracy < 100 for accuracy in first.values())


def plant(**means: float) -> dict[tuple[str, float], list[dict[str, float]]]:
    """The printed table, but for these methods; two seeds .1 above and below."""
    runs = {}
    for method, signal in TABLE:
        mean = means.get(method, PUBLISHED[signal][method][0])
        runs[method, signal] = [{"test": mean + d, "fit": 99.5} for d in (-0.1, 0.1)]
    return runs


def test_the_printed_table_is_reproduced() -> None:
    table = judge_planted(CLAIM, plant())["table"]
    assert len(table.figures) == 18
    assert table.figures[9].what == "signal 1: WELS"
    assert (table.figures[9].published, table.figures[9].ours) == ("66.1 ± 2.1", "66.1 ± 0.1")
    assert (table.verdict, table.conditions[0].ours) == ("reproduced", "99.5 %")


@pytest.mark.parametrize(
    ("method", "mean", "verdict"),
    [
        ("LW", 72.0, "reproduced"),  # within 2 sqrt(3.6^2 + .14^2) of 72.3
        ("LW", 60.0, "direction only"),
        ("LW", 50.0, "not reproduced"),
        ("BL", 70.0, "not reproduced"),
    ],
)
def test_the_verdict_on_a_mean(method: str, mean: float, verdict: str) -> None:
    """The baseline, 50.7 in the paper, has no direction."""
    runs = plant(**{method: mean})
    assert reinit_table1.judge_method(Runs(runs), method, 1.0).verdict == verdict


def test_the_baseline_must_fit_whatever_the_others_do() -> None:
    for arm, holds in ((("BL", 2.0), False), (("LW", 2.0), True)):
        runs = plant()
        runs[arm][1]["fit"] = 98.0
        assert judge_planted(CLAIM, runs)["table"].conditions[0].holds == holds
