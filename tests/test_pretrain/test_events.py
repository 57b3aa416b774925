"""Methods that act at a round start or on new data: which tensors they rewrite, and how."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from scipy.stats import kstest
from support.events import (
    Event,
    Tensors,
    at_event,
    changed,
    finish_epoch,
    kernel_names,
    next_event,
    open_round,
    tensors,
    train_round,
)
from support.pretrain import epochs, equal, lines, source, tiny, train, trainer, weights
from support.rules import build
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from fsbench.core.seeding import stream
from pretrain.bases import penalties
from pretrain.methods.fc import select_tail
from pretrain.methods.head_reset import ResetScope, select_layers
from pretrain.methods.imp import prune
from pretrain.methods.kels import (
    SlimSizes,
    build_redraw_masks,
    compute_slim_size,
    compute_slim_sizes,
)
from pretrain.methods.rescale import restore_sizes
from pretrain.recipes import plan
from pretrain.recipes.registry import compose_methods
from pretrain.training.loop import train_recipe
from pretrain.weights import surgery

HEAD = {"fc.weight", "fc.bias"}
HIDDEN = {"layer2.0.weight", "layer2.0.bias"}
LATE = {
    f"{stage}.0.{part}.weight"
    for stage in ("layer3", "layer4")
    for part in ("conv1", "conv2", "downsample.0")
} | {"fc.weight"}
CONNECTED = "architecture=mlp head_reset.scope=fully_connected"
HARD = "weight_decay=0.01 lr=0.1 width=4"
Value = Callable[[Event, str], Tensor]
"""The equation of an event: its tensors, and the name of one -> what that becomes."""


def interpolate(lam: float) -> Value:
    return lambda event, name: (1 - lam) * event.before[name] + lam * event.start[name]


def population_std(weight: Tensor) -> Tensor:
    return weight.std(correction=0)


def restore_size(measure: Callable[[Tensor], Tensor]) -> Value:
    def scale(event: Event, name: str) -> Tensor:
        old, start = (t[name].double() for t in (event.before, event.start))
        return (old * (measure(start) / measure(old))).float()

    return scale


def find_smallest(value: Tensor, n: int) -> Tensor:
    """Return a mask of the n elements of smallest size."""
    mask = torch.zeros(value.numel(), dtype=torch.bool)
    mask[value.abs().flatten().argsort(stable=True)[:n]] = True
    return mask.view(value.shape)


def count_pruned(n: int, name: str) -> int:
    return n // 10 if name == "fc.weight" else n // 5


def prune_half(event: Event, name: str) -> Tensor:
    old = event.before[name]
    return old.where(~find_smallest(old, old.numel() // 2), 0)


def prune_to(when: Literal["start", "before"]) -> Value:
    """Zeros in place of the smallest trained weights of a kernel; all others are as they were."""

    def pruned(event: Event, name: str) -> Tensor:
        old, new = event.before[name], getattr(event, when)[name]
        n = count_pruned(old.numel(), name) if name in event.kernels else 0
        return new.where(~find_smallest(old, n), 0)

    return pruned


def expected_names(event: Event, names: set[str] | str) -> set[str]:
    return getattr(event, names) if isinstance(names, str) else names


@pytest.mark.parametrize(
    ("method", "settings", "names", "value"),
    [
        ("full_reset", "", "parameters", interpolate(1)),
        ("full_reset", "full_reset.running_stats=true", "tensors", interpolate(1)),
        ("head_reset", "", HEAD, interpolate(1)),
        ("head_reset", CONNECTED, HEAD | HIDDEN, interpolate(1)),
        ("shrink_perturb", "shrink_perturb.lam=1", "parameters", interpolate(1)),
        ("shrink_perturb", "shrink_perturb.lam=.25 lr=.2", "parameters", interpolate(0.25)),
        ("shrink_perturb", "shrink_perturb.lam=.8 lr=.2", "parameters", interpolate(0.8)),
        ("rescale", "lr=0.2", "kernels", restore_size(Tensor.norm)),
        ("rescale", "rescale.statistic=std lr=0.2", "kernels", restore_size(population_std)),
        ("imp", HARD, "tensors", prune_to("start")),
        ("imp", f"{HARD} imp.rewind_epoch=null", "kernels", prune_to("before")),
        ("dsd", "dsd.fill=zero dsd.fraction=0.5", "kernels", prune_half),
    ],
)
def test_an_event_gives_these_tensors_the_value_of_its_equation(
    method: str, settings: str, names: set[str] | str, value: Value, tmp_path: Path
) -> None:
    event = at_event(method, tmp_path, *settings.split())
    expected = expected_names(event, names)
    assert event.changed <= expected
    assert event.changed >= expected & event.parameters
    for name in expected:
        torch.testing.assert_close(
            event.after[name], value(event, name), rtol=1e-5, atol=1e-7, msg=name
        )
    assert any(not torch.equal(event.after[n], event.before[n]) for n in expected)


@pytest.mark.parametrize(
    ("method", "settings", "names", "fraction"),
    [
        ("fc", "", HEAD, 1.0),
        ("fc", "fc.scope=head", HEAD, 1.0),
        ("head_reset", "head_reset.fresh_draw=true", HEAD, 1.0),
        ("llf", "", LATE, 1.0),
        ("llf", "llf.threshold=conv1", "kernels", 1.0),
        ("llf", "llf.threshold=end", set(), 1.0),
        ("llf", "architecture=study_mlp", {"layer2.0.weight", "fc.weight"}, 1.0),
        ("wels", "width=8", "kernels", 0.2),
        ("welsr", "width=8", "kernels", 0.2),
        ("welsr", "welsr.exact=true welsr.fraction=0.3", "kernels", 0.3),
        ("welsr", "welsr.fraction=1", "kernels", 1.0),
        ("kels", "width=4", "kernels", None),
        ("dsd", "width=8", "kernels", 0.2),
    ],
)
def test_an_event_redraws_a_part_of_these_tensors_alone(
    method: str, settings: str, names: set[str] | str, fraction: float | None, tmp_path: Path
) -> None:
    """The part is exact, but for that of WELS and WELSR (4 standard deviations)."""
    event = at_event(method, tmp_path, *settings.split())
    assert event.changed == expected_names(event, names)
    is_exact = method not in ("wels", "welsr") or "exact" in settings
    for name in event.changed if fraction else ():
        redrawn = event.before[name] != event.after[name]
        n, slack = redrawn.numel(), 4 * (redrawn.numel() * fraction * (1 - fraction)) ** 0.5
        off = abs(int(redrawn.sum()) - int(fraction * n + 1e-9))
        assert off <= (0 if is_exact else slack), name
    records = lines(tmp_path, "rewrites.jsonl")
    assert len(records) == bool(event.changed)
    if fraction and records:
        assert records[0]["fraction_changed"] == pytest.approx(fraction, abs=0.01)


SQRT5 = "width=8 redraw=kaiming_uniform_sqrt5"
FRESH = "shrink_perturb.fresh_draw=true shrink_perturb.lam=1"


@pytest.mark.parametrize(
    ("method", "settings", "name", "variance", "law"),
    [
        ("fc", "width=32", "fc.weight", 2 / 256, "norm"),
        ("head_reset", "width=32 head_reset.fresh_draw=true", "fc.weight", 2 / 256, "norm"),
        ("llf", "width=8", "layer4.0.conv1.weight", 2 / 288, "norm"),
        ("llf", SQRT5, "layer4.0.conv1.weight", 1 / 864, "uniform"),
        ("welsr", "width=8", "layer4.0.conv2.weight", 2 / 576, "norm"),
        ("shrink_perturb", FRESH, "layer4.0.conv2.weight", 2 / 576, "norm"),
    ],
)
def test_redrawn_elements_follow_the_initial_distribution(
    method: str, settings: str, name: str, variance: float, law: str, tmp_path: Path
) -> None:
    """Its variance is 2 / fan-in, or 1 / 3 / fan-in under the official codes' law."""
    event = at_event(method, tmp_path, *settings.split())
    new = event.after[name][event.before[name] != event.after[name]].double() / variance**0.5
    shape = (0, 1) if law == "norm" else (-(3**0.5), 2 * 3**0.5)
    assert kstest(new.numpy(), law, args=shape).pvalue > 0.01
    assert not torch.equal(event.after[name], event.start[name])


# Resets on new data


@pytest.mark.parametrize(
    ("network", "scope", "expected"),
    [
        ("cnn", "paper", {"fc1", "fc"}),
        ("cnn_bn", "paper", {"fc1", "fc"}),
        ("mlp", "paper", {"fc"}),
        ("mlp", "fully_connected", {"layer2.0", "fc"}),
        ("cnn", "head", {"fc"}),
    ],
)
def test_the_paper_resets_only_the_last_layer_of_an_mlp(
    network: str, scope: ResetScope, expected: set[str]
) -> None:
    _, roles = build(network)
    assert set(select_layers(roles, scope)) == expected


def test_fresh_draws_store_no_start_and_reset_norms(tmp_path: Path) -> None:
    event = at_event("shrink_perturb", tmp_path, *FRESH.split())
    assert torch.equal(event.after["bn1.weight"], torch.ones(8))
    event.made.ctx.acting = "shrink_perturb"
    assert penalties.stored_anchors(event.made.ctx) == {}


def test_ash_and_adams_shrinks_and_adds_noise(tmp_path: Path) -> None:
    settings = ("shrink_perturb.form=ash_adams", "shrink_perturb.noise=0.05", "width=4")
    event = at_event("shrink_perturb", tmp_path, *settings)
    assert event.changed == event.kernels | {"fc.bias"}
    noise = [(event.after[n] - 0.3 * event.before[n]).flatten() for n in event.kernels]
    assert kstest(torch.cat(noise).numpy() / 0.05, "norm").pvalue > 0.01


def test_a_reset_acts_at_every_stage_start_except_the_first(tmp_path: Path) -> None:
    recipe = tiny("shrink_perturb").replace(plan.scenario_fields("continual-full"))
    train_recipe(recipe, source(), tmp_path)
    events = [(row["stage"], row["round"]) for row in lines(tmp_path, "rewrites.jsonl")]
    assert events == [(stage, 2 * stage) for stage in range(1, 10)]


# FC, rescaling


def test_scope_all_includes_norms_between_fully_connected_layers() -> None:
    roles = RoleMap(("conv1", "conv2", "dense", "head"), (), "head", ("dense", "head"), ())
    names = ("conv1.weight", "norm1.weight", "conv2.weight", "norm2.weight")
    dense = ("dense.weight", "dense.bias", "norm3.weight", "norm3.bias", "head.weight", "head.bias")
    assert select_tail((*names, *dense), roles) == dense
    odd = ("dense.weight", "conv2.weight", "head.weight")
    assert select_tail(odd, roles) == ("dense.weight", "head.weight")


def test_a_layer_that_became_zero_is_skipped_and_logged(tmp_path: Path) -> None:
    made = trainer(tiny("rescale"), tmp_path)
    train_round(made)
    surgery.set_weight(made.ctx.model, "fc.weight", torch.zeros(4, 64))
    _, after = open_round(made)
    assert bool((after["fc.weight"] == 0).all())
    record = lines(tmp_path, "rewrites.jsonl")[0]
    assert "fc.weight" not in record["tensors"]
    assert record["note"].endswith("skipped, size zero: fc.weight")


@pytest.mark.parametrize("norm", [False, True])
def test_rescaling_multiplies_the_function_of_a_relu_net_and_keeps_it_behind_norms(
    norm: bool,
) -> None:
    with stream("rescale"):
        layers = [nn.Linear(6, 6, bias=False) for _ in range(3)]
        x = torch.randn(50, 6, dtype=torch.float64)
    between = [nn.LayerNorm(6, eps=0) if norm else nn.Identity() for _ in layers]
    parts = zip(layers, between, [nn.ReLU(), nn.ReLU(), nn.Identity()], strict=True)
    net = nn.Sequential(*(module for part in parts for module in part)).double()
    before = net(x).detach()
    sizes = {"0.weight": 0.3, "3.weight": 5.0, "6.weight": 2.0}
    factors = [size / float(net.get_parameter(n).detach().norm()) for n, size in sizes.items()]
    context: Any = SimpleNamespace(model=net)
    context.rewrite = lambda weights, note: net.load_state_dict(weights, strict=False)
    restore_sizes(context, sizes, "test")
    expected = before if norm else math.prod(factors) * before
    torch.testing.assert_close(net(x).detach(), expected, rtol=1e-10, atol=1e-11)


# WELS, WELSR, KELS


@pytest.mark.parametrize("method", ["wels", "welsr"])
def test_wels_redraws_the_same_elements_in_every_round_and_welsr_others(
    method: str, tmp_path: Path
) -> None:
    event = at_event(method, tmp_path, "width=8", "plan.rounds=3")
    first = {name: event.before[name] != event.after[name] for name in event.kernels}
    before, after = next_event(event.made)
    for name, mask in first.items():
        assert torch.equal(before[name] != after[name], mask) == (method == "wels")
        assert not torch.equal(after[name][mask], event.after[name][mask])
    names = "layer1.0.conv1.weight", "layer1.0.conv2.weight"
    assert not torch.equal(*(first[name] for name in names))


def test_kels_keeps_the_first_filters_and_channels(tmp_path: Path) -> None:
    event = at_event("kels", tmp_path, "width=4", "plan.rounds=3")
    for before, after in ((event.before, event.after), next_event(event.made)):
        for name in event.kernels:
            n_out, n_in = before[name].shape[:2]
            rows = n_out if name == "fc.weight" else n_out // 2
            columns = 3 if name == "conv1.weight" else n_in // 2
            same = before[name] == after[name]
            assert bool(same[:rows, :columns].all())
            assert not bool(same[rows:].any())
            assert not bool(same[:, columns:].any())


def test_slim_sizes_are_rounded_up_exactly() -> None:
    assert [compute_slim_size(0.5, n) for n in (1, 2, 3, 64)] == [1, 1, 2, 32]
    assert compute_slim_size(0.07, 100) == 7
    assert compute_slim_size(1.0, 7) == 7


def extract_slim(weights: Tensors, sizes: SlimSizes, keep: float) -> Tensors:
    """Cut the state dict of the slim network out of that of the plain one."""
    small = {}
    for name, value in weights.items():
        owner = name.rpartition(".")[0]
        n_out, n_in = sizes.get(owner, (0, 0))
        if owner in sizes:
            small[name] = value[:n_out, :n_in] if value.ndim > 1 else value[:n_out]
        else:
            small[name] = value[: compute_slim_size(keep, len(value))] if value.ndim else value
    return small


@pytest.mark.parametrize("name", ["toy_resnet", "seal_resnet50", "cnn_bn"])
def test_the_slim_part_alone_gives_the_outputs_of_the_dense_network(name: str) -> None:
    architecture = load_architecture(name).at(32)
    dense, small = architecture.build(4, 8).double(), architecture.build(4, 4).double()
    for value in dense.state_dict().values():
        if value.ndim == 1:  # norms that are not at their initial values
            value.add_(torch.rand(value.shape, dtype=value.dtype) * 0.5)
    sizes_by_layer = compute_slim_sizes(dense, architecture.roles(dense), 0.5)
    small.load_state_dict(extract_slim(dense.state_dict(), sizes_by_layer, 0.5))
    for layer, sizes in sizes_by_layer.items():
        for tensor, mask in build_redraw_masks(dense, layer, *sizes).items():
            dense.get_parameter(tensor).data[mask] = 0
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    torch.testing.assert_close(small.eval()(x), dense.eval()(x), rtol=1e-10, atol=1e-12)


BRANCHES = RoleMap(("first", "second"), (), "head", (), ())


def branch(second: nn.Module) -> nn.Module:
    """Two layers whose channels do not match, as after a concatenation."""
    return nn.ModuleDict({"first": nn.Conv2d(3, 8, 3), "second": second})


@pytest.mark.parametrize("second", [nn.Conv2d(11, 4, 1), nn.Conv2d(8, 8, 3, groups=2)])
def test_concatenated_and_grouped_channels_are_refused(second: nn.Module) -> None:
    with pytest.raises(UsageError, match="kels cannot split second"):
        compute_slim_sizes(branch(second), BRANCHES, 0.5)


def test_depthwise_filters_flattened_channels_and_biases() -> None:
    depthwise = compute_slim_sizes(branch(nn.Conv2d(8, 8, 3, groups=8)), BRANCHES, 0.25)
    assert depthwise["second"] == (2, 1)
    flattened = branch(nn.Linear(8 * 9, 10))
    assert compute_slim_sizes(flattened, BRANCHES, 0.3)["second"] == (3, 27)
    masks = build_redraw_masks(flattened, "first", 2, 3)
    assert masks["first.bias"].tolist() == [False, False, *[True] * 6]
    assert build_redraw_masks(flattened, "second", 3, 18).keys() == {"second.weight"}


# Pruning: DSD and IMP


def test_dsd_redraws_the_smallest_weights_of_all_layers(tmp_path: Path) -> None:
    event = at_event("dsd", tmp_path, "width=8", "dsd.scope=global")
    names = sorted(event.kernels)
    assert event.changed <= event.kernels
    old, new = (torch.cat([t[n].flatten() for n in names]) for t in event[2:])
    assert torch.equal(old != new, find_smallest(old, len(old) // 5))


def find_zeros(values: Tensors, names: set[str]) -> Tensors:
    return {name: values[name] == 0 for name in names}


SPARSE = ("dsd.fill=zero", "dsd.sparse_epochs=2", "weight_decay=0.01")


def test_a_sparse_phase_fixes_zeros_and_then_trains_them(tmp_path: Path) -> None:
    event = at_event("dsd", tmp_path, *SPARSE)
    made, names = event.made, event.kernels
    pruned = find_zeros(event.after, names)
    finish_epoch(made)
    made._epoch(lambda images: None)
    moved = tensors(made)
    assert equal(find_zeros(moved, names), pruned)
    assert names <= changed(event.after, moved)
    for name in names:
        buffer = made.ctx.optimizer.state[made.ctx.parameters[name]]["momentum_buffer"]
        assert bool((buffer[pruned[name]] == 0).all())
    assert changed(*open_round(made)) == set()
    finish_epoch(made)
    free = find_zeros(tensors(made), names)
    lifted = sum(int((pruned[name] & ~free[name]).sum()) for name in names)
    # units that died leave their weights without a gradient
    assert lifted > sum(int(mask.sum()) for mask in pruned.values()) / 4


def test_carried_momentum_does_not_lift_pruned_weights(tmp_path: Path) -> None:
    event = at_event("dsd", tmp_path, *SPARSE, "opt_reset=none")
    assert event.made.ctx.optimizer.state
    finish_epoch(event.made)
    zeros = [find_zeros(t, event.kernels) for t in (tensors(event.made), event.after)]
    assert equal(*zeros)


def test_a_sparse_phase_may_end_in_fresh_draws(tmp_path: Path) -> None:
    event = at_event("dsd", tmp_path, "dsd.sparse_epochs=1")
    pruned = find_zeros(event.after, event.kernels)
    finish_epoch(event.made)
    before, after = open_round(event.made)
    for name, mask in pruned.items():
        assert torch.equal(before[name] != after[name], mask)
        assert bool((after[name][mask] != 0).all())


def test_the_original_dsd_acts_in_one_round(tmp_path: Path) -> None:
    event = at_event("dsd", tmp_path, *SPARSE, "dsd.events=1", "plan.rounds=3")
    assert changed(*next_event(event.made)) == set()
    assert {record["round"] for record in lines(tmp_path, "rewrites.jsonl")} == {1}


@pytest.mark.parametrize("reset", ["all", "none"])
@pytest.mark.parametrize("reparametrization", [None, "weight_norm", "weight_compander"])
def test_pruned_weights_stay_at_zero_and_each_round_prunes_more(
    tmp_path: Path, reparametrization: str | None, reset: str
) -> None:
    recipe = tiny("imp", *HARD.split(), "plan.rounds=3", f"opt_reset={reset}")
    if reparametrization:
        recipe = compose_methods(recipe, f"imp+{reparametrization}")
    made = trainer(recipe, tmp_path)
    names = kernel_names(made)
    train_round(made)
    first = find_zeros(open_round(made)[1], names)
    finish_epoch(made)
    assert equal(find_zeros(tensors(made), names), first)
    train_round(made)
    for name, mask in find_zeros(open_round(made)[1], names).items():
        n_first = count_pruned(mask.numel(), name)
        assert int(first[name].sum()) == n_first
        assert int(mask.sum()) == n_first + count_pruned(mask.numel() - n_first, name)
        assert bool(mask[first[name]].all())


def test_the_exported_network_has_the_zeros(tmp_path: Path) -> None:
    train(tmp_path, "imp", *HARD.split(), "imp.fraction=0.5")
    kernel = weights(tmp_path)["layer3.0.conv1.weight"]
    assert int((kernel == 0).sum()) == kernel.numel() // 2
    assert lines(tmp_path, "rewrites.jsonl")[0]["note"].startswith("0.50")


def test_imp_may_rewind_to_an_early_epoch(tmp_path: Path) -> None:
    made = trainer(tiny("imp", *HARD.split(), "imp.rewind_epoch=2"), tmp_path)
    epochs(made, 2)
    early = tensors(made)
    train_round(made)
    _, after = open_round(made)
    for name, value in after.items():
        alive = value != 0 if name in kernel_names(made) else torch.ones_like(value).bool()
        assert torch.equal(value[alive], early[name][alive])


def test_one_threshold_over_all_layers_spares_those_with_large_weights() -> None:
    weights = {"small": torch.tensor([[1.0, -2, 0, 0]]), "large": torch.tensor([5.0, -6, 7, 8])}
    keep = {"small": torch.tensor([[True, True, False, False]]), "large": torch.ones(4).bool()}
    masks = {
        scope: [m.int().flatten().tolist() for m in prune(weights, keep, 0.5, scope).values()]
        for scope in ("layer", "global")
    }
    assert masks["layer"] == [[0, 1, 0, 0], [0, 0, 1, 1]]
    assert masks["global"] == [[0, 0, 0, 0], [0, 1, 1, 1]]
