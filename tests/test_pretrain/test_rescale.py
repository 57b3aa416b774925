"""Rescaling restores the initial norm of every layer and changes nothing else."""

import math
from pathlib import Path

import pytest
import torch
from support.events import (
    at_event,
    bare,
    changed,
    kernel_names,
    open_round,
    tensors,
    train_round,
)
from support.pretrain import lines, tiny, trainer
from torch import nn

from fsbench.core.seeding import stream
from pretrain.methods.rescale import restore_sizes
from pretrain.weights import surgery


def test_norms_return_to_their_initial_values_and_directions_stay(tmp_path: Path) -> None:
    start = tensors(trainer(tiny("rescale"), tmp_path / "start"))
    made, before, after = at_event("rescale", tmp_path / "run", "lr=0.2")
    assert changed(before, after) == kernel_names(made)
    for name in kernel_names(made):
        old, new, target = (t[name].double() for t in (before, after, start))
        assert float(new.norm()) == pytest.approx(float(target.norm()), rel=1e-6)
        assert float(old.norm()) != pytest.approx(float(target.norm()), rel=1e-4)
        cosine = float((old * new).sum() / old.norm() / new.norm())
        assert cosine == pytest.approx(1, abs=1e-9)


def test_statistic_std_restores_standard_deviations(tmp_path: Path) -> None:
    start = tensors(trainer(tiny("rescale"), tmp_path / "start"))
    made, _, after = at_event("rescale", tmp_path / "run", "rescale.statistic=std", "lr=0.2")
    for name in kernel_names(made):
        new, target = (float(t[name].double().std(correction=0)) for t in (after, start))
        assert new == pytest.approx(target, rel=1e-6)


def test_a_layer_that_became_zero_is_skipped_and_logged(tmp_path: Path) -> None:
    made = trainer(tiny("rescale"), tmp_path)
    train_round(made)
    surgery.set_weight(made.ctx.model, "fc.weight", torch.zeros(4, 64))
    _, after = open_round(made)
    assert bool((after["fc.weight"] == 0).all())
    record = lines(tmp_path, "rewrites.jsonl")[0]
    assert "fc.weight" not in record["tensors"]
    assert record["note"].endswith("skipped, size zero: fc.weight")


def test_a_bias_free_relu_net_keeps_every_prediction() -> None:
    with stream("rescale"):
        layers = [nn.Linear(6, 6, bias=False) for _ in range(3)]
        x = torch.randn(50, 6, dtype=torch.float64)
    net = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2]).double()
    before = net(x).detach()
    sizes = {"0.weight": 0.3, "2.weight": 5.0, "4.weight": 2.0}
    factor = math.prod(sizes[n] / float(p.detach().norm()) for n, p in net.named_parameters())
    restore_sizes(bare(net), sizes, "test")
    torch.testing.assert_close(net(x).detach(), factor * before, rtol=1e-12, atol=1e-12)
    assert torch.equal(net(x).argmax(dim=1), before.argmax(dim=1))
