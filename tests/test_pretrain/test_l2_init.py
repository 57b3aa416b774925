"""L2 Init pulls to the initial parameters, or to those at the last new data."""

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, tiny, trainer
from torch import Tensor

from fsbench.core.errors import UsageError
from pretrain.bases import penalties
from pretrain.recipes import plan
from pretrain.training.loop import Trainer


def parameters(made: Trainer) -> dict[str, Tensor]:
    return {n: p.detach().clone() for n, p in made.ctx.model.named_parameters()}


def initial_tensors(made: Trainer) -> dict[str, Tensor]:
    made.ctx.acting = "l2_init"
    return penalties.stored_anchors(made.ctx)


def test_the_gradient_is_lam_times_the_distance_to_the_start(tmp_path: Path) -> None:
    made = trainer(tiny("l2_init", "l2_init.lam=0.5", "lr=0.2"), tmp_path)
    start = parameters(made)
    epochs(made, 1)
    there = parameters(made)
    for name, parameter in made.ctx.model.named_parameters():
        parameter.grad = torch.zeros_like(there[name])
    made.ctx.call("after_backward")
    for name, parameter in made.ctx.model.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, 0.5 * (there[name] - start[name]))
        assert start.keys() == initial_tensors(made).keys()


def test_a_strong_penalty_keeps_the_network_at_its_initial_weights(tmp_path: Path) -> None:
    distances = []
    for lam in (0.0, 5.0):
        made = trainer(tiny("l2_init", f"l2_init.lam={lam}", "momentum=0"), tmp_path / str(lam))
        start = parameters(made)
        epochs(made, 8)
        now = parameters(made)
        distances.append(float(sum((now[n] - start[n]).square().sum() for n in start)))
    assert distances[1] < distances[0] / 2


@pytest.mark.parametrize("reanchor", [False, True])
def test_the_anchor_moves_with_new_data_only_with_the_option(
    reanchor: bool, tmp_path: Path
) -> None:
    fields = plan.scenario_fields("warm-start") | {"l2_init.reanchor_on_new_data": reanchor}
    made = trainer(tiny("l2_init", "plan.rounds=1").replace(fields), tmp_path)
    start = parameters(made)
    epochs(made, made.recipe.plan.epochs)
    there = parameters(made)
    made._open_epoch(2)
    expected = there if reanchor else start
    assert all(torch.equal(expected[n], t) for n, t in initial_tensors(made).items())
    epochs(made, 1)
    assert all(torch.equal(expected[n], t) for n, t in initial_tensors(made).items())


def test_reanchoring_without_new_data_is_refused() -> None:
    with pytest.raises(UsageError, match="--scenario warm-start"):
        tiny("l2_init", "l2_init.reanchor_on_new_data=true")
