"""WELS redraws the same random part of every kernel in every round."""

import copy
from pathlib import Path

import torch
from support.events import (
    at_event,
    changed,
    finish_epoch,
    kernel_names,
    open_round,
    train_round,
)
from support.pretrain import tiny, trainer

from pretrain.training import checkpoint


def test_the_same_elements_are_redrawn_in_every_round(tmp_path: Path) -> None:
    made, before, after = at_event("wels", tmp_path, "width=8", "plan.rounds=3")
    assert changed(before, after) == kernel_names(made)
    first = {name: before[name] != after[name] for name in kernel_names(made)}
    fresh = {name: after[name][mask] for name, mask in first.items()}
    finish_epoch(made)
    train_round(made)
    before, after = open_round(made)
    for name, mask in first.items():
        assert torch.equal(before[name] != after[name], mask)
        assert not torch.equal(after[name][mask], fresh[name])


def test_layers_of_equal_shape_have_different_masks(tmp_path: Path) -> None:
    masks = trainer(tiny("wels", "width=8"), tmp_path).ctx.memories["wels"]
    assert not torch.equal(masks["layer1.0.conv1.weight"], masks["layer1.0.conv2.weight"])


def test_the_default_redraws_a_fifth(tmp_path: Path) -> None:
    made, before, after = at_event("wels", tmp_path, "width=8")
    for name in kernel_names(made):
        n = before[name].numel()
        new = int((before[name] != after[name]).sum())
        assert abs(new - 0.2 * n) <= 4 * (n * 0.2 * 0.8) ** 0.5


def test_the_masks_are_in_the_checkpoint_and_survive_a_copy(tmp_path: Path) -> None:
    made = trainer(tiny("wels"), tmp_path)
    made._epoch(lambda images: None)
    made._save()
    stored = checkpoint.load_checkpoint(tmp_path)
    assert stored is not None
    masks, copied = made.ctx.memories["wels"], copy.deepcopy(made.ctx.memories["wels"])
    assert masks.keys() == kernel_names(made)
    for name, mask in masks.items():
        assert torch.equal(stored[0][f"memory/wels/{name}"], mask)
        assert torch.equal(copied[name], mask)


def test_masks_come_from_the_checkpoint_not_from_the_stream(tmp_path: Path) -> None:
    made = trainer(tiny("wels"), tmp_path)
    made.ctx.memories["wels"]["fc.weight"].fill_(True)
    made._epoch(lambda images: None)
    made._save()
    again = trainer(tiny("wels"), tmp_path)
    assert bool(again.ctx.memories["wels"]["fc.weight"].all())
