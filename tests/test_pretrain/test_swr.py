"""SWR: proportional, exact in norm and direction, by role, and refused where undefined."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, tiny, trainer
from support.rules import build, context, images, train
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap
from fsbench.core.errors import UsageError
from pretrain.methods.swr import Swr
from pretrain.recipes.recipe import Recipe


def algorithm_1(
    model: nn.Module, start: dict[str, Tensor], lam: float, first: int
) -> Iterator[tuple[str, Tensor]]:
    """The paper's loop over layers in forward order; products of c from layer `first` on."""
    product = torch.ones((), dtype=torch.float64)
    now = {n: p.detach() for n, p in model.named_parameters()}
    for i, name in enumerate(n.removesuffix(".weight") for n in now if n.endswith("weight")):
        norm = now[f"{name}.weight"].norm()
        c = (lam * start[f"{name}.weight"].norm() + (1 - lam) * norm) / norm
        product = c * product if i >= first else c
        yield f"{name}.weight", c * now[f"{name}.weight"]
        if f"{name}.bias" in now:
            yield f"{name}.bias", product * now[f"{name}.bias"]


def deviation(model: nn.Module, before: Tensor, x: Tensor) -> float:
    """How far the outputs are from one multiple of what they were, relatively."""
    now = model(x).detach()
    factor = (now * before).sum() / (before * before).sum()
    return float((now - factor * before).abs().max() / now.abs().max())


def applied(name: str, swr: Swr, evaluate: bool = False, side: int = 16) -> float:
    """Deviation after one application to a trained network."""
    model, roles = build(name, side)
    x = images(side)
    ctx = context(model, roles)
    swr.setup(ctx)
    train(model, name)
    for _ in range(3):
        model(x)
    model.train(not evaluate)
    before = model(x).detach()
    swr.after_step(ctx)
    return deviation(model, before, x)


@pytest.mark.parametrize("name", ["mlp", "cnn", "cnn_bn"])
def test_outputs_are_proportional(name: str) -> None:
    assert applied(name, Swr(lam=0.3)) < 1e-12


def test_vgg16_is_a_chain_too() -> None:
    """At 32 px every channel ends as one pixel, so batch statistics are those of 12 images."""
    assert applied("swr_vgg16", Swr(lam=0.1), side=32) < 1e-8


def test_layer_norm_keeps_the_scaled_network_proportional_too() -> None:
    assert applied("scnn", Swr(lam=0.3), side=8) < 1e-12


def test_the_printed_rule_breaks_proportionality() -> None:
    assert applied("cnn_bn", Swr(lam=0.3, paper_literal=True)) > 1e-4
    assert applied("cnn", Swr(lam=0.3, paper_literal=True)) < 1e-12


def test_running_statistics_are_scaled_with_the_option() -> None:
    assert applied("cnn_bn", Swr(lam=0.3), evaluate=True) > 1e-4
    assert applied("cnn_bn", Swr(lam=0.3, scale_running_stats=True), evaluate=True) < 1e-12
    assert applied("cnn_bn", Swr(lam=0.3, scale_running_stats=True)) < 1e-12


def test_running_statistics_are_scaled_after_convolutions_with_a_bias() -> None:
    """A bias in front of a norm layer gets c_l, its weights' input the scale before as well."""
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3)]
    model = nn.Sequential(*layers, nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 3)).double()
    for module in (model[1], model[4]):
        module.eps = 1e-300  # type: ignore[assignment]
    weighted = ("0", "1", "3", "4", "6")
    roles = RoleMap(("0", "3", "6"), (), "6", ("6",), (), weighted, chain=True)
    ctx, x = context(model, roles), images(8)
    swr = Swr(lam=0.4, scale_running_stats=True)
    swr.setup(ctx)
    train(model, "biased")
    for _ in range(3):
        model(x)
    model.eval()
    before = model(x).detach()
    swr.after_step(ctx)
    assert deviation(model, before, x) < 1e-12


@pytest.mark.parametrize(("name", "first"), [("mlp", 0), ("cnn", 0), ("cnn_bn", 3)])
@pytest.mark.parametrize("literal", [False, True])
def test_it_equals_algorithm_1(name: str, first: int, literal: bool) -> None:
    """cnn_bn: norm layers are 1 and 3; printed rule from 3 on, exact rule: C starts as c_3."""
    model, roles = build(name)
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    ctx = context(model, roles)
    swr = Swr(lam=0.3, paper_literal=literal)
    swr.setup(ctx)
    train(model, name)
    expected = dict(algorithm_1(model, start, 0.3, first if literal or not first else first + 1))
    swr.after_step(ctx)
    for tensor, value in model.named_parameters():
        torch.testing.assert_close(value.detach(), expected[tensor], rtol=1e-12, atol=0)


def test_features_and_classifier_have_their_own_strength() -> None:
    model, roles = build("cnn_bn")
    ctx = context(model, roles)
    swr = Swr(lambda_f=0.0, lambda_c=1.0)
    swr.setup(ctx)
    start = {n: p.detach().norm() for n, p in model.named_parameters()}
    train(model, "roles")
    trained = {n: p.detach().clone() for n, p in model.named_parameters()}
    swr.after_step(ctx)
    for name, value in model.named_parameters():
        if name.startswith("layer"):
            assert torch.equal(value.detach(), trained[name])
        elif name.endswith("weight"):
            assert float(value.detach().norm()) == pytest.approx(float(start[name]), rel=1e-12)
            cosine = nn.functional.cosine_similarity(
                value.detach().flatten(), trained[name].flatten(), dim=0
            )
            assert float(cosine) == pytest.approx(1, abs=1e-12)


def test_lam_overrides_both_lambdas() -> None:
    assert Swr(lam=0.2) == Swr(lambda_f=0.2, lambda_c=0.2)
    recipe = Recipe.model_validate_json(tiny("swr", "swr.lam=0.2").canonical())
    assert recipe.methods[0] == Swr(lam=0.2)
    with pytest.raises(UsageError, match="less than or equal to 1"):
        tiny("swr", "swr.lam=2")


def test_a_zero_initialised_scale_can_grow() -> None:
    model, roles = build("cnn_bn")
    norm = model.get_submodule("layer2.1")
    nn.init.zeros_(norm.weight)  # type: ignore[arg-type]
    ctx = context(model, roles)
    swr = Swr(lam=0.5)
    swr.setup(ctx)
    nn.init.constant_(norm.weight, 0.25)  # type: ignore[arg-type]
    swr.after_step(ctx)
    assert torch.equal(norm.weight, torch.full((4,), 0.25, dtype=torch.float64))  # type: ignore[arg-type]


def test_shared_weights_are_refused_unless_allowed() -> None:
    model, roles = build("mlp", side=4)
    first = nn.Linear(4, 4).double()
    model.add_module("layer2", nn.Sequential(first, nn.ReLU()))
    model.add_module("again", nn.Linear(4, 4).double())
    model.again.weight = first.weight  # type: ignore[union-attr, assignment]
    with pytest.raises(UsageError, match=r"shared weights: layer2.0.weight, again.weight"):
        Swr().setup(context(model, roles))
    Swr(allow_tied=True).setup(context(model, roles))


def test_networks_that_the_options_are_not_defined_for_are_refused(tmp_path: Path) -> None:
    for network in ("toy_resnet", "scnn"):
        overrides = (f"architecture={network}", "swr.scale_running_stats=true")
        with pytest.raises(UsageError, match="scale_running_stats needs a chain"):
            trainer(tiny("swr", *overrides), tmp_path / network)
    model, roles = build("mlp", side=4)
    bare = RoleMap(roles.layers, roles.blocks, roles.head, roles.fully_connected, roles.stages)
    with pytest.raises(UsageError, match="which its roles do not name"):
        Swr().setup(context(model, bare))


def test_it_acts_on_the_first_step_already(tmp_path: Path) -> None:
    ours, plain = (trainer(tiny(name), tmp_path / name) for name in ("swr", "normal"))
    names = ours.ctx.roles.weighted
    start = {n: ours.ctx.model.get_submodule(n).weight.detach().norm() for n in names}  # type: ignore[union-attr, operator]
    for made in (ours, plain):
        made._open_epoch(2)
        made._step(2)
    for name in names:
        here, there = (
            float(m.ctx.model.get_submodule(name).weight.detach().norm())  # type: ignore[union-attr, operator]
            for m in (ours, plain)
        )
        assert here == pytest.approx(0.01 * float(start[name]) + 0.99 * there, rel=1e-5)


def test_a_layer_that_another_method_redraws_gets_a_new_target(tmp_path: Path) -> None:
    from pretrain.methods.llf import LLF

    recipe = tiny("swr")
    both = Recipe.model_validate({**dict(recipe), "methods": (*recipe.methods, LLF())})
    made = trainer(both, tmp_path)
    first = made.ctx.memories["swr"]["norms"].clone()
    epochs(made, recipe.plan.epochs)
    made._open_epoch(2)
    now = made.ctx.memories["swr"]["norms"]
    names = made.ctx.roles.weighted
    for i, name in enumerate(names):
        weight = made.ctx.model.get_submodule(name).weight.detach()  # type: ignore[union-attr, operator]
        if name.startswith(("layer3", "layer4", "fc")) and weight.ndim > 1:
            assert float(now[i]) == pytest.approx(float(weight.norm()), rel=1e-6)
            assert float(now[i]) != float(first[i])
        else:
            assert torch.equal(now[i], first[i])
