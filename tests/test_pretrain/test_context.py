"""What a hook may do: rewrite with a log, re-draw, rebuild the optimizer, draw from its stream."""

from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, lines, tiny, trainer

from pretrain.training.context import Context


def after_one_epoch(out: Path, *assignments: str) -> Context:
    made = trainer(tiny("llf", *assignments), out)
    epochs(made, 1)
    made.ctx.acting = "llf"
    return made.ctx


def momenta(ctx: Context) -> dict[str, torch.Tensor]:
    state = ctx.optimizer_state()
    return {name: values["momentum_buffer"].clone() for name, values in state.items()}


def test_a_rewrite_changes_and_logs_what_it_says(tmp_path: Path) -> None:
    ctx = after_one_epoch(tmp_path)
    before = {n: t.clone() for n, t in ctx.model.state_dict().items()}
    new = ctx.parameters["fc.bias"].detach().clone()
    new[0] += 1
    ctx.rewrite({"fc.bias": new}, "first class")
    changed = [n for n, t in ctx.model.state_dict().items() if not torch.equal(t, before[n])]
    assert changed == ["fc.bias"]
    assert lines(tmp_path, "rewrites.jsonl") == [
        {
            "step": 2,
            "stage": 0,
            "round": 0,
            "epoch": 1,
            "method": "llf",
            "tensors": ["fc.bias"],
            "fraction_changed": 0.25,
            "optimizer_state": "reset",
            "note": "first class",
        }
    ]


@pytest.mark.parametrize("drop", ["none", "touched", "all"])
def test_whose_momentum_survives_a_new_optimizer(tmp_path: Path, drop: str) -> None:
    ctx = after_one_epoch(tmp_path)
    before = momenta(ctx)
    assert before.keys() == ctx.parameters.keys()
    ctx.rewrite({"fc.weight": torch.zeros_like(ctx.parameters["fc.weight"])}, "head")
    ctx.rebuild_optimizer(drop)  # type: ignore[arg-type]
    after = momenta(ctx)
    gone = {"none": set(), "touched": {"fc.weight"}, "all": set(before)}[drop]
    assert before.keys() - after.keys() == gone
    assert all(torch.equal(after[name], before[name]) for name in after)


def test_touched_is_forgotten_once_its_momentum_is(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="before the first round"):
        _ = trainer(tiny("normal"), tmp_path / "start").ctx.optimizer
    ctx = after_one_epoch(tmp_path)
    ctx.rewrite({"fc.weight": torch.zeros_like(ctx.parameters["fc.weight"])}, "head")
    ctx.rebuild_optimizer("none")
    assert ctx.touched == {"fc.weight"}
    ctx.rebuild_optimizer("touched")
    assert ctx.touched == set()


def test_redraws_differ_by_round_and_repeat_by_position(tmp_path: Path) -> None:
    ctx = after_one_epoch(tmp_path)
    drawn = []
    for round_ in (1, 2, 1):
        ctx.clock.round = round_
        ctx.redraw(["fc.weight"], "test")
        drawn.append(ctx.parameters["fc.weight"].detach().clone())
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_every_method_draws_from_its_own_stream(tmp_path: Path) -> None:
    ctx = after_one_epoch(tmp_path)
    draws = {}
    for name in ("llf", "other"):
        ctx.acting = name
        with ctx.stream("mask"):
            draws[name] = torch.rand(3)
        assert not torch.equal(draws[name], torch.rand(3, generator=ctx.generator("other")))
        assert torch.equal(draws[name], torch.rand(3, generator=ctx.generator("mask")))
    assert not torch.equal(draws["llf"], draws["other"])
