"""Networks of this project, and the roles of modules: layers, blocks, norms, head.

Methods address parameters by role, never by parts of a name.

Fixed normalisers z -> (z - mean) / std after modules are not trained. `lw` puts them after blocks
("The Impact of Reinitialization on Generalization in Convolutional Neural Networks", Algorithm 1).
A run records their modules and `run:` restores them. Mean and std are buffers of the module whose
output they normalise, so they are in every state dict and no name of the plain architecture
changes. A fresh one (0 and 1) changes no bit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.core.errors import UnknownName, UsageError

Kinds = tuple[type[nn.Module], ...]

LAYERS: Kinds = (nn.Conv2d, nn.Linear)
NORMS: Kinds = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
"""Layers whose output is invariant to the scale of their input."""


def layer_names(model: nn.Module, kinds: Kinds = LAYERS) -> tuple[str, ...]:
    """Return the names of all layers of some kinds in order of registration."""
    return tuple(name for name, module in model.named_modules() if isinstance(module, kinds))


def below(name: str, prefixes: Iterable[str]) -> bool:
    """Return whether a module or parameter is one of the modules `prefixes` or inside one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@contextmanager
def record_outputs(
    model: nn.Module,
    names: Iterable[str],
    take: Callable[[Any], Any] = torch.clone,
    *,
    prepend: bool = False,
) -> Iterator[dict[str, Any]]:
    """Collect what modules return while the block runs, by name, in the order of their last call.

    take: makes the value to collect, a copy because a later module may work in place; prepend:
    before other hooks of the modules, such as normalizers.
    """
    values: dict[str, Any] = {}

    def record(name: str, module: nn.Module, inputs: object, output: Any) -> None:
        values.pop(name, None)
        values[name] = take(output)

    handles = [
        model.get_submodule(name).register_forward_hook(partial(record, name), prepend=prepend)
        for name in names
    ]
    try:
        yield values
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True)
class RoleMap:
    """Roles of the modules of a network; names as in `model.named_modules()`.

    layers: convolutions and linear layers in forward order (downsample convolutions after their
    branch), head included; blocks: module prefixes of the K blocks, the stem in the first one and
    the head in none, the module that gives the output last; fully_connected: the layers at the end,
    head included; stages: the coarse parts of the trunk; weighted: layers and normalisation layers
    in forward order; chain: every weighted layer feeds the next one and no other.
    """

    layers: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    head: str
    fully_connected: tuple[str, ...]
    stages: tuple[str, ...]
    weighted: tuple[str, ...] = ()
    chain: bool = False

    @classmethod
    def of(
        cls,
        model: nn.Module,
        blocks: Iterable[tuple[str, ...]],
        stages: tuple[str, ...],
        fully_connected: tuple[str, ...] = ("fc",),
        chain: bool = False,
        head: str = "fc",
    ) -> "RoleMap":
        """Return the roles of a network whose layers are registered in forward order."""
        layers, weighted = layer_names(model), layer_names(model, LAYERS + NORMS)
        return cls(layers, tuple(blocks), head, fully_connected, stages, weighted, chain)

    @property
    def norms(self) -> tuple[str, ...]:
        """Normalisation layers in forward order."""
        return tuple(name for name in self.weighted if name not in self.layers)

    @staticmethod
    def from_threshold(model: nn.Module, threshold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split the names of all parameters at the module `threshold`: (before it, from it on).

        As the official code of SEAL (models/model_utils.py:156-192). Raises UnknownName.
        """
        names = [name for name, _ in model.named_parameters()]
        start = next((i for i, n in enumerate(names) if n.startswith(f"{threshold}.")), None)
        if start is None:
            modules = {name.rsplit(".", 1)[0] for name in names}
            parents = {module.split(".")[0] for module in modules}
            raise UnknownName("layer threshold", threshold, modules | parents)
        return tuple(names[:start]), tuple(names[start:])


@dataclass(frozen=True)
class Architecture:
    """A network of this project, addressed as `fsbench/NAME`.

    factory: (num_classes, width) -> module, with initial weights from torch's global generator;
    num_classes = 0 gives the head-free trunk, (B, 3, H, W) -> (B, D). roles: of any model that the
    factory built; default_width: channels of the first stage; input_size: side (px) it is meant
    for; summary: one line for listings; least: smallest side; fixed_input: the shapes of the
    weights depend on the side, which the factory then takes as a third argument.
    """

    name: str
    factory: Callable[..., nn.Module]
    roles: Callable[[nn.Module], RoleMap]
    default_width: int
    input_size: int
    summary: str
    features: str = "global average pooling"
    fixed_input: bool = False
    least: int = 1

    def at(self, input_size: int) -> "Architecture":
        """Return the same network for images of this side (px)."""
        return replace(self, input_size=input_size)

    def build(self, num_classes: int, width: int | None = None) -> nn.Module:
        """Build a freshly initialised model. Raise UsageError for images that are too small."""
        if self.input_size < self.least:
            raise UsageError(
                f"fsbench/{self.name} needs at least {self.least} px, not {self.input_size}",
                fix=f"use --set input_size={self.least} or larger",
            )
        side = (self.input_size,) if self.fixed_input else ()
        return self.factory(num_classes, width or self.default_width, *side)


def affine_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return the normalization layers that have a scale, by name, in module order.

    Affine tuning trains their scale and shift (protocols/README.md, "Affine tuning").
    """
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(getattr(module, "weight", None), nn.Parameter)
        and (  # some norms of timm, such as RmsNorm, share no class with torch's
            isinstance(module, NORMS)
            or any(kind.__module__ == "timm.layers.norm" for kind in type(module).__mro__)
        )
    }


def count_affine(model: nn.Module) -> int:
    """Count the parameters that affine tuning trains besides the head: 53,120 for ResNet-50."""
    layers = affine_layers(model).values()
    return sum(p.numel() for layer in layers for p in layer.parameters(recurse=False))


def has_channels_first(layer: nn.Module) -> bool:
    """Return whether a norm has the channels in axis 1 of its input, (B, C, ...), or else last.

    Classes named 2d have, such as the LayerNorm2d of timm and torchvision.
    """
    kinds = (nn.modules.batchnorm._NormBase, nn.GroupNorm)
    return isinstance(layer, kinds) or any("2d" in c.__name__.lower() for c in type(layer).__mro__)


MEAN, STD = "normalizer_mean", "normalizer_std"
Shapes = Mapping[str, tuple[int, ...]]
"""Module name -> shape of mean and std: () for scalars, (C,) or (C, 1, 1) for channels."""


def insert_normalizers(model: nn.Module, shapes: Shapes) -> None:
    """Insert an identity normaliser after each module. Raise AttributeError for a missing one."""
    for name, shape in shapes.items():
        module = model.get_submodule(name)
        parameter = next(model.parameters())
        module.register_buffer(MEAN, parameter.new_zeros(shape))
        module.register_buffer(STD, parameter.new_ones(shape))
        module.register_forward_hook(normalize)


def normalize(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Normalise an output (forward hook); buffers are on the module, so copies of it work too."""
    mean, std = (module.get_buffer(name).to(output.dtype) for name in (MEAN, STD))
    return (output - mean) / std


def normalizer_shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all normalisers, as `insert_normalizers` takes them."""
    means = {name: mean for name, mean in model.named_buffers() if name.endswith(f".{MEAN}")}
    return {name.removesuffix(f".{MEAN}"): tuple(mean.shape) for name, mean in means.items()}


def normalizer_tensors(name: str) -> tuple[str, str]:
    """Return the names of mean and std of the normaliser after module `name`."""
    return f"{name}.{MEAN}", f"{name}.{STD}"
