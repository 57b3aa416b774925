"""LW against its algorithm and invariants; its normalisers live in checkpoint and export."""

import json
from pathlib import Path

import pytest
import torch
from support.events import Tensors, changed, finish_epoch, kernel_names, open_round, tensors
from support.pretrain import epochs, lines, record, source, tiny, trainer
from torch import Tensor

from fsbench import backbones
from fsbench.core.errors import CheckpointError
from pretrain.methods.lw import build_block_schedule, compute_mean_and_std
from pretrain.training.loop import Trainer
from pretrain.training.validation import read_outputs

SINGLE = ("lw.generations=false", "plan.epochs=1")
FULL = (*SINGLE, "plan.rounds=4")
"""Algorithm 1 on the four blocks of the tiny net."""
BLOCKS = (("conv1.", "bn1.", "layer1."), ("layer2.",), ("layer3.",), ("layer4.",))
ENDS = ["layer1.0", "layer2.0", "layer3.0", "layer4.0"]


def open_keeping(k: int, out: Path, *assignments: str) -> tuple[Trainer, Tensors, Tensors]:
    """A run of Algorithm 1, and all tensors before and after the events that keep k blocks."""
    made = trainer(tiny("lw", *FULL, *assignments), out)
    epochs(made, k - 1)
    return made, *open_round(made)


def in_blocks(name: str, k: int) -> bool:
    return any(name.startswith(block) for block in BLOCKS[:k])


def active(made: Trainer) -> list[str]:
    """Modules whose normaliser is not the identity."""
    state = made.ctx.model.state_dict()
    return [n.rpartition(".")[0] for n, t in state.items() if "_std" in n and bool((t != 1).any())]


def test_rounds_go_up_block_by_block() -> None:
    assert build_block_schedule(6, 3, 2, False) == (1, 1, 2, 2, 3, 3)
    assert build_block_schedule(5, 4, 1, True) == (0, 1, 2, 3, 4)
    assert build_block_schedule(3, 16, 1, True) == (0, 5, 11)
    assert build_block_schedule(10, 4, 1, True) == (0, 1, 1, 1, 2, 2, 3, 3, 4, 4)


@pytest.mark.parametrize(
    ("settings", "kept", "normalised"),
    [
        (("lw.order=[1, 1, 2, 2, 2]", "lw.normalize=false"), (0, 1, 2, 2, 2), []),
        (("lw.head_block=true",), (0, 2, 3, 4, 5), ENDS),
    ],
)
def test_rounds_rescale_what_they_keep_and_redraw_the_rest(
    tmp_path: Path, settings: tuple[str, ...], kept: tuple[int, ...], normalised: list[str]
) -> None:
    """By the order of Table 5, whose first kept set serves twice; with the head as a fifth block.

    kept: 0 in the first round, where nothing changes.
    """
    made = trainer(tiny("lw", *SINGLE, "plan.rounds=5", *settings), tmp_path)
    for k in kept:
        before, after = open_round(made)
        rescaled = {n for n in kernel_names(made) if in_blocks(n, k) or k == 5}
        above = {n for n in before if not in_blocks(n, k)} if 0 < k < 5 else set()
        assert changed(before, after) == rescaled | above
        finish_epoch(made)
    assert made.ctx.clock.done
    assert active(made) == normalised


@pytest.mark.parametrize("k", [2, 4])
def test_kept_weights_get_their_initial_norm_and_the_rest_is_new(tmp_path: Path, k: int) -> None:
    start = tensors(trainer(tiny("normal"), tmp_path / "start"))
    made, before, after = open_keeping(k, tmp_path / "run", "lr=0.2")
    rescaled = {name for name in kernel_names(made) if in_blocks(name, k)}
    above = {name for name in before if not in_blocks(name, k)}
    assert changed(before, after) == rescaled | above
    for name in rescaled:
        old, new = before[name].double(), after[name].double()
        assert float(new.norm()) == pytest.approx(float(start[name].double().norm()), rel=1e-6)
        assert float((old * new).sum() / old.norm() / new.norm()) == pytest.approx(1, abs=1e-9)
    fresh = above & kernel_names(made)
    assert all(bool((before[name] != after[name]).all()) for name in fresh)
    norms = {n: after[n] for n in above if ".bn" in n}
    assert all(bool((t == 1).all()) for n, t in norms.items() if n.endswith(("weight", "_var")))
    assert all(bool((t == 0).all()) for n, t in norms.items() if n.endswith(("bias", "_mean")))


def test_each_round_adds_a_normaliser_and_keeps_earlier_ones(tmp_path: Path) -> None:
    made, values_by_end = trainer(tiny("lw", *FULL), tmp_path), {}
    for k in range(1, 5):
        open_round(made)
        assert active(made) == ENDS[:k]
        state = {n: t.clone() for n, t in made.ctx.model.state_dict().items() if "normal" in n}
        assert all(torch.equal(state[n], values_by_end[n]) for n in values_by_end)
        finish_epoch(made)
        now = made.ctx.model.state_dict()
        assert all(torch.equal(now[n], t) for n, t in state.items())
        assert not any("normal" in name for name, _ in made.ctx.model.named_parameters())
        values_by_end = {n: t for n, t in state.items() if n.startswith(tuple(ENDS[:k]))}


@pytest.mark.parametrize("statistics", ["scalar", "per_channel"])
def test_block_outputs_are_normalised_and_running_statistics_unchanged(
    tmp_path: Path, statistics: str
) -> None:
    fields = (f"lw.statistics={statistics}", "width=8", "batch_size=16")
    made, before, after = open_keeping(2, tmp_path, *fields)
    unchanged = [n for n in before if in_blocks(n, 2) and ("running" in n or "tracked" in n)]
    assert len(unchanged) == 18
    assert all(torch.equal(before[n], after[n]) for n in unchanged)
    batches: list[Tensor] = []
    block = made.ctx.model.get_submodule("layer2.0")
    block.register_forward_hook(lambda module, inputs, output: batches.append(output.detach()))
    made.ctx.model(made.ctx.loader.batch(made.ctx.clock).images)
    z = batches[0].double()
    dims = (0, 1, 2, 3) if statistics == "scalar" else (0, 2, 3)
    means = z.mean(dims)
    torch.testing.assert_close(means, torch.zeros_like(means), atol=1e-5, rtol=0)
    alive = z.std(dims, correction=0)[z.std(dims, correction=0) > 0.5]
    torch.testing.assert_close(alive, torch.ones_like(alive), atol=1e-4, rtol=0)
    shape = () if statistics == "scalar" else (16, 1, 1)
    assert made.ctx.model.get_buffer("layer2.0.normalizer_mean").shape == shape


def test_a_repeated_block_is_measured_before_its_own_normaliser(tmp_path: Path) -> None:
    made = trainer(tiny("lw", *SINGLE, "lw.repeats=2", "plan.rounds=8"), tmp_path)
    epochs(made, 1)
    before, _ = open_round(made)
    with torch.no_grad():
        plain = made.ctx.architecture.build(made.ctx.classes, made.ctx.recipe.width)
        plain.load_state_dict(before)
        for layer in (n for n in made.ctx.roles.layers if in_blocks(n, 1)):
            name = f"{layer}.weight"
            size = made.ctx.memories["lw"]["norms"][name]
            plain.get_parameter(name).mul_(size / before[name].norm())
        x = made.ctx.loader.batch(made.ctx.clock).images
        z = plain.layer1(plain.relu(plain.bn1(plain.conv1(x))))
    state = made.ctx.model.state_dict()
    assert active(made) == ["layer1.0"]
    torch.testing.assert_close(state["layer1.0.normalizer_mean"], z.mean())
    torch.testing.assert_close(state["layer1.0.normalizer_std"], z.std(correction=0) + 1e-6)


def test_statistics_of_a_dead_block_are_finite() -> None:
    mean, std = compute_mean_and_std(torch.full((4, 3, 2, 2), 2.0), ())
    assert (float(mean), float(std)) == (2.0, pytest.approx(1e-6))
    mean, std = compute_mean_and_std(torch.tensor([[1.0, 2], [3, 6]]), (2,))
    assert mean.tolist() == [2, 4]
    assert std.tolist() == pytest.approx([1 + 1e-6, 2 + 1e-6])


@pytest.mark.parametrize(
    ("setting", "missing"),
    [
        ("lw.rescale=false", "blocks 1..2"),
        ("lw.normalize=false", "normaliser"),
        ("lw.reinit=false", "above"),
    ],
)
def test_ablations_leave_one_part_out(tmp_path: Path, setting: str, missing: str) -> None:
    open_keeping(2, tmp_path, setting)
    parts = ("blocks 1..2", "normaliser", "above")
    notes = [r["note"] for r in lines(tmp_path, "rewrites.jsonl") if r["round"] == 1]
    logged = {part for part in parts if any(part in note for note in notes)}
    assert logged == set(parts) - {missing}


def test_frozen_blocks_do_not_move(tmp_path: Path) -> None:
    made, _, before = open_keeping(2, tmp_path, "lw.freeze_kept=true")
    finish_epoch(made)
    after = tensors(made)
    names = [name for name, _ in made.ctx.model.named_parameters()]
    moved = {name for name in names if not torch.equal(before[name], after[name])}
    assert moved == {name for name in names if not in_blocks(name, 2)}


def test_rescaled_all_skips_parameters_that_start_at_zero(tmp_path: Path) -> None:
    _, before, after = open_keeping(2, tmp_path, "lw.rescaled=all", "lr=0.2")
    assert float(after["bn1.weight"].norm()) == pytest.approx(8**0.5, rel=1e-6)
    assert torch.equal(before["bn1.bias"], after["bn1.bias"])
    assert bool((after["bn1.bias"] != 0).any())


def test_the_export_gives_the_outputs_of_the_trained_network(tmp_path: Path) -> None:
    made = trainer(tiny("lw", *FULL), tmp_path)
    epochs(made, 4)
    made._finish()
    facts = record(tmp_path)
    assert facts["normalizers"] == {end: [] for end in ENDS}
    images, ref = torch.from_numpy(source().val.images), f"run:{tmp_path}"
    exported, backbone = backbones.load_classifier(ref), backbones.load_backbone(ref)
    made.ctx.model.eval()
    with torch.no_grad():
        x = made.validation.normalise(images)
        torch.testing.assert_close(exported.model(x), made.ctx.model(x))
        pooled = read_outputs(made.ctx.model, ["avgpool"], x)["avgpool"].flatten(1)
    torch.testing.assert_close(backbone.features(images), pooled)
    assert made.validation.accuracy(exported.model) == lines(tmp_path)[-1]["val_accuracy"]
    assert backbone.facts.weights_hash == facts["weights_hash"]
    for shapes in ({}, {"layer9.0": []}, {"layer1.0": [3]}, {"layer1.0": [0]}):
        (tmp_path / "run.json").write_text(json.dumps({**facts, "normalizers": shapes}))
        with pytest.raises(CheckpointError, match="normalizer"):
            backbones.load_backbone(ref)
