"""Learning rates against numbers worked out by hand from SEAL's schedule."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.pretrain import equal, killed_at, lines, source, tiny, weights
from torch.optim.lr_scheduler import ReduceLROnPlateau

from pretrain.recipes import registry
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.schedules import PlateauSchedule, lr_factor
from pretrain.training.loop import Trainer, train_recipe


def at(recipe: Recipe, round_: int, epoch: int, batch: int = 0, steps: int = 10) -> float:
    return lr_factor(recipe, TrainingClock(recipe.plan, round_, epoch, batch), steps)


def test_seal_warms_up_twenty_epochs_and_restarts_every_round() -> None:
    recipe = registry.load_recipe("paper/seal")
    assert recipe.warmup_epochs == 20
    assert at(recipe, 0, 0) == 1 / 20
    assert at(recipe, 0, 19) == at(recipe, 0, 20) == 1.0
    assert at(recipe, 0, 90) == pytest.approx(0.5)
    assert at(recipe, 0, 159) == pytest.approx(0.5 * (1 + math.cos(math.pi * 139 / 140)))
    assert [at(recipe, 3, e) for e in range(160)] == [at(recipe, 0, e) for e in range(160)]
    assert at(recipe, 0, 50, batch=9) == at(recipe, 0, 50)


def test_a_single_cycle_runs_over_all_rounds() -> None:
    recipe = registry.load_recipe("paper/normal_long_single_cycle")
    assert at(recipe, 0, 9) == 10 / 20
    assert at(recipe, 5, 10) == pytest.approx(0.5 * (1 + math.cos(math.pi * 790 / 1580)))
    assert at(recipe, 9, 159) < 1e-5
    rates = [at(recipe, r, e) for r in range(10) for e in range(160)]
    assert rates[20:] == sorted(rates[20:], reverse=True)


def test_by_step_the_rate_moves_with_every_batch() -> None:
    recipe = registry.load_recipe("paper/normal").override(["schedule_by=step", "plan.epochs=8"])
    assert at(recipe, 0, 0, 0) == pytest.approx(1 / 10)
    assert at(recipe, 0, 0, 9) == pytest.approx(1.0)
    assert at(recipe, 0, 1, 0) == 1.0
    assert at(recipe, 0, 4, 5) == pytest.approx(0.5)


def test_steps_fall_at_parts_of_the_round() -> None:
    recipe = registry.load_recipe("paper/normal").override(["schedule=step", "warmup=0"])
    assert [at(recipe, 0, e) for e in (0, 79, 80, 119)] == [1.0, 1.0, 0.1, 0.1]
    assert at(recipe, 0, 120) == pytest.approx(0.01)


def test_constant_after_the_warm_up() -> None:
    recipe = registry.load_recipe("paper/normal").override(["schedule=constant"])
    assert [at(recipe, 0, e) for e in (0, 20, 159)] == [1 / 20, 1.0, 1.0]


FIELDS = (
    "schedule=plateau", "warmup=0", "plateau_epochs=2", "plan.epochs=8", "lr=0.064",
    "plan.epoch_images=16",
)  # fmt: skip


def test_halvings_by_hand() -> None:
    """Best at epoch 1; 2 and 3 are no better: halved after 3, again after 5, not after 7."""
    plateau, fell = PlateauSchedule(), []
    for epoch, accuracy in enumerate((0.3, 0.5, 0.5, 0.4, 0.1, 0.5, 0.2, 0.6, 0.6)):
        plateau.update(epoch, accuracy, wait=2)
        fell.append(plateau.fell)
    assert fell == [False, False, False, True, False, True, False, False, False]
    assert (plateau.best, plateau.drops) == (0.6, 2)


def test_epochs_without_validation_count_but_decide_nothing() -> None:
    plateau, fell = PlateauSchedule(), []
    for epoch, accuracy in enumerate((None, 0.5, None, None, None, 0.5, None, 0.5, None, 0.5)):
        plateau.update(epoch, accuracy, wait=4)
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


def test_the_rate_halves_in_the_loop_and_starts_afresh_every_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """.5 at epoch 0; halved after 2 and after 4; .9 at 5; halved after 7, too late."""
    seeing(monkeypatch, {5: 0.9})
    train_recipe(tiny("normal", *FIELDS), source(), tmp_path)
    rates = [row["lr"] for row in lines(tmp_path)]
    assert (
        rates == [0.064] * 3 + [0.032] * 2 + [0.016] * 3 + [0.064] * 3 + [0.032] * 2 + [0.016] * 3
    )


def test_the_factor_is_a_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeing(monkeypatch, {})
    recipe = tiny("normal", *FIELDS, "plateau_factor=0.25", "plan.rounds=1")
    train_recipe(recipe, source(), tmp_path)
    assert [row["lr"] for row in lines(tmp_path)][2:6] == [0.064, 0.016, 0.016, 0.004]


@pytest.mark.parametrize("step", [3, 6, 7, 9, 17, 22])
def test_a_killed_run_keeps_waiting_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    seeing(monkeypatch, {5: 0.9})
    recipe = tiny("normal", *FIELDS)
    train_recipe(recipe, source(), tmp_path / "whole")
    killed_at(step, recipe, tmp_path / "parts", monkeypatch)
    train_recipe(recipe, source(), tmp_path / "parts")
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert equal(weights(tmp_path / "parts"), weights(tmp_path / "whole"))


def test_methods_hear_of_a_halving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """swr_reanchor acts on learning-rate drops, so the schedule serves it too."""
    from pretrain.methods.swr_reanchor import SwrReanchor

    calls: list[tuple[int, int, float, float]] = []

    def hear(self: SwrReanchor, ctx: object, old: float, new: float) -> None:
        clock = ctx.clock  # type: ignore[attr-defined]
        calls.append((clock.round, clock.epoch, old, new))

    monkeypatch.setattr(SwrReanchor, "lr_changed", hear)
    seeing(monkeypatch, {})
    train_recipe(tiny("swr_reanchor", *FIELDS), source(), tmp_path)
    a_round = [(3, 0.064, 0.032), (5, 0.032, 0.016), (7, 0.016, 0.008)]
    assert calls == [(r, *drop) for r in range(2) for drop in a_round]
