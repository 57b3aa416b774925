"""Architectures by name: those of this project, and timm's with roles found by one forward pass.

A block may end where the output of a module (maps or tokens) is all that later layers receive of
the image: no path of the autograd graph bypasses it. Inside a residual unit or dense block no such
module exists. Parameters of the network itself (tokens, positions) belong to the first block.

Networks whose weights depend on the image size (transformers) are built for the recipe's input_size
if timm supports it, and refused otherwise.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import (
    Architecture,
    RoleMap,
    below,
    insert_normalizers,
    layer_names,
    record_outputs,
)
from fsbench.backbones.architectures.presets import CIFAR_RESNETS, PRESETS
from fsbench.core.errors import UnknownName, UsageError

PREFIX = "timm/"
TIMM_NAME = "fsbench_"
"""Prefix of this project's networks where they are registered with timm."""
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
HEADS = (nn.Linear, nn.Identity)  # Identity where the head was removed
Cuts = frozenset[str]
"""Names of modules whose output is all that later layers receive of an image."""


def load_architecture(name: str) -> Architecture:
    """Load an architecture of this project, `cifar/NAME` or `timm/NAME`. Raise UsageError."""
    if name.startswith(PREFIX):
        return timm_architecture(name.removeprefix(PREFIX))
    if name not in PRESETS | CIFAR_RESNETS:
        raise UnknownName("architecture", name, PRESETS)
    return (PRESETS | CIFAR_RESNETS)[name]


def find_roles(model: nn.Module, name: str = "the network") -> RoleMap:
    """Find the roles of a network. Raise UsageError naming a missing head, block or layer."""
    head, layers = getattr(model, "pretrained_cfg", {}).get("classifier"), layer_names(model)
    if not isinstance(head, str) or not isinstance(model.get_submodule(head), HEADS):
        raise missing_roles_error(name, f"its classifier {head!r} is no single linear layer")
    whole = isinstance(model.get_submodule(head), nn.Linear)
    if whole and layers[-1] != head:
        raise missing_roles_error(name, f"its last layer is {layers[-1]}, not the head {head}")
    cuts = find_cuts(model, name)
    units = list(iterate_units(model, "", head, cuts))
    blocks = join_stem(model, list(group_units(model, units, cuts)))
    if blocks:  # parameters of no submodule act before the first block or in it
        loose = tuple(n for n, _ in model.named_parameters(recurse=False))
        blocks = ((*loose, *blocks[0]), *blocks[1:])
    inside = [module for block in blocks for module in block]
    outside = [n for n in layers if not below(n, inside)]
    if not blocks or any(not isinstance(model.get_submodule(n), nn.Linear) for n in outside):
        raise missing_roles_error(
            name, f"no part of it can be cut off that holds {(*outside, 'a layer')[0]}"
        )
    stages = dict.fromkeys(block[-1].rpartition(".")[0] or block[-1] for block in blocks)
    fully_connected = outside if whole else (*outside, head)
    return RoleMap.of(model, blocks, tuple(stages), tuple(fully_connected), head=head)


def missing_roles_error(name: str, why: str) -> UsageError:
    return UsageError(
        f"{name} has no roles that methods could use: {why}",
        fix="use a convolutional network or a transformer with blocks and a linear head",
    )


def find_cuts(model: nn.Module, name: str) -> Cuts:
    """Find the cuts of a model, which stays unchanged. Raise UsageError if it cannot run.

    Networks that take any size get images of 64 px.
    """

    def end_of(output: object) -> Any:
        return output.grad_fn if isinstance(output, Tensor) and output.ndim in (3, 4) else None

    names = [n for n, m in model.named_modules() if n and not isinstance(m, nn.Identity)]
    config = getattr(model, "pretrained_cfg", {})
    side = config["input_size"][-1] if config.get("fixed_input_size") else 64
    device = next(model.parameters()).device
    image = torch.zeros(2, 3, side, side, device=device, requires_grad=True)
    training = {module: module.training for module in model.modules()}
    try:
        with record_outputs(model, names, end_of) as ends:
            out = model.eval()(image)
    except (AssertionError, RuntimeError) as error:
        raise missing_roles_error(name, f"it takes no {side} px images: {error}") from error
    finally:
        for module, mode in training.items():
            module.training = mode
    return frozenset(n for n, end in ends.items() if end and not bypasses(out, end, image))


def bypasses(out: Tensor, end: Any, image: Tensor) -> bool:
    """Return whether a path of the graph leads from output to image without passing `end`."""
    visited, waiting = {end, None}, [out.grad_fn]
    while waiting:
        node: Any = waiting.pop()
        if getattr(node, "variable", None) is image:
            return True
        if node not in visited:
            visited.add(node)
            waiting += [following for following, _ in node.next_functions]
    return False


def iterate_units(module: nn.Module, prefix: str, head: str, cuts: Cuts) -> Iterator[str]:
    """Yield the units of the trunk in order of registration, without the head and its parents."""
    for name, child in module.named_children():
        full = prefix + name
        if below(head, (full,)):
            continue
        if is_divisible(child, full, cuts):
            yield from iterate_units(child, f"{full}.", head, cuts)
        else:
            yield full


def is_divisible(module: nn.Module, name: str, cuts: Cuts) -> bool:
    """Return whether a module is or contains a sequence of units: a stage instead of a unit."""
    children = dict(module.named_children())
    if not isinstance(module, CONTAINERS):
        return any(is_divisible(child, f"{name}.{n}", cuts) for n, child in children.items())
    inner = [n for n, child in children.items() if layer_names(child)]
    if len(inner) == 1:  # a layer or a unit
        return "" not in layer_names(children[inner[0]])
    return len(inner) > 1 and all(f"{name}.{n}" in cuts for n in inner)


def group_units(model: nn.Module, units: list[str], cuts: Cuts) -> Iterator[tuple[str, ...]]:
    """Yield blocks: units up to a cut that is followed by a layer."""
    layered = {unit for unit in units if layer_names(model.get_submodule(unit))}
    last = max((i for i, unit in enumerate(units) if unit in cuts), default=-1)
    block: list[str] = []
    for i, unit in enumerate(units[: last + 1]):
        block.append(unit)
        followed = i == last or units[i + 1] in layered
        if followed and unit in cuts and layered & set(block):
            yield tuple(block)
            block = []


def join_stem(model: nn.Module, blocks: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Join blocks of a single layer at the start to the first block of several layers.

    In a plain network most blocks have a single layer; they stay as they are.
    """
    rich = [any(len(layer_names(model.get_submodule(n))) > 1 for n in block) for block in blocks]
    stem = rich.index(True) if any(rich) else len(blocks)
    if stem >= len(blocks) - stem:
        return tuple(blocks)
    return tuple(n for block in blocks[: stem + 1] for n in block), *blocks[stem + 1 :]


def timm_architecture(name: str) -> Architecture:
    """Return a timm network with timm's initial weights. Raise UsageError for an unknown name."""
    import timm

    if not timm.is_model(name):
        raise UnknownName("timm network", name, timm.list_models())
    config: Any = timm.get_pretrained_cfg(name)
    fixed = bool(config and config.fixed_input_size)
    return Architecture(
        name=PREFIX + name,
        factory=partial(create_network, name),
        roles=partial(find_roles, name=PREFIX + name),
        default_width=1,  # stands for their own
        input_size=config.input_size[-1] if fixed else 224,
        summary=f"{name} of timm",
        fixed_input=fixed,
    )


def create_network(name: str, num_classes: int, width: int, side: int | None = None) -> nn.Module:
    """Build a network; side (px) if its size is fixed. Raise UsageError for a width or bad size."""
    import timm

    if width != 1:
        raise UsageError(
            f"{PREFIX}{name} has its own width, {width} was given", fix="use --set width=null"
        )
    config: Any = timm.get_pretrained_cfg(name)
    native = side and config.input_size[-1]
    sized: dict[str, Any] = {} if side == native else {"img_size": side}
    try:
        model: Any = timm.create_model(name, num_classes=num_classes, **sized)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{PREFIX}{name}, made for {native} px, cannot be built for {side} px images: {error}",
            fix=f"use --set input_size={native}",
        ) from error
    if sized:
        model.pretrained_cfg = {**model.pretrained_cfg, "input_size": (3, side, side)}
    return model  # type: ignore[no-any-return]


def register_in_timm() -> None:
    """Register every network of this project with timm as fsbench_NAME.

    `timm.create_model("local-dir:DIR", pretrained=True)` then loads what `fsbench export` writes.
    """
    import timm
    from timm.models import build_model_with_cfg, register_model

    for name in PRESETS:
        if not timm.is_model(TIMM_NAME + name):
            build = partial(build_for_timm, name)
            entrypoint: Any = partial(build_model_with_cfg, build, TIMM_NAME + name)
            entrypoint.__name__, entrypoint.__module__ = TIMM_NAME + name, __name__
            register_model(entrypoint)


def build_for_timm(
    name: str, num_classes: int, width: int, side: int, normalizers: Any, **_: Any
) -> nn.Module:
    """Build a network of this project as timm calls it: width, side (px) and normalizers."""
    model = load_architecture(name).at(side).build(num_classes, width)
    insert_normalizers(model, {key: tuple(shape) for key, shape in normalizers.items()})
    return model
