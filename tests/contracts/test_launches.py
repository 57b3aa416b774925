"""A training step launches little more on a GPU than a bare loop, and never waits for it."""

from functools import cache
from pathlib import Path

import pytest
import torch
from benchmarks.launches import COUNTED, GPU, PAIR, count_bare_step, count_step, counted
from benchmarks.methods import Network, generate_source, start_later, take_step

from fsbench.core.distributed import ALONE, Ranks
from pretrain import METHODS
from pretrain.bases.reparametrization import Reparametrization
from pretrain.method import hooks_of
from pretrain.training.episodes import MetaLearner

TINY = Network("toy_resnet", 8, 8, width=2)
MOST = 1.15
"""Largest number of launches over those of a bare loop."""
COMPUTES = {"training_step", "loss_term"}
STEP = {"after_backward", "before_step", "after_step"}


def changes_only_weights(name: str) -> bool:
    """Whether a method acts in a step, and only on gradients or weights."""
    method = METHODS.load(name)
    hooks = {*hooks_of(method)}
    return not (hooks & COMPUTES or issubclass(method, Reparametrization)) and bool(hooks & STEP)


@cache
def bare_launches() -> float:
    return count_bare_step("normal").launches


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("normal", ALONE),
        ("normal", PAIR),
        *((name, ALONE) for name in METHODS.names() if changes_only_weights(name)),
    ],
)
def test_a_step_launches_little_more_than_a_bare_loop(name: str, ranks: Ranks) -> None:
    assert count_step(name, ranks=ranks, steps=1).launches <= MOST * bare_launches()


@pytest.mark.parametrize("name", [*COUNTED, "imp+weight_compander", "seal+weight_norm"])
def test_no_step_waits_for_the_gpu(name: str) -> None:
    if issubclass(METHODS.load(name.partition("+")[0]), MetaLearner):
        pytest.importorskip("learn2learn", reason="meta-learners need it: make meta")
    counts = count_step(name, TINY)
    assert counts.waits == 0
    assert 0 < counts.copies <= 2


def test_numbers_that_become_a_tensor_on_the_gpu_are_a_copy_for_which_the_host_waits() -> None:
    with counted() as counter:
        made = torch.tensor([1.0, 2.0], device=GPU)
        made.new_tensor(0.5)
        torch.as_tensor(0.5, device=GPU)
        torch.as_tensor(made)
        torch.tensor(0.5)
    assert (counter.copies, counter.waits) == (3, 3)


@pytest.mark.parametrize(
    ("name", "at", "pruned"),
    [("dsd", 1, True), ("imp", 1, True), ("full_reset", 10, False), ("seal", 1, False)],
)
def test_steps_are_timed_after_the_event_with_what_it_started(
    name: str, at: int, pruned: bool, tmp_path: Path
) -> None:
    """Masks are applied, and SEAL ascends."""
    trainer = start_later(name, TINY, generate_source(8, 8), tmp_path)
    take_step(trainer)
    take_step(trainer)
    assert trainer.ctx.clock.round == at
    kernel = trainer.ctx.parameters["layer1.0.conv1.weight"]
    zeros = kernel.numel() // 5 if pruned else 0
    assert torch.count_nonzero(kernel) == kernel.numel() - zeros
    if name == "seal":
        assert trainer.recipe.method("seal").ascending(trainer.ctx)


@pytest.mark.gpu
@pytest.mark.parametrize("name", COUNTED)
def test_torch_finds_no_wait_either(name: str, tmp_path: Path) -> None:
    if issubclass(METHODS.load(name), MetaLearner):
        pytest.importorskip("learn2learn", reason="meta-learners need it: make meta")
    source, gpu = generate_source(TINY.side, TINY.batch, 8), torch.device("cuda", 0)
    trainer = start_later(name, TINY, source, tmp_path, gpu)
    trainer._step(4)  # makes the optimizer's buffers
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer._step(4)
    finally:
        torch.cuda.set_sync_debug_mode("default")
