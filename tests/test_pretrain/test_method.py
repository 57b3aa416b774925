"""What methods have in common: a plain first round, plans that suit them, exact resuming."""

import signal
from pathlib import Path

import pytest
import torch
from support.events import changed, finish_epoch, open_round, tensors, train_round
from support.pretrain import EASY, assert_same_run, equal, killed_at, lines, source, tiny, trainer

from fsbench.core.errors import UsageError
from fsbench.core.process import Stopped
from pretrain.training.loop import Trainer, train_recipe
from pretrain.training.run_folder import is_finished

AT_ROUNDS = ("dsd", "fc", "imp", "kels", "llf", "lw", "rescale", "seal", "wels", "welsr")


@pytest.mark.parametrize("name", AT_ROUNDS)
def test_the_first_round_is_plain_training(name: str, tmp_path: Path) -> None:
    made, plain = trainer(tiny(name), tmp_path / name), trainer(tiny("normal"), tmp_path / "normal")
    before, after = open_round(made)
    assert changed(before, after) == set()
    finish_epoch(made)
    train_round(made)
    train_round(plain)
    assert equal(tensors(made), tensors(plain))
    assert lines(tmp_path / name, "rewrites.jsonl") == []


@pytest.mark.parametrize("name", AT_ROUNDS)
def test_a_plan_of_one_round_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} would never act") as caught:
        tiny(name, "plan.rounds=1")
    assert "plan.rounds=2" in caught.value.fix


ALGORITHM_1 = ("lw.generations=false", "plan.rounds=4", "plan.epochs=1")
RESUMED = {
    "round event": (("llf",), (0, 1, 2, 7, 8, 9, 15)),
    "factors": (("nio", "nio.iterations=5"), (1, 8, 11)),
    "sparse phase": (("dsd", "dsd.sparse_epochs=2", "redraw=kaiming_uniform_sqrt5"), (10, 12, 13)),
    "early origin": (("imp", "imp.rewind_epoch=2"), (3, 5, 11)),
    "dropout": (("lw", "dropout=0.5"), (7,)),
    "new data": (("shrink_perturb", "plan.rounds=1"), (9,)),
    "per channel": (("lw", *ALGORITHM_1, "lw.statistics=per_channel"), (3, 4)),
    "frozen blocks": (("lw", *ALGORITHM_1, "lw.freeze_kept=true"), (3, 7)),
    "frozen norms": (("seal_freeze", "seal_freeze.freeze_norm=true"), (9,)),
    "adam": (("seal", "optimizer=adam", "lr=0.01"), (11,)),
    "early end": (("welsr", *EASY, "plan.stop_patience=2"), (10, 32)),
}
"""Recipes with a state of their own, and the steps before which they are killed."""


@pytest.mark.parametrize("case", RESUMED)
def test_a_killed_run_resumes_to_the_same_bits_logs_and_totals(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields, steps = RESUMED[case]
    recipe, whole, state = tiny(*fields), tmp_path / "whole", torch.get_rng_state()
    train_recipe(recipe, source(), whole)
    for step in steps:
        parts = tmp_path / f"parts-{step}"
        killed_at(step, recipe, parts, monkeypatch)
        assert not is_finished(parts)
        train_recipe(recipe, source(), parts)
        assert_same_run(parts, whole)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("step", [1, 8, 16])
def test_a_signal_after_any_step_ends_at_the_same_bits_and_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Also after the last step of an epoch, when all that is left of it is to be logged."""
    recipe, whole, parts = tiny("llf"), tmp_path / "whole", tmp_path / "parts"
    train_recipe(recipe, source(), whole)
    steps = Trainer._step

    def stopping(self: Trainer, n: int) -> None:
        steps(self, n)
        self.stop.number = signal.SIGTERM * (self.ctx.clock.step == step)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", stopping)
        with pytest.raises(Stopped):
            train_recipe(recipe, source(), parts)
    train_recipe(recipe, source(), parts)
    assert_same_run(parts, whole)
