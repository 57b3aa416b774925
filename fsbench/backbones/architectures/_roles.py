"""Roles of a network's modules: methods address parameters by role, never by parts of a name.

Source: methods.md 0 (parameter roles, ordered layers and blocks), D3 and D4 (the threshold of LLF
and SEAL).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from fsbench.core.errors import UnknownName


def layer_names(model: nn.Module) -> tuple[str, ...]:
    """Names of all convolutions and linear layers in the order of registration.

    Our architectures register modules in forward order, downsample convolutions after the branch
    that they are added to.
    """
    return tuple(n for n, m in model.named_modules() if isinstance(m, nn.Conv2d | nn.Linear))


NORMS = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
"""Layers whose output does not change with the scale of their input."""


def weighted_names(model: nn.Module) -> tuple[str, ...]:
    """As `layer_names`, normalisation layers included."""
    kinds = (nn.Conv2d, nn.Linear, *NORMS)
    return tuple(n for n, m in model.named_modules() if isinstance(m, kinds))


def below(name: str, prefixes: Iterable[str]) -> bool:
    """Whether the module or parameter `name` is one of the modules `prefixes` or inside one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@dataclass(frozen=True)
class RoleMap:
    """Which module plays which part; names as in `model.named_modules()`.

    layers: convolutions and linear layers in forward order, head included; blocks: module prefixes
    of the K blocks, the stem in the first one and the head in none; the last module of a block
    gives the block's output; head: the classifier; fully_connected: the fully-connected
    layers at the end, head included; stages: the coarse parts of the trunk, names that
    `from_threshold` and the probes take; weighted: layers and normalisation layers in forward
    order; chain: every weighted layer feeds the next one and no other.
    """

    layers: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    head: str
    fully_connected: tuple[str, ...]
    stages: tuple[str, ...]
    weighted: tuple[str, ...] = ()
    chain: bool = False

    @property
    def norms(self) -> tuple[str, ...]:
        """Normalisation layers in forward order."""
        layers = set(self.layers)
        return tuple(name for name in self.weighted if name not in layers)

    @staticmethod
    def from_threshold(model: nn.Module, threshold: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Parameter names before the module `threshold`, and from it on: (early, late).

        Both keep the order of `model.named_parameters()`; together they are all parameters, norm
        layers included (SEAL, models/model_utils.py:156-192). Raises UnknownName for a module that
        the model does not have.
        """
        names = [name for name, _ in model.named_parameters()]
        start = next((i for i, n in enumerate(names) if n.startswith(f"{threshold}.")), None)
        if start is None:
            modules = {name.rsplit(".", 1)[0] for name in names}
            parents = {module.split(".")[0] for module in modules}
            raise UnknownName("layer threshold", threshold, modules | parents)
        return tuple(names[:start]), tuple(names[start:])
