"""Re-anchoring moves the target of SWR to the current norms, at the chosen events only."""

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, tiny, trainer
from support.rules import build, context, train

from fsbench.core.errors import UsageError
from pretrain.methods.swr import get_layer_weights
from pretrain.methods.swr_reanchor import SwrReanchor
from pretrain.recipes import plan
from pretrain.training.loop import Trainer
from pretrain.weights.surgery import frobenius_norms


def anchored_epochs(made: Trainer) -> list[int]:
    """Epochs, counted over the whole run, at whose start the target is the current norms."""
    anchored = []
    for epoch in range(made.recipe.plan.total_epochs):
        made._open_epoch(2)
        target = made.ctx.memories["swr_reanchor"]["norms"]
        if epoch and torch.equal(target, frobenius_norms(get_layer_weights(made.ctx))):
            anchored.append(epoch)
        made._step(2)
        epochs(made, 1)
    return anchored


def test_learning_rate_drops_reanchor(tmp_path: Path) -> None:
    """Four epochs a round: drops at 2 and 3 of each."""
    assert anchored_epochs(trainer(tiny("swr_reanchor"), tmp_path)) == [2, 3, 6, 7]


def test_new_data_reanchor_with_the_option(tmp_path: Path) -> None:
    fields = plan.scenario_fields("warm-start") | {"swr_reanchor.on": "new_data"}
    made = trainer(tiny("swr_reanchor").replace(fields), tmp_path / "new")
    assert anchored_epochs(made) == [8]
    fields |= {"swr_reanchor.on": "both", "schedule": "step"}
    made = trainer(tiny("swr_reanchor").replace(fields), tmp_path / "both")
    assert anchored_epochs(made) == [2, 3, 6, 7, 8, 10, 11, 14, 15]


def test_every_epochs_reanchors_under_a_schedule_without_drops(tmp_path: Path) -> None:
    settings = ("schedule=cosine", "swr_reanchor.on=none", "swr_reanchor.every_epochs=3")
    assert anchored_epochs(trainer(tiny("swr_reanchor", *settings), tmp_path)) == [3, 7]


def test_the_first_step_after_it_changes_nothing() -> None:
    model, roles = build("cnn_bn")
    ctx = context(model, roles)
    method = SwrReanchor(lam=0.3)
    method.setup(ctx)
    train(model, "reanchor")
    method.lr_changed(ctx, 0.1, 0.01)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    method.after_step(ctx)
    for name, value in model.named_parameters():
        torch.testing.assert_close(value.detach(), before[name], rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "settings",
    [
        ("schedule=cosine",),
        ("milestones=[1.0]",),
        ("gamma=1",),
        ("swr_reanchor.on=none",),
        ("swr_reanchor.on=none", "swr_reanchor.every_epochs=4"),
    ],
)
def test_a_run_without_events_is_refused(settings: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="never re-anchor"):
        tiny("swr_reanchor", *settings)


def test_new_data_needs_a_second_stage() -> None:
    with pytest.raises(UsageError, match="--scenario warm-start"):
        tiny("swr_reanchor", "swr_reanchor.on=new_data")
