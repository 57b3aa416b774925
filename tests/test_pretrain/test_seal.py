"""SEAL's ascent against an independent loop, its invariants and its ablations."""

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from support.events import changed, tensors
from support.pretrain import epochs, equal, lines, record, tiny, train, trainer
from support.reporters import Recorder
from torch import Tensor, nn
from torch.nn import functional

from pretrain.recipes import registry, schedules
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import Trainer

LONG = ("plan.epoch_images=32", "plan.epochs=4", "schedule_by=step", "lr=0.1")
"""Four steps an epoch, the first epoch of round 1 ascends."""
STRONG = ("seal.ascent_factor=0.1", "lr=0.5")
EARLY = ("conv1.", "bn1.", "layer1.", "layer2.")


def early(name: str) -> bool:
    return name.startswith(EARLY)


def at_round_one(out: Path, method: str = "seal", *assignments: str, beside: str = "") -> Trainer:
    """A trainer that has done round 0 and opened round 1. beside: another method."""
    recipe = registry.compose_methods(tiny(method, *LONG), f"{method}{beside}")
    made = trainer(recipe.override(assignments), out)
    epochs(made, 4)
    made._open_epoch(4)
    return made


def official(made: Trainer, factor: float, decay: float) -> tuple[nn.Module, torch.optim.SGD]:
    """SGD as the official code builds it: descent first, ascent by a negative learning rate."""
    model, recipe = copy.deepcopy(made.ctx.model), made.recipe
    named = dict(model.named_parameters())
    late, first = ([p for n, p in named.items() if early(n) is side] for side in (False, True))
    groups = [
        {"params": late, "scale": 1.0},
        {"params": first, "scale": -factor, "weight_decay": decay * recipe.weight_decay},
    ]
    sgd = torch.optim.SGD(
        groups, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    return model, sgd


def step_both(made: Trainer, model: nn.Module, sgd: torch.optim.SGD, steps: int) -> None:
    """Take steps of the run, and the same ones by the reference."""
    for _ in range(steps):
        batch = made.ctx.loader.batch(made.ctx.clock)
        made._step(4)
        for group in sgd.param_groups:
            group["lr"] = made.lr * group["scale"]
        sgd.zero_grad()
        functional.cross_entropy(model(batch.images), batch.labels, label_smoothing=0.1).backward()
        sgd.step()


@pytest.mark.parametrize("decay", [-1, 0])
def test_ascent_equals_the_official_negative_rate_bit_for_bit_and_then_plain_descent(
    tmp_path: Path, decay: int
) -> None:
    fields = (f"seal.ascent_decay={decay}", "seal.ascent_factor=0.5", "weight_decay=0.05")
    made = at_round_one(tmp_path, "seal", *fields)
    model, sgd = official(made, 0.5, decay)
    step_both(made, model, sgd, 4)
    assert equal(made.ctx.model.state_dict(), model.state_dict())
    made._close_epoch()
    made._open_epoch(4)
    model, sgd = official(made, -1.0, 1.0)
    step_both(made, model, sgd, 4)
    assert equal(made.ctx.model.state_dict(), model.state_dict())


def gradients(made: Trainer) -> dict[str, Tensor]:
    """Gradients of the coming batch, on a copy."""
    model, batch = copy.deepcopy(made.ctx.model), made.ctx.loader.batch(made.ctx.clock)
    loss = functional.cross_entropy(model(batch.images), batch.labels, label_smoothing=0.1)
    grads = torch.autograd.grad(loss, list(model.parameters()))
    return dict(zip(dict(model.named_parameters()), grads, strict=True))


@pytest.mark.parametrize("reset", ["none", "touched", "all"])
def test_early_and_late_parameters_part_the_network_and_momentum_is_dropped(
    tmp_path: Path, reset: str
) -> None:
    """Momentum of descent never enters the ascent, nor the other way round."""
    made = at_round_one(tmp_path, "seal", f"opt_reset={reset}")
    assert not made.ctx.optimizer.state
    late, ascending = ({id(p) for p in g["params"]} for g in made.ctx.optimizer.param_groups)
    names = {id(p): n for n, p in made.ctx.model.named_parameters()}
    assert late | ascending == set(names)
    assert not late & ascending
    assert {names[i] for i in ascending} == {n for n in names.values() if early(n)}
    for n_groups in (2, 1):
        assert len(made.ctx.optimizer.param_groups) == n_groups
        for _ in range(4):
            made._step(4)
        assert len(made.ctx.optimizer.state) == len(made.ctx.parameters)
        made._close_epoch()
        made._open_epoch(4)
        assert bool(made.ctx.optimizer.state) == (n_groups == 1)


@pytest.mark.parametrize("method", ["seal", "seal_freeze", "seal_reinit", "seal_reverse"])
def test_penalties_shrink_weights_in_ascent_too(tmp_path: Path, method: str) -> None:
    """As the decay does: of the gradient, only that of the loss is flipped."""
    made = at_round_one(tmp_path, method, "l2.lam=2", beside="+l2")
    slope, name = gradients(made), made.ctx.memories[method]["ascent_set"][0]
    weight = made.ctx.model.get_parameter(name)
    expected = -slope[name] + 2.0 * weight.detach()
    made._step(4)
    torch.testing.assert_close(weight.grad, expected)


@pytest.mark.parametrize(
    ("share", "length", "ascent"), [(0.25, 160, 40), (0.25, 7, 1), (0.29, 100, 29), (1.0, 4, 4)]
)
def test_the_ascent_is_the_share_of_the_epochs_rounded_down(
    share: float, length: int, ascent: int
) -> None:
    recipe = tiny("seal", f"plan.epochs={length}", f"seal.ascent_share={share}")
    assert recipe.method("seal").ascent_epochs(recipe) == ascent  # type: ignore[attr-defined]


def descent_ratio(recipe: Recipe) -> float:
    seal: Any = recipe.methods[0]
    images = recipe.source_subset.classes * 25 if recipe.source_subset else 100_000
    return float(seal.descent_ratio(recipe, images))


@pytest.mark.parametrize(
    ("fields", "ratio"),
    [  # S = .5, four epochs of four steps, the first one ascends: by hand
        (("schedule=constant",), 3 / 0.5),
        (("schedule=constant", "plan.epoch_images=4"), 3 / 0.5),  # fewer images than a batch
        (("schedule=step", "gamma=0.1"), (1 + 0.1 + 0.01) / 0.5),  # drops at epochs 2 and 3
        (("schedule_by=epoch",), (1 + 1 + 1) / 2 / 0.5),  # cosines of pi/4, pi/2, 3 pi/4: sum 0
        (("schedule=constant", "warmup=0.5"), (26 / 32 + 2) / (0.5 * 10 / 32)),
        (("schedule=constant", "seal.ascent_factor=0"), math.inf),
        (("schedule=constant", "seal.ascent_share=1"), 0),
    ],
)
def test_descent_over_ascent_follows_the_schedule(fields: tuple[str, ...], ratio: float) -> None:
    recipe = tiny("seal", *LONG, "seal.ascent_factor=0.5").override(fields)
    assert descent_ratio(recipe) == pytest.approx(ratio)


def test_descent_over_ascent_is_smallest_at_the_end_of_one_long_cosine() -> None:
    fields = ("plan.rounds=3", "schedule=single_cycle", "schedule_by=epoch")
    recipe = tiny("seal", *LONG, *fields, "seal.ascent_factor=0.5")
    rates = [1 + math.cos(math.pi * epoch / 12) for epoch in range(8, 12)]
    assert descent_ratio(recipe) == pytest.approx(sum(rates[1:]) / (0.5 * rates[0]))


@pytest.mark.parametrize("method", ["seal", "seal_freeze", "seal_reinit", "seal_reverse"])
def test_recipes_descend_and_ascend_as_the_paper_does(method: str) -> None:
    assert descent_ratio(registry.load_recipe(f"paper/{method}")) == pytest.approx(168, abs=0.5)
    for scale in ("toy", "pilot", "regime", "full"):
        assert descent_ratio(registry.load_recipe(f"{scale}/{method}")) >= 150


@pytest.mark.parametrize(
    ("scale", "ratio", "images"), [("pilot", 4.6, 100_000), ("regime", 1.1, 500), ("full", 8.4, 0)]
)
def test_the_long_ascent_is_as_long_as_the_papers_before_a_short_descent(
    scale: str, ratio: float, images: int
) -> None:
    recipe = registry.load_recipe(f"{scale}/seal_long_ascent")
    assert descent_ratio(recipe) == pytest.approx(ratio, abs=0.05)
    if images:
        seal: Any = recipe.methods[0]
        rates = schedules.sum_rates(recipe, seal.ascent_epochs(recipe), images)
        assert seal.ascent_factor * rates == pytest.approx(9.435, rel=0.02)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_accuracy_around_every_ascent_is_recorded(tmp_path: Path, share: float) -> None:
    train(tmp_path, "seal", *LONG, "plan.rounds=3", f"seal.ascent_share={share}", *STRONG)
    ascents = record(tmp_path)["measured"]["seal.ascents"]
    assert len(ascents) == 2
    assert all(after < before / 2 for before, after in ascents if before > 0.9)
    notes = [line["note"] for line in lines(tmp_path, "rewrites.jsonl")]
    assert notes == [
        f"training accuracy {before:.1%} before the ascent, {after:.1%} after it"
        for before, after in ascents
    ]


ASCENT = "warning: seal round 1: training accuracy"
DESCENT = "warning: seal: networks may not recover."


@pytest.mark.parametrize(
    ("method", "factor", "expected"),
    [
        ("seal", 0.0, {ASCENT: "not at chance. First try longer rounds"}),
        ("seal", 0.1, {DESCENT: "to 0.018. Descent / ascent is 30 by learning rates, 168 in"}),
        ("seal", 10.0, {DESCENT: "Lower seal.ascent_factor from 10 to 0.018"}),
        ("seal_long_ascent", 10.0, {}),
    ],
)
def test_an_ascent_that_does_nothing_or_leaves_no_descent_is_warned_of(
    tmp_path: Path, method: str, factor: float, expected: dict[str, str]
) -> None:
    fields = ("schedule=constant", "warmup=0", "lr=0.1", "plan.epochs=16", "plan.epoch_images=40")
    report = Recorder()
    train(tmp_path, method, *fields, f"{method}.ascent_factor={factor}", report=report)
    warnings = [line for line in report.lines if line.startswith("warning: seal")]
    for start, text in expected.items():
        assert any(line.startswith(start) and text in line for line in warnings), warnings
    assert not any("Raise" in line for line in warnings)
    assert len([w for w in warnings if w.startswith(DESCENT)]) == (DESCENT in expected)


# Ablations


def changed_by_an_epoch(made: Trainer) -> set[str]:
    before = tensors(made)
    for _ in range(4):
        made._step(4)
    return changed(before, tensors(made))


@pytest.mark.parametrize("freeze_norm", [False, True])
def test_freeze_holds_the_late_layers_while_the_early_ones_ascend(
    tmp_path: Path, freeze_norm: bool
) -> None:
    made = at_round_one(tmp_path, "seal_freeze", f"seal_freeze.freeze_norm={freeze_norm}")
    moved = changed_by_an_epoch(made)
    parameters = set(made.ctx.parameters)
    assert moved & parameters == set(filter(early, parameters))
    statistics = {n for n in moved if "running" in n and not early(n)}
    assert bool(statistics) is not freeze_norm
    made._close_epoch()
    made._open_epoch(4)
    moved = changed_by_an_epoch(made)
    assert parameters <= moved
    assert "layer4.0.bn1.running_mean" in moved
    assert all(m.training for m in made.ctx.model.modules() if isinstance(m, nn.BatchNorm2d))


def test_reinit_forgets_like_llf_and_then_ascends(tmp_path: Path) -> None:
    made = at_round_one(tmp_path / "a", "seal_reinit")
    llf = at_round_one(tmp_path / "b", "llf")
    [record], [theirs] = (lines(tmp_path / run, "rewrites.jsonl") for run in "ab")
    assert record["tensors"] == theirs["tensors"]
    assert len(made.ctx.optimizer.param_groups) == 2
    assert len(llf.ctx.optimizer.param_groups) == 1


@pytest.mark.parametrize("head_descends", [False, True])
def test_reverse_ascends_late(tmp_path: Path, head_descends: bool) -> None:
    made = at_round_one(tmp_path, "seal_reverse", f"seal_reverse.head_descends={head_descends}")
    names = {id(p): n for n, p in made.ctx.model.named_parameters()}
    ascending = {names[id(p)] for p in made.ctx.optimizer.param_groups[1]["params"]}
    late = {n for n in names.values() if not early(n)}
    head = {"fc.weight", "fc.bias"}
    assert ascending == (late - head if head_descends else late)
    assert made.ctx.optimizer.param_groups[1]["lr_scale"] == 0.007
