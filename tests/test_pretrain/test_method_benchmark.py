"""The methods' benchmark: what its rows are, on a tiny network; never how long a step takes."""

from pathlib import Path

import pytest
import torch
from benchmarks import methods as bench

from pretrain import METHODS
from pretrain.recipes.recipe import META

TINY = ["--rounds", "1", "--architecture", "toy_resnet", "--width", "2", "--side", "8"]


def parse(*words: str) -> bench.argparse.Namespace:
    return bench.parser().parse_args([*TINY, *words])


def runner(name: str, folder: Path) -> bench.Runner:
    arguments = parse("--batch", "8")
    return bench.Runner(name, arguments, bench.generated(8, 8), folder)


def test_every_method_has_a_row_after_two_of_normal() -> None:
    assert parse().methods == [name for name in METHODS.names() if name not in META]
    rows = bench.measure(parse("--batch", "8", "--methods", "swr", "nio", "normal", "head_reset"))
    assert [row.name for row in rows] == ["normal", "normal (A/A)", "swr", "nio", "head_reset"]
    assert rows[0].ratio == 1
    assert all(row.step > 0 and row.ratio > 0 for row in rows)
    assert [row.target for row in rows] == [None] * 5


def test_batch_128_shows_the_bounds_and_the_time_of_events_over_a_round_of_the_paper() -> None:
    plain, _, swr = bench.measure(parse("--batch", "128", "--methods", "swr"))
    assert swr.target == 1.05
    assert f"<= {swr.target:.2f}" in str(swr)
    assert swr.event_share == pytest.approx(swr.event / (125_000 * plain.step))
    assert swr.ratio == swr.step / plain.step
    for ratio, share, over in ((1.05, 0.009, False), (1.06, 0.0, True), (1.0, 0.02, True)):
        row = bench.Row("swr", 1.0, ratio, 1.05, 0.0, share, 0.0, 0.0)
        assert ("OVER" in str(row)) is over


@pytest.mark.parametrize(
    ("name", "at", "pruned"),
    [("dsd", 1, True), ("imp", 1, True), ("full_reset", 10, False), ("seal", 1, False)],
)
def test_steps_are_timed_after_the_event_with_what_it_started(
    name: str, at: int, pruned: bool, tmp_path: Path
) -> None:
    """Masks are applied, and SEAL ascends."""
    made = runner(name, tmp_path)
    made.step()
    made.step()
    assert made.trainer.ctx.clock.round == at
    kernel = made.trainer.ctx.parameters["layer1.0.conv1.weight"]
    zeros = kernel.numel() // 5 if pruned else 0
    assert torch.count_nonzero(kernel) == kernel.numel() - zeros
    if name == "seal":
        assert made.trainer.recipe.method("seal").ascending(made.trainer.ctx)


def test_setup_is_scaled_to_all_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = runner("nio", tmp_path)
    assert made.trainer.recipe.method("nio").iterations == bench.FEW
    monkeypatch.setattr(made, "start", lambda iterations: (None, 5.0 + 2.0 * iterations))
    assert made.whole_setup() == 5 + 2 * 100
