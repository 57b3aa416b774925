"""What a run costs: FLOPs by hand, events beside steps, totals across a kill, no bit changed."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.pretrain import equal, killed_at, source, tiny, trainer, weights
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from pretrain.training import cost
from pretrain.training.cost import FlopCounter, TrainingCost
from pretrain.training.loop import train_recipe

CPU = torch.device("cpu")


def record(run: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((run / "run.json").read_text())
    return record


def test_flops_of_a_linear_layer_by_hand() -> None:
    """A multiply-add is two: 2 * 5 * 3 * 7 forward, as many for the kernel, none for the input."""
    layer, inputs = nn.Linear(3, 7), torch.ones(5, 3)
    with FlopCounter() as forward:
        out = layer(inputs)
    with FlopCounter() as backward:
        out.sum().backward()
    assert (forward.flops, backward.flops) == (210, 210)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_counts_as_torch_s_own_counter_does(tmp_path: Path, precision: str) -> None:
    recipe = tiny("normal", f"precision={precision}")
    made = trainer(recipe, tmp_path / "a")
    made._open_epoch(2)
    with FlopCounterMode(display=False) as theirs:
        made._task_loss(made.ctx.loader.batch(made.ctx.clock))[0].backward()
    train_recipe(recipe, source(), tmp_path / "b")
    assert record(tmp_path / "b")["flops"] == 16 * theirs.get_total_flops() > 0


def test_events_are_counted_beside_the_steps(tmp_path: Path) -> None:
    for name in ("normal", "nio", "lw"):
        train_recipe(tiny(name), source(), tmp_path / name)
    plain, nio, lw = (record(tmp_path / name) for name in ("normal", "nio", "lw"))
    assert plain["event_flops"] == 0
    assert nio["event_flops"] > 16 * lw["event_flops"] > 0
    assert nio["flops"] - nio["event_flops"] == lw["flops"] - lw["event_flops"] == plain["flops"]


def test_every_round_measures_its_own_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 8 steps: the first steps of both are measured, the others multiply."""
    measured = iter((100, 7))

    class Fixed(FlopCounter):
        def __exit__(self, *error: object) -> None:
            super().__exit__(*error)
            self.flops = next(measured)

    monkeypatch.setattr(TrainingCost, "event", lambda self: torch.no_grad())
    monkeypatch.setattr(cost, "FlopCounter", Fixed)
    train_recipe(tiny("l2"), source(), tmp_path)
    assert record(tmp_path)["flops"] == 8 * 100 + 8 * 7


def test_counting_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny("nio", "dropout=0.5", "precision=bf16")
    train_recipe(recipe, source(), tmp_path / "counted")
    monkeypatch.setattr(cost, "FlopCounter", lambda: torch.enable_grad())
    monkeypatch.setattr(TrainingCost, "step", lambda self, first: torch.enable_grad())
    monkeypatch.setattr(TrainingCost, "event", lambda self: torch.enable_grad())
    train_recipe(recipe, source(), tmp_path / "plain")
    assert equal(weights(tmp_path / "counted"), weights(tmp_path / "plain"))
    assert record(tmp_path / "plain")["flops"] == 0


def test_samples_are_images_that_were_trained_on(tmp_path: Path) -> None:
    """The first stage holds 4 images, half a batch: an epoch is a step on 4, then two on 8."""
    stages = 'plan.stages=[{"stop": 0.1}, {}]'
    train_recipe(tiny("normal", stages, "plan.rounds=1"), source(), tmp_path)
    assert record(tmp_path)["samples"] == 4 * (4 + 16)


def test_a_resumed_run_reports_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at(11, tiny("normal"), tmp_path, monkeypatch)
    spent = json.loads((tmp_path / "checkpoint.json").read_text())["state"]["cost"]
    train_recipe(tiny("normal"), source(), tmp_path)
    assert record(tmp_path)["seconds"] >= round(spent["seconds"], 3) > 0
    assert record(tmp_path)["peak_memory_bytes"] >= spent["peak_memory_bytes"] > 1e6


def test_the_peak_of_an_earlier_part_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter((5, 3))
    monkeypatch.setattr(cost, "peak_memory", lambda device: next(peaks))
    first, second = TrainingCost(CPU), TrainingCost(CPU)
    second.resume(first.state())
    assert second.facts()["peak_memory_bytes"] == 5


def test_a_step_outside_the_first_is_not_slowed(tmp_path: Path) -> None:
    """No mode is active in the steps between."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as stack

    steps: list[tuple[int, int]] = []
    made = trainer(tiny("normal"), tmp_path)
    forward = made.ctx.model
    made.ctx.forward = lambda images: (
        steps.append((made.ctx.clock.step, len(stack()))) or forward(images)  # type: ignore[func-returns-value]
    )
    for _ in range(8):
        made._epoch(lambda images: None)
    assert [step for step, modes in steps if modes] == [0, 8]
