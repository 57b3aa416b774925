"""The methods' benchmark: what its rows are, on a tiny network; never how long a step takes."""

from pathlib import Path

import pytest
import torch
from benchmarks import methods as bench

from pretrain import METHODS
from pretrain.recipes.recipe import META

TINY = bench.Network("toy_resnet", 8, 8, width=2)


def test_every_method_has_a_row_after_that_of_normal() -> None:
    assert [name for name in METHODS.names() if name not in META] == bench.TIMED
    rows = list(bench.measure(["swr", "nio", "normal", "head_reset"], TINY, rounds=1))
    assert [row.name for row in rows] == ["normal", "swr", "nio", "head_reset"]
    assert all(row.step > 0 and row.ratio > 0 and row.bound is None for row in rows)


def test_batch_128_shows_the_bounds_and_the_time_of_events_over_a_round_of_the_paper() -> None:
    _, swr = bench.measure(["swr"], TINY._replace(batch=128), rounds=1)
    assert "<= 1.05" in str(swr)
    assert swr.share == pytest.approx(swr.event / (125_000 * swr.step / swr.ratio), rel=1e-6)
    for ratio, share, over in ((1.05, 0.009, False), (1.06, 0.0, True), (1.0, 0.02, True)):
        assert ("OVER" in str(swr._replace(ratio=ratio, share=share))) is over


@pytest.mark.parametrize(
    ("name", "at", "pruned"),
    [("dsd", 1, True), ("imp", 1, True), ("full_reset", 10, False), ("seal", 1, False)],
)
def test_steps_are_timed_after_the_event_with_what_it_started(
    name: str, at: int, pruned: bool, tmp_path: Path
) -> None:
    """Masks are applied, and SEAL ascends."""
    made = bench.Runner(name, TINY, bench.generate_source(8, 8), tmp_path)
    made.step()
    made.step()
    assert made.trainer.ctx.clock.round == at
    kernel = made.trainer.ctx.parameters["layer1.0.conv1.weight"]
    zeros = kernel.numel() // 5 if pruned else 0
    assert torch.count_nonzero(kernel) == kernel.numel() - zeros
    if name == "seal":
        assert made.trainer.recipe.method("seal").ascending(made.trainer.ctx)
