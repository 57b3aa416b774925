"""What a hook may do: rewrite with a log, re-draw, rebuild the optimizer, draw from its stream."""

from pathlib import Path
from typing import Literal

import pytest
import torch
from support.pretrain import epochs, tiny, trainer

from pretrain.training.context import Context


def after_one_epoch(out: Path, *assignments: str) -> Context:
    made = trainer(tiny("llf", *assignments), out)
    epochs(made, 1)
    made.ctx.acting = "llf"
    return made.ctx


@pytest.mark.parametrize("drop", ["none", "touched", "all"])
def test_whose_momentum_survives_a_new_optimizer(
    tmp_path: Path, drop: Literal["none", "touched", "all"]
) -> None:
    """What was rewritten is remembered until its momentum is dropped."""
    ctx = after_one_epoch(tmp_path)
    before = {n: state["momentum_buffer"].clone() for n, state in ctx.optimizer_state().items()}
    assert before.keys() == ctx.parameters.keys()
    ctx.rewrite({"fc.weight": torch.zeros_like(ctx.parameters["fc.weight"])}, "head")
    ctx.rebuild_optimizer(drop)
    after = ctx.optimizer_state()
    gone = {"none": set(), "touched": {"fc.weight"}, "all": set(before)}[drop]
    assert before.keys() - after.keys() == gone
    assert all(torch.equal(after[name]["momentum_buffer"], before[name]) for name in after)
    assert ctx.touched == ({"fc.weight"} if drop == "none" else set())


def test_there_is_no_optimizer_before_the_first_round(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="before the first round"):
        _ = trainer(tiny("normal"), tmp_path).ctx.optimizer


def test_streams_differ_by_round_method_and_purpose_and_repeat_by_position(tmp_path: Path) -> None:
    ctx = after_one_epoch(tmp_path)

    def draw(round_: int, method: str, purpose: str) -> tuple[float, ...]:
        ctx.clock.round, ctx.acting = round_, method
        with ctx.stream(purpose):
            drawn = torch.rand(3)
        assert torch.equal(drawn, torch.rand(3, generator=ctx.generator(purpose)))
        ctx.redraw(["fc.weight"], "test")
        return (*drawn.tolist(), *ctx.parameters["fc.weight"][0].tolist())

    named = [(1, "llf", "mask"), (2, "llf", "mask"), (1, "other", "mask"), (1, "llf", "other")]
    draws = [draw(*names) for names in named]
    assert draws[0] == draw(*named[0])
    assert len({drawn[0] for drawn in draws}) == 4
    assert [drawn[3] == draws[0][3] for drawn in draws] == [True, False, False, True]
