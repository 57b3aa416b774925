"""SWR: proportional outputs, exact norms, refusals; re-anchoring at the chosen events alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.events import train_round
from support.pretrain import epochs, tiny, trainer
from support.rules import build, context, images, train
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap
from fsbench.core.errors import UsageError
from pretrain.methods.swr import Swr, get_layer_weights, multiply_tensors, rescaling_coefficients
from pretrain.methods.swr_reanchor import SwrReanchor
from pretrain.recipes import plan
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import compose_methods
from pretrain.training.context import Context
from pretrain.weights.surgery import frobenius_norms, tied_names

positive, share = st.floats(0.01, 100), st.floats(0, 1)


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# The coefficients


@given(now=st.tuples(positive, positive), target=st.tuples(positive, positive), lam=share)
def test_balance_returns(now: tuple[float, float], target: tuple[float, float], lam: float) -> None:
    c = rescaling_coefficients(doubles(*now), doubles(*target), doubles(lam, lam))
    new = [float(factor) * norm for factor, norm in zip(c, now, strict=True)]
    start = target[0] / target[1]
    assert abs(new[0] / new[1] - start) <= abs(now[0] / now[1] - start) * (1 + 1e-9) + 1e-9


@given(
    target=positive,
    lam=st.floats(0.05, 1),
    pushes=st.lists(st.floats(0, 3), min_size=1, max_size=30),
)
def test_norms_stay_bounded_when_steps_are(target: float, lam: float, pushes: list[float]) -> None:
    """If a step adds at most B to |W|^2 then |W| <= n + sqrt(B) / lam afterwards."""
    norm = doubles(target)
    for push in pushes:
        norm = (norm**2 + push).sqrt()
        norm = norm * rescaling_coefficients(norm, doubles(target), doubles(lam))
        assert float(norm) <= target + max(pushes) ** 0.5 / lam + 1e-9


def test_layers_of_norm_zero_now_or_at_the_start_are_left_alone() -> None:
    """So a scale that starts at zero can grow."""
    c = rescaling_coefficients(doubles(0, 2, 0, 2), doubles(1, 0, 0, 4), doubles(*[0.5] * 4))
    assert c.tolist() == [1, 1, 1, 1.5]


def test_multiplying_goes_through_a_reparametrization_and_once_through_a_shared_tensor() -> None:
    model, _ = build("mlp", side=4)
    layer = model.get_submodule("layer2.0")
    nn.utils.parametrizations.weight_norm(layer)
    before = layer.weight.detach().clone()  # type: ignore[union-attr, operator]
    multiply_tensors(model, {"layer2.0.weight": doubles(3).squeeze()})
    torch.testing.assert_close(layer.weight, 3 * before)  # type: ignore[arg-type]
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    shared, before = nn.Sequential(first, second), first.weight.detach().clone()
    multiply_tensors(shared, dict.fromkeys(("0.weight", "1.weight"), torch.tensor(3.0)))
    torch.testing.assert_close(first.weight.detach(), 3 * before)
    assert tied_names(shared) == ("0.weight", "1.weight")
    assert tied_names(nn.Sequential(nn.Linear(2, 2))) == ()


# The step


def deviate(swr: Swr, ctx: Context, x: Tensor, evaluate: bool = False) -> float:
    """Train, apply SWR; return how far outputs are from one multiple of what they were."""
    model = ctx.model
    swr.setup(ctx)
    train(model, "deviation")
    for _ in range(3):
        model(x)
    model.train(not evaluate)
    before = model(x).detach()
    swr.after_step(ctx)
    now = model(x).detach()
    factor = (now * before).sum() / (before * before).sum()
    return float((now - factor * before).abs().max() / now.abs().max())


RUNNING = Swr(lam=0.3, scale_running_stats=True)
LITERAL = Swr(lam=0.3, paper_literal=True)


@pytest.mark.parametrize(
    ("name", "swr", "evaluate", "side", "proportional"),
    [
        ("mlp", Swr(lam=0.3), False, 16, True),
        ("cnn", Swr(lam=0.3), False, 16, True),
        ("cnn_bn", Swr(lam=0.3), False, 16, True),
        ("scnn", Swr(lam=0.3), False, 8, True),
        # at 32 px every channel ends as one pixel, so batch statistics are those of 12 images
        ("swr_vgg16", Swr(lam=0.1), False, 32, True),
        ("cnn", LITERAL, False, 16, True),
        ("cnn_bn", LITERAL, False, 16, False),
        ("cnn_bn", Swr(lam=0.3), True, 16, False),
        ("cnn_bn", RUNNING, True, 16, True),
        ("cnn_bn", RUNNING, False, 16, True),
    ],
)
def test_outputs_are_proportional_but_under_the_printed_rule_and_running_statistics(
    name: str, swr: Swr, evaluate: bool, side: int, proportional: bool
) -> None:
    deviation = deviate(swr, context(*build(name, side)), images(side), evaluate)
    assert (deviation < 1e-8) if proportional else (deviation > 1e-4)


def test_running_statistics_are_scaled_after_convolutions_with_a_bias() -> None:
    """A bias in front of a norm layer gets c_l, its weights' input the scale before as well."""
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3)]
    model = nn.Sequential(*layers, nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 3)).double()
    for module in (model[1], model[4]):
        module.eps = 1e-300  # type: ignore[assignment]
    weighted = ("0", "1", "3", "4", "6")
    roles = RoleMap(("0", "3", "6"), (), "6", ("6",), (), weighted, chain=True)
    assert deviate(RUNNING, context(model, roles), images(8), evaluate=True) < 1e-12


def follow_algorithm_1(
    model: nn.Module, start: dict[str, Tensor], swr: Swr, first: int
) -> Iterator[tuple[str, Tensor]]:
    """The paper's loop over layers in forward order; products of c from layer `first` on."""
    product = torch.ones((), dtype=torch.float64)
    now = {n: p.detach() for n, p in model.named_parameters()}
    for i, name in enumerate(n.removesuffix(".weight") for n in now if n.endswith("weight")):
        norm = now[f"{name}.weight"].norm()
        lam = swr.lambda_f if name.startswith("layer") else swr.lambda_c
        c = (lam * start[f"{name}.weight"].norm() + (1 - lam) * norm) / norm
        product = c * product if i >= first else c
        yield f"{name}.weight", c * now[f"{name}.weight"]
        if f"{name}.bias" in now:
            yield f"{name}.bias", product * now[f"{name}.bias"]


@pytest.mark.parametrize(("name", "first"), [("cnn", 0), ("cnn_bn", 3)])
@pytest.mark.parametrize("literal", [False, True])
def test_it_equals_algorithm_1(name: str, first: int, literal: bool) -> None:
    """cnn_bn: norm layers are 1 and 3; printed rule from 3 on, exact rule: C starts as c_3."""
    model, roles = build(name)
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    ctx = context(model, roles)
    swr = Swr(lambda_f=0.3, lambda_c=0.6, paper_literal=literal)
    swr.setup(ctx)
    train(model, name)
    first = first if literal or not first else first + 1
    expected = dict(follow_algorithm_1(model, start, swr, first))
    swr.after_step(ctx)
    for tensor, value in model.named_parameters():
        torch.testing.assert_close(value.detach(), expected[tensor], rtol=1e-12, atol=0)


def test_lam_overrides_both_lambdas() -> None:
    assert Swr(lam=0.2) == Swr(lambda_f=0.2, lambda_c=0.2)
    recipe = Recipe.model_validate_json(tiny("swr", "swr.lam=0.2").canonical())
    assert recipe.methods[0] == Swr(lam=0.2)
    with pytest.raises(UsageError, match="less than or equal to 1"):
        tiny("swr", "swr.lam=2")


def test_networks_that_it_is_not_defined_for_are_refused(tmp_path: Path) -> None:
    for network in ("toy_resnet", "scnn"):
        overrides = (f"architecture={network}", "swr.scale_running_stats=true")
        with pytest.raises(UsageError, match="scale_running_stats needs a chain"):
            trainer(tiny("swr", *overrides), tmp_path / network)
    model, roles = build("mlp", side=4)
    unnamed = RoleMap(roles.layers, roles.blocks, roles.head, roles.fully_connected, roles.stages)
    with pytest.raises(UsageError, match="which its roles do not name"):
        Swr().setup(context(model, unnamed))
    first = nn.Linear(4, 4).double()
    model.add_module("layer2", nn.Sequential(first, nn.ReLU()))
    model.add_module("again", nn.Linear(4, 4).double())
    model.again.weight = first.weight  # type: ignore[union-attr, assignment]
    with pytest.raises(UsageError, match=r"shared weights: layer2.0.weight, again.weight"):
        Swr().setup(context(model, roles))
    Swr(allow_tied=True).setup(context(model, roles))


def test_a_layer_that_another_method_redraws_gets_a_new_target(tmp_path: Path) -> None:
    made = trainer(compose_methods(tiny("swr"), "swr+llf"), tmp_path)
    first = made.ctx.memories["swr"]["norms"].clone()
    train_round(made)
    made._open_epoch(2)
    targets = made.ctx.memories["swr"]["norms"]
    layer_weights = get_layer_weights(made.ctx)
    current = frobenius_norms(layer_weights)
    for i, name in enumerate(made.ctx.roles.weighted):
        redrawn = name.startswith(("layer3", "layer4", "fc")) and layer_weights[i].ndim > 1
        torch.testing.assert_close(targets[i], (current if redrawn else first)[i])
        assert (targets[i] != first[i]) == redrawn


# Re-anchoring


WARM_START = plan.scenario_fields("warm-start")
BOTH = {"swr_reanchor.on": "both", "schedule": "step"}
EVERY_3 = {"schedule": "cosine", "swr_reanchor.on": "none", "swr_reanchor.every_epochs": 3}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [2, 3, 6, 7]),
        (WARM_START | {"swr_reanchor.on": "new_data"}, [8]),
        (WARM_START | BOTH, [2, 3, 6, 7, 8, 10, 11, 14, 15]),
        (EVERY_3, [3, 7]),
    ],
)
def test_the_target_is_the_current_norms_at_drops_new_data_or_every_epochs(
    fields: dict[str, object], expected: list[int], tmp_path: Path
) -> None:
    """Four epochs a round with drops at 2 and 3; epochs are counted over the whole run."""
    made = trainer(tiny("swr_reanchor").replace(fields), tmp_path)
    anchored = []
    for epoch in range(made.recipe.plan.total_epochs):
        made._open_epoch(2)
        target = made.ctx.memories["swr_reanchor"]["norms"]
        if epoch and torch.equal(target, frobenius_norms(get_layer_weights(made.ctx))):
            anchored.append(epoch)
        made._step(2)
        epochs(made, 1)
    assert anchored == expected


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
