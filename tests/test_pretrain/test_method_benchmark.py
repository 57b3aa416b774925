"""The benchmark of methods takes steps in which they act; never how long a step takes."""

from pathlib import Path

import pytest
import torch
from benchmarks import methods as bench
from benchmarks.pairing import Settings

from pretrain import METHODS

TINY = bench.Network("toy_resnet", 8, 8, width=2)


def test_both_sides_are_timed(tmp_path: Path) -> None:
    assert bench.BOUNDS.keys() <= {*METHODS.names()}
    sides = bench.make_sides(Settings("", 1), tmp_path, "swr", TINY)
    assert all(side() > 0 for side in sides)
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize(
    ("name", "at", "pruned"),
    [("dsd", 1, True), ("imp", 1, True), ("full_reset", 10, False), ("seal", 1, False)],
)
def test_steps_are_timed_after_the_event_with_what_it_started(
    name: str, at: int, pruned: bool, tmp_path: Path
) -> None:
    """Masks are applied, and SEAL ascends."""
    trainer = bench.start_later(name, TINY, bench.generate_source(8, 8), tmp_path)
    bench.take_step(trainer)
    bench.take_step(trainer)
    assert trainer.ctx.clock.round == at
    kernel = trainer.ctx.parameters["layer1.0.conv1.weight"]
    zeros = kernel.numel() // 5 if pruned else 0
    assert torch.count_nonzero(kernel) == kernel.numel() - zeros
    if name == "seal":
        assert trainer.recipe.method("seal").ascending(trainer.ctx)
