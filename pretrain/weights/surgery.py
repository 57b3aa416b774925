"""Operations on the weights of a network by name, and the split into early and late layers.

Names are those of the plain architecture (`layer3.0.conv1.weight`). Functions read and write the
effective weight, which the forward pass uses. Under a reparametrization, writing goes through its
inverse (torch.nn.utils.parametrize), so methods can be combined with every reparametrization.

SEAL and LLF split a network at a threshold module. SEAL, section 4.1, has L = 23 in a ResNet-50,
the first layer of `layer3`; 7 of its 16 blocks are before it. The threshold `auto` is `layer3` in
networks with such a stage. In others it is the first layer with the same fraction of the K blocks
before it, round(7 K / 16), at least one; with a single block these are the fully-connected layers.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap, below
from fsbench.backbones.networks import load_architecture
from pretrain.recipes.recipe import Recipe
from pretrain.weights import parametrizations

END = "end"
"""Threshold after the last layer: all layers are early."""


def get_weight(model: nn.Module, name: str) -> Tensor:
    """Return the effective tensor called `name`, a parameter or a buffer."""
    owner, _, leaf = name.rpartition(".")
    value = getattr(model.get_submodule(owner), leaf)
    if not isinstance(value, Tensor):
        raise AttributeError(f"{name} is no tensor of the model")
    return value


@torch.no_grad()
def set_weight(model: nn.Module, name: str, value: Tensor) -> None:
    """Make `value` the effective tensor called `name`."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    if nn.utils.parametrize.is_parametrized(module, leaf):
        parametrizations.assign_weight(module, leaf, value)
    else:
        get_weight(model, name).copy_(value)


def trained_names(model: nn.Module, name: str) -> tuple[str, ...]:
    """Return the names of the tensors that are trained in place of the effective tensor `name`."""
    owner, _, leaf = name.rpartition(".")
    module = model.get_submodule(owner)
    if not nn.utils.parametrize.is_parametrized(module, leaf):
        return (name,)
    inside = f"{owner}.parametrizations.{leaf}" if owner else f"parametrizations.{leaf}"
    holder = model.get_submodule(inside)
    return tuple(f"{inside}.{original}" for original, _ in holder.named_parameters(recurse=False))


def total_clamped(model: nn.Module, names: Iterable[str]) -> int:
    """Return how many elements of these tensors a bounded map has moved into its range so far."""
    owners = (name.rpartition(".") for name in names)
    maps = (parametrizations.find_map(model.get_submodule(o), leaf) for o, _, leaf in owners)
    return sum(int(getattr(mapped[0], "clamped", 0)) for mapped in maps if mapped)


def split_parameters(model: nn.Module, threshold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parameter names before the module `threshold`, and from it on."""
    if threshold == END:
        return tuple(name for name, _ in model.named_parameters()), ()
    return RoleMap.from_threshold(model, threshold)


def kernel_names(layers: Iterable[str], parameters: Iterable[str]) -> tuple[str, ...]:
    """Return the weights of the convolution and linear layers that own one of the parameters."""
    owners = {
        ".".join(name.split(".")[:i]) for name in parameters for i in range(1, name.count(".") + 1)
    }
    return tuple(f"{layer}.weight" for layer in layers if layer in owners)


def fraction_changed(old: Iterable[Tensor], new: Iterable[Tensor]) -> float:
    """Return the fraction of elements that differ."""
    pairs = [(int((a != b).sum()), a.numel()) for a, b in zip(old, new, strict=True)]
    return sum(changed for changed, _ in pairs) / max(1, sum(n for _, n in pairs))


def build_on_meta(recipe: Recipe) -> tuple[nn.Module, RoleMap]:
    """Return a model of two classes on the meta device and its roles, shared: do not change it."""
    return _build_on_meta(recipe.architecture, recipe.width, recipe.input_size)


@cache
def _build_on_meta(architecture: str, width: int | None, side: int) -> tuple[nn.Module, RoleMap]:
    at_side = load_architecture(architecture).at(side)
    with torch.device("meta"):
        model = at_side.build(2, width)
    return model, at_side.roles(model)


AUTO = "auto"
PAPER_THRESHOLD = "layer3"
EARLY_SHARE = 7 / 16
"""Fraction of the blocks of a ResNet-50 before its `layer3`."""


def find_threshold(recipe: Recipe, threshold: str) -> str:
    """Return the threshold module, or END; `auto` is resolved. Raises UnknownName."""
    model, roles = build_on_meta(recipe)
    name = default_threshold(roles) if threshold == AUTO else threshold
    split_parameters(model, name)
    return name


def default_threshold(roles: RoleMap) -> str:
    """Return the module that `auto` means in a network with these roles."""
    if PAPER_THRESHOLD in roles.stages:
        return PAPER_THRESHOLD
    before = max(1, round(EARLY_SHARE * len(roles.blocks)))
    late = roles.blocks[before] if before < len(roles.blocks) else roles.fully_connected
    return next(layer for layer in roles.layers if below(layer, late))


def late_modules(model: nn.Module, threshold: str) -> list[nn.Module]:
    """Return the modules from `threshold` on, in the order of registration."""
    names, modules = zip(*model.named_modules(), strict=True)
    start = len(names) if threshold == END else names.index(threshold)
    return list(modules[start:])


@torch.no_grad()
def frobenius_norms(weights: Iterable[Tensor]) -> Tensor:
    """Return the Frobenius norms (L,) of weights."""
    return torch.stack(torch._foreach_norm([weight.detach() for weight in weights]))


def views_into(flat: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return views into a flat buffer, one after the other, in the layouts of dense tensors.

    torch has kernels for lists of tensors only where the layouts of corresponding ones are equal.
    """
    ends = accumulate(tensor.numel() for tensor in tensors)
    pairs = zip(tensors, ends, strict=True)
    return [flat.as_strided(t.shape, t.stride(), end - t.numel()) for t, end in pairs]


@torch.no_grad()
def scale_tensors(tensors: Sequence[Tensor], factors: Sequence[Tensor]) -> None:
    """Multiply dense tensors by a number each; on a GPU by numbers spread to tensors, at once."""
    if tensors[0].device.type != "cpu":
        pairs = zip(factors, tensors, strict=True)
        flat = torch.cat([factor.expand(tensor.numel()) for factor, tensor in pairs])
        factors = views_into(flat, tensors)
    torch._foreach_mul_(list(tensors), list(factors))


def has_tensor(model: nn.Module, name: str) -> bool:
    """Return whether the model has a tensor of this name."""
    owner, _, leaf = name.rpartition(".")
    return getattr(model.get_submodule(owner), leaf, None) is not None


def tied_names(model: nn.Module) -> tuple[str, ...]:
    """Return the names of parameters that have another name too."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return tuple(name for same in names.values() if len(same) > 1 for name in same)
