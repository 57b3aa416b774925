"""Learning rates against numbers worked out by hand from SEAL's schedule."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.pretrain import assert_same_run, killed_at, lines, source, tiny
from torch.optim.lr_scheduler import ReduceLROnPlateau

from pretrain.methods.swr_reanchor import SwrReanchor
from pretrain.recipes import registry
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.schedules import PlateauSchedule, lr_factor
from pretrain.training.context import Context
from pretrain.training.loop import Trainer, train_recipe


def cosine(part: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * part))


@pytest.mark.parametrize(
    ("name", "fields", "rates"),
    [
        (
            "seal",
            (),
            {(0, 0): 1 / 20, (0, 19): 1, (0, 20): 1, (0, 90): 0.5, (0, 159): cosine(139 / 140)},
        ),
        ("seal", (), {(3, 0): 1 / 20, (3, 90): 0.5, (0, 50, 9): cosine(30 / 140)}),
        (
            "normal_long_single_cycle",
            (),
            {(0, 9): 10 / 20, (5, 10): cosine(790 / 1580), (9, 159): cosine(1579 / 1580)},
        ),
        (
            "normal",
            ("schedule_by=step", "plan.epochs=8"),
            {(0, 0, 0): 1 / 10, (0, 0, 9): 1, (0, 1, 0): 1, (0, 4, 5): 0.5},
        ),
        (
            "normal",
            ("schedule=step", "warmup=0"),
            {(0, 0): 1, (0, 79): 1, (0, 80): 0.1, (0, 119): 0.1, (0, 120): 0.01},
        ),
        ("normal", ("schedule=constant",), {(0, 0): 1 / 20, (0, 20): 1, (0, 159): 1}),
    ],
)
def test_rates_by_hand(
    name: str, fields: tuple[str, ...], rates: dict[tuple[int, ...], float]
) -> None:
    """By round, epoch and batch of ten."""
    recipe = registry.load_recipe(f"paper/{name}").override(fields)
    actual = {at: lr_factor(recipe, TrainingClock(recipe.plan, *at), 10) for at in rates}
    assert actual == pytest.approx(rates)


FIELDS = (
    "schedule=plateau", "warmup=0", "plateau_epochs=2", "plan.epochs=8", "lr=0.064",
    "plan.epoch_images=16",
)  # fmt: skip


def test_epochs_without_validation_count_but_decide_nothing() -> None:
    plateau, fell = PlateauSchedule(), []
    for epoch, accuracy in enumerate((None, 0.5, None, None, None, 0.5, None, 0.5, None, 0.5)):
        plateau.update(epoch, accuracy, wait=3)
        fell.append(plateau.fell)
    assert [e for e, f in enumerate(fell) if f] == [5, 9]


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 5))
def test_as_torch_counts(accuracies: list[int], wait: int) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs = ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=wait - 1, threshold=0, eps=0)
    ours = PlateauSchedule()
    for epoch, accuracy in enumerate(accuracies):
        theirs.step(accuracy / 6)
        ours.update(epoch, accuracy / 6, wait)
        assert 0.5**ours.drops == optimizer.param_groups[0]["lr"]


def seeing(monkeypatch: pytest.MonkeyPatch, accuracies: dict[int, float]) -> None:
    """Validation that finds these accuracies by epoch of the round, and .5 elsewhere."""

    def close(self: Trainer) -> None:
        epoch = self.ctx.clock.epoch
        self.validation.accuracy = lambda model: accuracies.get(epoch, 0.5)  # type: ignore[method-assign]
        take(self)

    take = Trainer._close_epoch
    monkeypatch.setattr(Trainer, "_close_epoch", close)


@pytest.mark.parametrize(("factor", "step"), [(0.5, 22), (0.25, 7)])
def test_the_rate_falls_in_the_loop_starts_afresh_every_round_and_survives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, step: int
) -> None:
    """.5 at epoch 0; falls after 2 and after 4; .9 at 5; falls after 7, too late.

    Methods hear of it: swr_reanchor acts on learning-rate drops.
    """
    calls: list[tuple[int, int, float, float]] = []

    def hear(self: SwrReanchor, ctx: Context, old: float, new: float) -> None:
        calls.append((ctx.clock.round, ctx.clock.epoch, old, new))

    monkeypatch.setattr(SwrReanchor, "lr_changed", hear)
    seeing(monkeypatch, {5: 0.9})
    recipe = tiny("swr_reanchor", *FIELDS, f"plateau_factor={factor}")
    train_recipe(recipe, source(), tmp_path / "whole")
    rates = [0.064, 0.064 * factor, 0.064 * factor**2]
    a_round = [rates[0]] * 3 + [rates[1]] * 2 + [rates[2]] * 3
    assert [row["lr"] for row in lines(tmp_path / "whole")] == pytest.approx(a_round * 2)
    heard = [(r, e, rates[e // 2 - 1], rates[e // 2]) for r in (0, 1) for e in (3, 5)]
    assert [call[:2] for call in calls] == [call[:2] for call in heard]
    assert [call[2:] for call in calls] == [pytest.approx(call[2:]) for call in heard]
    killed_at(step, recipe, tmp_path / "parts", monkeypatch)
    train_recipe(recipe, source(), tmp_path / "parts")
    assert_same_run(tmp_path / "parts", tmp_path / "whole")
