"""The loop: order of hooks, logs, resuming, refusing to go on with NaN, the exported run."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from support.pretrain import equal, lines, source, tiny, train, trainer, weights
from torch import Tensor, nn
from torch._dynamo.utils import counters

from fsbench.core.errors import DataError, FsbenchError
from pretrain.method import HOOKS, Method
from pretrain.recipes.recipe import ActingOrder, Recipe
from pretrain.training import checkpoint, loop
from pretrain.training.batches import Batch
from pretrain.training.context import Context
from pretrain.training.loop import Trainer, train_recipe
from pretrain.training.run_folder import is_finished

CALLS: list[str] = []
DRAWN = (
    "setup", "round_start", "stage_start", "param_groups", "epoch_start", "lr_changed",
    "training_step", "loss_term", "after_backward", "before_step", "after_step", "round_end",
    "finalize",
)  # fmt: skip


def note(hook: str) -> Callable[..., object]:
    """Return a hook that notes its call and does nothing."""

    def call(self: Method, ctx: Context, *arguments: Any) -> object:
        CALLS.append(f"{hook} {arguments[1] / arguments[0]:.2g}" if hook == "lr_changed" else hook)
        if hook == "param_groups":
            return arguments[0]
        return torch.zeros(()) if hook == "loss_term" else None

    return call


NOTED = {hook: note(hook) for hook in DRAWN if hook != "training_step"}
Spy: type[Method] = type(
    "Spy", (Method,), {"RANK": ActingOrder.STEP, **NOTED, "__module__": __name__}
)


class OwnStep(Method):
    """Minimises something else: half the mean squared logit."""

    RANK: ClassVar = ActingOrder.STEP

    def training_step(self, ctx: Context, batch: Batch) -> Tensor:
        return ctx.forward(batch.images).square().mean() / 2


def recipe_with(method: Method, *assignments: str) -> Recipe:
    return Recipe.model_construct(**{**dict(tiny("normal", *assignments)), "methods": (method,)})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    CALLS.clear()
    yield
    CALLS.clear()


def test_hooks_run_in_the_documented_order(tmp_path: Path) -> None:
    fields = ("plan.rounds=1", "plan.epochs=2", "schedule=step", "warmup=0")
    stages = 'plan.stages=[{"stop": 0.5}, {}]'
    train_recipe(recipe_with(Spy(), *fields, stages), source(), tmp_path)
    step = ["loss_term", "after_backward", "before_step", "after_step"]
    opening = ["round_start", "stage_start", "param_groups", "epoch_start"]
    second = ["epoch_start", "lr_changed 0.1"]
    a_round = [*opening, *step * 2, *second, *step * 2, "round_end"]
    assert ["setup", *a_round, *a_round, "finalize"] == CALLS
    words = [line.split()[0] for line in (loop.__doc__ or "").splitlines() if line.strip()]
    assert [word for word in words if word in HOOKS] == list(DRAWN)


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++"))), reason="torch.compile needs a C++ compiler"
)
@pytest.mark.parametrize("name", ["normal", "seal"])
def test_a_compiled_run_is_near_the_eager_one(name: str, device: str, tmp_path: Path) -> None:
    """By code that inductor generates, on a GPU as graphs; tolerances are of pretrain/README.md."""
    eager = weights(train(tmp_path / "eager", name))
    torch.testing.assert_close(
        weights(train(tmp_path / device, name, device=device)), eager, rtol=1e-3, atol=1e-4
    )
    torch.compiler.reset()
    counters.clear()
    compiled = weights(train(tmp_path / "compiled", name, "compile=true", device=device))
    assert counters["frames"]["ok"] == counters["frames"]["total"] > 0
    assert not counters["inductor"]["cudagraph_skips"]
    for tensor, weight in compiled.items():
        torch.testing.assert_close(weight, eager[tensor], rtol=1e-3, atol=1e-4, msg=tensor)


def test_a_method_whose_hooks_do_nothing_leaves_every_bit(tmp_path: Path) -> None:
    spy = train_recipe(recipe_with(Spy()), source(), tmp_path / "spy")
    assert equal(weights(spy), weights(train(tmp_path / "normal", "normal")))


def test_a_method_may_replace_the_training_step(tmp_path: Path) -> None:
    log = lines(train_recipe(recipe_with(OwnStep()), source(), tmp_path))
    assert log[-1]["train_loss"] < 0.8 * log[0]["train_loss"]
    assert log[-1]["train_accuracy"] is None


def test_one_line_an_epoch_with_what_it_measured_and_training_learns(tmp_path: Path) -> None:
    log = lines(train(tmp_path, "normal", "validate_every=3", "augmentation=none"))
    assert [(x["round"], x["epoch"], x["step"]) for x in log] == [
        (i // 4, i % 4, 2 * i + 2) for i in range(8)
    ]
    measured = [x["val_accuracy"] is not None for x in log]
    assert measured == [False, False, True, True] * 2
    assert all(0 <= x["train_accuracy"] <= 1 and x["train_loss"] > 0 for x in log)
    assert log[-1]["train_loss"] < log[0]["train_loss"]


def test_a_run_killed_before_its_export_only_exports_and_a_finished_one_returns_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, killed = train(tmp_path / "whole", "normal"), tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_finish", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(killed, "normal")
    monkeypatch.setattr(Trainer, "_step", None)
    assert equal(weights(train(killed, "normal")), weights(whole))
    monkeypatch.setattr(loop, "Trainer", None)
    assert train(killed, "normal") == killed


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FsbenchError, match=r"not finite at step \d+ \(round 0") as caught:
        train(tmp_path, "normal", "lr=1e25", "schedule=constant", "warmup=0")
    assert caught.value.exit_code == 1
    assert "--set lr=" in str(caught.value)
    loaded = checkpoint.load_checkpoint(tmp_path)
    assert loaded is None or all(torch.isfinite(t).all() for t in loaded[0].values())
    assert not is_finished(tmp_path)


def test_a_checkpoint_never_holds_a_weight_that_is_not_finite(tmp_path: Path) -> None:
    made = trainer(tiny("normal"), tmp_path)
    made._epoch(lambda n: None)
    made._save()
    before = (tmp_path / "checkpoint.json").read_bytes()
    with torch.no_grad():
        made.ctx.model.get_parameter("fc.bias")[0] = torch.inf
    with pytest.raises(FsbenchError, match="a weight is not finite"):
        made._save()
    assert (tmp_path / "checkpoint.json").read_bytes() == before


def test_a_source_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="was loaded at 8 px"):
        train(tmp_path, "normal", "input_size=16")


def test_validation_leaves_the_model_and_the_random_state_as_they_were(tmp_path: Path) -> None:
    made = trainer(tiny("normal"), tmp_path)
    norm = made.ctx.model.get_submodule("bn1")
    assert isinstance(norm, nn.BatchNorm2d)
    norm.eval()
    before = {n: t.clone() for n, t in made.ctx.model.state_dict().items()}
    state = torch.get_rng_state()
    made.validation.accuracy(made.ctx.model)
    assert equal(before, made.ctx.model.state_dict())
    assert torch.equal(state, torch.get_rng_state())
    assert not norm.training
    assert made.ctx.model.get_submodule("layer1").training


def test_who_watches_sees_the_start_and_the_end_of_every_epoch(tmp_path: Path) -> None:
    calls: list[tuple[int, int, int]] = []

    def watch(ctx: Context) -> None:
        calls.append((ctx.clock.round, ctx.clock.epoch, ctx.clock.step))

    train(tmp_path, "normal", "plan.rounds=1", "plan.epochs=2", watch=watch)
    assert calls == [(0, 0, 0), (0, 0, 2), (0, 1, 4)]


CONSTANT = ("schedule=constant", "warmup=0", "momentum=0", "width=2")


def take_first_step(out: Path, *assignments: str) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield every tensor before and after the first step, and its gradient."""
    made = trainer(tiny("normal", *CONSTANT, *assignments), out)
    made._open_epoch(2)
    before = {n: p.detach().clone() for n, p in made.ctx.parameters.items()}
    made._step(2)
    for name, parameter in made.ctx.parameters.items():
        assert parameter.grad is not None
        yield before[name], parameter.detach(), parameter.grad


def test_adamw_decays_apart_from_its_step(tmp_path: Path) -> None:
    for old, new, gradient in take_first_step(
        tmp_path, "optimizer=adamw", "lr=0.1", "weight_decay=0.5"
    ):
        expected = old * (1 - 0.1 * 0.5) - 0.1 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(new, expected)


def test_the_gradient_of_all_weights_is_clipped_together(tmp_path: Path) -> None:
    steps = take_first_step(tmp_path, "clip_norm=0.01", "lr=1", "weight_decay=0")
    moved = torch.cat([(new - old).flatten() for old, new, _ in steps])
    assert moved.norm().item() == pytest.approx(0.01, rel=1e-3)
    assert moved.count_nonzero() > len(moved) / 3
