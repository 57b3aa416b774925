"""Forward passes that only look: what inner modules give, no trace left in batch norm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def batch_statistics(model: nn.Module) -> Iterator[None]:
    """Inside, batch norm in training mode uses the batch's statistics and keeps its own."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    tracked = [norm.track_running_stats for norm in norms]
    for norm in norms:
        norm.track_running_stats = norm.track_running_stats and not norm.training
    try:
        yield
    finally:
        for norm, before in zip(norms, tracked, strict=True):
            norm.track_running_stats = before


@torch.no_grad()
def outputs(model: nn.Module, modules: Iterable[str], images: Tensor) -> dict[str, Tensor]:
    """What these modules give for the images, before their normalisers."""
    found: dict[str, Tensor] = {}

    def hook(name: str) -> torch.utils.hooks.RemovableHandle:
        def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            found[name] = output.clone()

        return model.get_submodule(name).register_forward_hook(keep, prepend=True)

    hooks = [hook(name) for name in modules]
    try:
        model(images)
    finally:
        for handle in hooks:
            handle.remove()
    return found
