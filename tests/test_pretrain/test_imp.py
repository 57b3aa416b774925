"""IMP prunes part of the remaining weights, rewinds the rest, and revives none."""

from pathlib import Path

import pytest
import torch
from support.events import (
    Tensors,
    at_event,
    changed,
    finish_epoch,
    kernel_names,
    open_round,
    tensors,
    train_round,
)
from support.pretrain import epochs, lines, source, tiny, trainer, weights

from fsbench.core.errors import UsageError
from pretrain import METHODS
from pretrain.methods.imp import prune
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import train_recipe

HARD = ("weight_decay=0.01", "lr=0.1", "width=4")


def part_pruned(n: int, name: str) -> int:
    return n // 10 if name == "fc.weight" else n // 5


def test_the_smallest_weights_are_pruned_and_the_rest_rewound(tmp_path: Path) -> None:
    start = tensors(trainer(tiny("normal", *HARD), tmp_path / "start"))
    made, before, after = at_event("imp", tmp_path / "run", *HARD)
    for name in before:
        if name not in kernel_names(made):
            assert torch.equal(after[name], start[name])
            continue
        dead = after[name] == 0
        assert int(dead.sum()) == part_pruned(dead.numel(), name)
        assert float(before[name][dead].abs().max()) <= float(before[name][~dead].abs().min())
        assert torch.equal(after[name][~dead], start[name][~dead])


def dead(tensors_by_name: Tensors, names: set[str]) -> Tensors:
    return {name: tensors_by_name[name] == 0 for name in names}


@pytest.mark.parametrize("reset", ["all", "none"])
def test_pruned_weights_stay_at_zero_and_each_round_prunes_more(tmp_path: Path, reset: str) -> None:
    made, _, after = at_event("imp", tmp_path, *HARD, "plan.rounds=3", f"opt_reset={reset}")
    names = kernel_names(made)
    first = dead(after, names)
    finish_epoch(made)
    pruned = dead(tensors(made), names)
    assert all(torch.equal(pruned[n], first[n]) for n in names)
    train_round(made)
    before, after = open_round(made)
    assert changed(before, after)
    for name, mask in dead(after, names).items():
        left = mask.numel() - part_pruned(mask.numel(), name)
        assert int(mask.sum()) == mask.numel() - left + part_pruned(left, name)
        assert bool(mask[first[name]].all())


def test_the_exported_network_holds_the_zeros(tmp_path: Path) -> None:
    train_recipe(tiny("imp", *HARD, "imp.fraction=0.5"), source(), tmp_path)
    kernel = weights(tmp_path)["layer3.0.conv1.weight"]
    assert int((kernel == 0).sum()) == kernel.numel() // 2
    note = lines(tmp_path, "rewrites.jsonl")[0]["note"]
    assert note.startswith("0.50")


@pytest.mark.parametrize("name", ["weight_norm", "weight_compander"])
def test_reparametrized_weights_are_pruned_and_stay_at_zero(tmp_path: Path, name: str) -> None:
    plain = tiny("imp", *HARD)
    methods = (*plain.methods, METHODS.load(name)())
    made = trainer(Recipe.model_validate({**dict(plain), "methods": methods}), tmp_path)
    train_round(made)
    _, after = open_round(made)
    finish_epoch(made)
    now = tensors(made)
    for tensor in kernel_names(made):
        pruned = after[tensor] == 0
        assert int(pruned.sum()) == part_pruned(pruned.numel(), tensor)
        assert bool((now[tensor][pruned] == 0).all())


def test_it_may_rewind_to_an_early_epoch(tmp_path: Path) -> None:
    made = trainer(tiny("imp", *HARD, "imp.rewind_epoch=2"), tmp_path)
    epochs(made, 2)
    early = tensors(made)
    train_round(made)
    _, after = open_round(made)
    for name, value in after.items():
        alive = value != 0 if name in kernel_names(made) else torch.ones_like(value).bool()
        assert torch.equal(value[alive], early[name][alive])


def test_without_rewinding_only_pruned_weights_change(tmp_path: Path) -> None:
    made, before, after = at_event("imp", tmp_path, *HARD, "imp.rewind_epoch=null")
    assert changed(before, after) == kernel_names(made)
    assert all(bool((after[n][before[n] != after[n]] == 0).all()) for n in before)


def test_one_threshold_over_all_layers_spares_those_with_large_weights() -> None:
    weights = {"small": torch.tensor([[1.0, -2, 0, 0]]), "large": torch.tensor([5.0, -6, 7, 8])}
    keep = {"small": torch.tensor([[True, True, False, False]]), "large": torch.ones(4).bool()}
    per_layer, shared = (prune(weights, keep, 0.5, scope) for scope in ("layer", "global"))
    assert {n: m.flatten().tolist() for n, m in per_layer.items()} == {
        "small": [False, True, False, False],
        "large": [False, False, True, True],
    }
    assert {n: m.flatten().tolist() for n, m in shared.items()} == {
        "small": [False] * 4,
        "large": [False, True, True, True],
    }


def test_an_epoch_that_no_round_has_is_refused() -> None:
    with pytest.raises(UsageError, match="is never reached"):
        tiny("imp", "imp.rewind_epoch=4")
