"""Reparametrized runs against a plain loop that differentiates loss and decay term itself."""

import copy
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support.events import tensors
from support.pretrain import epochs, lines, source, tiny, trainer
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from pretrain.bases import reparametrization
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import compose_methods
from pretrain.training.loop import Trainer, train_recipe
from pretrain.weights import surgery
from pretrain.weights.parametrizations import Elementwise

A, B = 0.7, 0.8
Trained = tuple[Tensor, ...]
Reference = tuple[Callable[[Tensor], Trained], Callable[..., Tensor]]


def vector_norm(w: Tensor, per_unit: bool) -> Tensor:
    if not per_unit:
        return w.pow(2).sum().sqrt().reshape([1] * w.ndim)
    return w.flatten(1).pow(2).sum(1).sqrt().reshape(-1, *[1] * (w.ndim - 1))


MAPS: dict[str, Reference] = {
    "weight_compander": (
        lambda w: (B * torch.tan(w.clamp(-A * math.pi / 2 * 0.999, A * math.pi / 2 * 0.999) / A),),
        lambda v: A * torch.atan(v / B),
    ),
    "weight_compander.function=arsinh": (
        lambda w: (B * torch.sinh(w / A),),
        lambda v: A * torch.log(v / B + torch.sqrt((v / B) ** 2 + 1)),
    ),
    "weight_compander.function=erf": (
        lambda w: (B * torch.special.erfinv(w.clamp(-A * 0.999, A * 0.999) / A),),
        lambda v: A * torch.special.erf(v / B),
    ),
    "powerprop": (lambda w: (w.sign() * w.abs().sqrt(),), lambda v: v.sign() * v**2),
    "powerprop.alpha=3": (lambda w: (w.sign() * w.abs() ** (1 / 3),), lambda v: v**3),
    "weight_norm": (
        lambda w: (vector_norm(w, True), w.clone()),
        lambda g, v: g * v / vector_norm(v, True),
    ),
    "weight_norm.per=layer": (
        lambda w: (vector_norm(w, False), w.clone()),
        lambda g, v: g * v / vector_norm(v, False),
    ),
}
METHODS = ("weight_compander", "powerprop", "weight_norm")
ELEMENTWISE = [name for name in MAPS if "norm" not in name]
STEPS = 4
FIELDS = ("width=2", "plan.epoch_images=32", "schedule=constant", "warmup=0", "weight_decay=0.05")


def recipe(case: str, *assignments: str) -> Recipe:
    method, dot, setting = case.partition(".")
    return tiny(method, *FIELDS, *([f"{method}.{setting}"] if dot else []), *assignments)


class PlainLoop:
    """Trains tensors whose functions are the weights; decay is a term of the loss."""

    def __init__(self, made: Trainer, case: str, decay_on_w: bool = True) -> None:
        self.made, self.decay_on_w, (inverse, self.to_w) = made, decay_on_w, MAPS[case]
        self.model = load_architecture("toy_resnet").build(4, 2)
        self.model.load_state_dict(tensors(made))
        names = {f"{layer}.weight" for layer in made.ctx.roles.layers}
        self.trained = {
            n: tuple(t.detach().clone() for t in (inverse(p.detach()) if n in names else (p,)))
            for n, p in self.model.named_parameters()
        }
        self.mapped = names
        self.momenta = {n: [torch.zeros_like(t) for t in ts] for n, ts in self.trained.items()}

    def weights(self) -> dict[str, Tensor]:
        return {n: self.to_w(*t) if n in self.mapped else t[0] for n, t in self.trained.items()}

    def loss(self, weights: dict[str, Tensor]) -> Tensor:
        batch = self.made.ctx.loader.batch(copy.copy(self.made.ctx.clock))
        logits = functional_call(self.model, weights, (batch.images,))
        loss = functional.cross_entropy(logits, batch.labels, label_smoothing=0.1)
        trained = [t for ts in self.trained.values() for t in ts]
        decayed = weights.values() if self.decay_on_w else trained
        return loss + 0.5 * 0.05 * sum((w**2).sum() for w in decayed)

    def sgd(self) -> None:
        everything = [t.requires_grad_() for ts in self.trained.values() for t in ts]
        gradients = iter(torch.autograd.grad(self.loss(self.weights()), everything))
        for name, trained in self.trained.items():
            for i, momentum in enumerate(self.momenta[name]):
                momentum.mul_(0.9).add_(next(gradients))
                trained[i].detach_().sub_(self.made.recipe.lr * momentum)

    def adam(self, probes: dict[str, nn.Parameter], optimizer: torch.optim.Adam) -> None:
        """Adam's step from the gradient of w, times the slope of the map at the old v."""
        weights = {n: w.detach().requires_grad_() for n, w in self.weights().items()}
        gradients = torch.autograd.grad(self.loss(weights), list(weights.values()))
        for name, gradient in zip(weights, gradients, strict=True):
            probes[name].data.zero_()
            probes[name].grad = gradient
        optimizer.step()
        for name, (v,) in self.trained.items():
            slope = torch.ones_like(v)
            if name in self.mapped:
                old = v.detach().double().requires_grad_()
                slope = torch.autograd.grad(self.to_w(old).sum(), old)[0].float()
            v.add_(slope * probes[name].data)


@pytest.mark.parametrize(
    ("case", "decay"), [*((case, "w") for case in MAPS), *((method, "v") for method in METHODS)]
)
def test_sgd_equals_a_plain_loop(case: str, decay: str, tmp_path: Path) -> None:
    """Decay on w is a term of the loss, decay on v the optimizer's."""
    method = case.partition(".")[0]
    made = trainer(recipe(case, f"{method}.decay={decay}"), tmp_path)
    made._open_epoch(STEPS)
    loop = PlainLoop(made, case, decay_on_w=decay == "w")
    before = loop.weights()["fc.weight"].clone()
    for _ in range(STEPS):
        loop.sgd()
        made._step(STEPS)
    actual = tensors(made)
    for name, expected in loop.weights().items():
        torch.testing.assert_close(actual[name], expected, rtol=2e-3, atol=2e-5, msg=name)
    assert (loop.weights()["fc.weight"] - before).abs().max() > 0.01


@pytest.mark.parametrize("case", ELEMENTWISE)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_one_call_of_a_map_does_what_a_call_per_layer_does(
    case: str, optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a GPU, on the CPU."""
    states, calls = [], []
    value = Elementwise.forward
    monkeypatch.setattr(Elementwise, "forward", lambda *args: calls.append(1) or value(*args))
    for jointly in (False, True):
        monkeypatch.setattr(reparametrization, "computes_jointly", lambda ctx, j=jointly: j)
        made = trainer(recipe(case, f"optimizer={optimizer}", "lr=0.01"), tmp_path / str(jointly))
        made._open_epoch(STEPS)
        calls.clear()
        for _ in range(STEPS):
            made._step(STEPS)
        states.append((len(calls), tensors(made)))
    (n, apart), (n_joint, joint) = states
    assert (n, n_joint) == (STEPS * len(made.ctx.roles.layers), STEPS)
    for name, weight in apart.items():
        torch.testing.assert_close(joint[name], weight, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_adam_steps_in_w_and_is_rescaled_by_the_slope(case: str, tmp_path: Path) -> None:
    made = trainer(recipe(case, "optimizer=adam", "lr=0.01"), tmp_path)
    made._open_epoch(STEPS)
    loop = PlainLoop(made, case)
    probes = {n: nn.Parameter(w.detach().clone()) for n, w in loop.weights().items()}
    optimizer = torch.optim.Adam(probes.values(), lr=0.01)
    for _ in range(2):
        loop.adam(probes, optimizer)
        made._step(STEPS)
    actual = tensors(made)
    for name, expected in loop.weights().items():  # Adam divides tiny gradients by their size
        assert ((actual[name] - expected).abs() < 1e-3).float().mean() > 0.99, name


def test_decay_on_w_is_a_gradient_which_adamw_would_not_decay_by() -> None:
    with pytest.raises(UsageError, match="adamw keeps decay out of the gradient"):
        recipe("weight_compander", "optimizer=adamw")
    assert recipe("weight_compander", "optimizer=adamw", "weight_compander.decay=v")


@pytest.mark.parametrize("case", MAPS)
def test_logits_at_step_0_are_those_of_the_plain_network_and_fusing_keeps_them(
    case: str, tmp_path: Path
) -> None:
    # a wide range: this tiny network's weights are large, and none must be clamped here
    wide = ["weight_compander.a=3"] if "compander" in case else []
    made = trainer(recipe(case, *wide), tmp_path / "a")
    normal = trainer(tiny("normal", "width=2"), tmp_path)
    assert not lines(tmp_path / "a", "rewrites.jsonl")
    images = made.ctx.loader.batch(made.ctx.clock).images
    model, plain = made.ctx.model.eval(), normal.ctx.model.eval()
    torch.testing.assert_close(model(images), plain(images))
    model.train()
    epochs(made, 1)
    with torch.no_grad():
        before = model.eval()(images)
        made.ctx.call("finalize")
        assert torch.equal(model(images), before)
    assert model.state_dict().keys() == plain.state_dict().keys()
    assert [type(m) for m in model.modules()] == [type(m) for m in plain.modules()]
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


@pytest.mark.parametrize("case", METHODS)
def test_only_conv_and_linear_weights_are_mapped_and_scalars_do_not_decay(
    case: str, tmp_path: Path
) -> None:
    made = trainer(recipe(case), tmp_path)
    made._open_epoch(STEPS)
    ctx = made.ctx
    named = {id(p): n for n, p in ctx.parameters.items()}
    groups = {
        named[id(p)]: (g["weight_decay"], g["effective_decay"])
        for g in ctx.optimizer.param_groups
        for p in g["params"]
    }
    assert groups.keys() == ctx.parameters.keys()
    mapped = {n for n in groups if ".parametrizations." in n}
    trained = (surgery.trained_names(ctx.model, f"{layer}.weight") for layer in ctx.roles.layers)
    assert mapped == {name for names in trained for name in names}
    assert {groups[n] for n in mapped} == {(0.0, 0.05)}
    assert {groups[n] for n in groups.keys() - mapped} == {(0.05, 0.0)}
    assert {"fc.bias", "bn1.weight", "bn1.bias"} <= groups.keys() - mapped


def test_a_redraw_drops_the_momentum_of_what_is_trained(tmp_path: Path) -> None:
    made = trainer(recipe("weight_norm", "opt_reset=touched"), tmp_path)
    epochs(made, 1)
    ctx = made.ctx
    ctx.acting = "weight_norm"
    fresh = torch.ones(4, 16)
    ctx.rewrite({"fc.weight": fresh}, "test")
    ctx.rebuild_optimizer("touched")
    gone = ctx.parameters.keys() - ctx.optimizer_state().keys()
    assert gone == {f"fc.parametrizations.weight.original{i}" for i in (0, 1)}
    torch.testing.assert_close(surgery.get_weight(ctx.model, "fc.weight").detach(), fresh)


@pytest.mark.parametrize("case", MAPS)
def test_what_a_rewrite_leaves_alone_stays_at_the_bit(case: str, tmp_path: Path) -> None:
    made = trainer(recipe(case), tmp_path)
    epochs(made, 1)
    model, name = made.ctx.model, "layer4.0.conv2.weight"
    before = surgery.get_weight(model, name).detach().clone()
    storage = [model.get_parameter(t).data_ptr() for t in surgery.trained_names(model, name)]
    expected = before.clone()
    expected[0] = 0.1
    surgery.set_weight(model, name, expected.contiguous())
    after = surgery.get_weight(model, name).detach()
    torch.testing.assert_close(after[0], expected[0])
    if case != "weight_norm.per=layer":  # one length for all: every element moves a bit
        assert torch.equal(after[1:], before[1:])
    assert storage == [
        model.get_parameter(t).data_ptr() for t in surgery.trained_names(model, name)
    ]
    assert after.stride() == before.stride()


def test_ascent_of_seal_keeps_the_sign_of_its_decay(tmp_path: Path) -> None:
    both = compose_methods(tiny("seal", "seal.ascent_factor=0.01"), "seal+weight_compander")
    made = trainer(both, tmp_path)
    epochs(made, 4)
    made._open_epoch(2)
    decays = {g["effective_decay"] for g in made.ctx.optimizer.param_groups}
    assert decays == {0.0, both.weight_decay}
    up = [g for g in made.ctx.optimizer.param_groups if g["lr_scale"] == 0.01]
    # the gradient is flipped before decay is added: the flipped sign then pulls towards zero
    assert {g["weight_decay"] + g["effective_decay"] for g in up} == {both.weight_decay}


@pytest.mark.parametrize("name", METHODS)
def test_it_composes_with_a_round_event_and_reports_it(name: str, tmp_path: Path) -> None:
    train_recipe(compose_methods(tiny("llf"), f"llf+{name}"), source(), tmp_path)
    (event,) = [r for r in lines(tmp_path, "rewrites.jsonl") if r["method"] == "llf"]
    assert event["tensors"][-1] == "fc.weight"
    assert event["fraction_changed"] > 0.99
