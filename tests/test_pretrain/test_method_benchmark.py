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


@pytest.mark.parametrize(
    ("ratio", "share", "over"), [(1.05, 0.009, False), (1.06, 0.0, True), (1.0, 0.02, True)]
)
def test_a_row_over_its_bound_says_so(ratio: float, share: float, over: bool) -> None:
    row = bench.Row("swr", 1.0, ratio, 1.05, 0.0, share, 0.0, 0.0)
    assert ("OVER" in str(row)) is over


@pytest.mark.parametrize(("name", "at"), [("dsd", 1), ("full_reset", 10), ("imp", 1)])
def test_steps_are_taken_after_the_event_at_one_position(
    name: str, at: int, tmp_path: Path
) -> None:
    made = runner(name, tmp_path)
    made.step()
    made.step()
    clock = made.trainer.ctx.clock
    assert (clock.round, clock.epoch, clock.batch) == (at, 0, 0)
    assert made.event > 0


def test_methods_that_hold_masks_hold_them_while_they_are_timed(tmp_path: Path) -> None:
    for name in ("dsd", "imp"):
        made = runner(name, tmp_path)
        made.step()
        kernel = made.trainer.ctx.parameters["layer1.0.conv1.weight"]
        assert torch.count_nonzero(kernel) == kernel.numel() - kernel.numel() // 5


def test_seal_ascends_while_it_is_timed(tmp_path: Path) -> None:
    made = runner("seal", tmp_path)
    assert made.trainer.recipe.method("seal").ascending(made.trainer.ctx)


def test_setup_is_scaled_to_all_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = runner("nio", tmp_path)
    assert made.trainer.recipe.method("nio").iterations == bench.FEW
    monkeypatch.setattr(made, "start", lambda iterations: (None, 5.0 + 2.0 * iterations))
    assert made.whole_setup() == 5 + 2 * 100
