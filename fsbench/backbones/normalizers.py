"""Fixed normalisers after modules of a network: z -> (z - mean) / std, not trained.

`lw` inserts them after blocks ("The Impact of Reinitialization", Algorithm 1); they stay in the
network for good (methods.md A6), so a run records where they stand and `run:` puts them back. Mean
and std are buffers of the module whose output they normalise: they are in every state dict and
checkpoint, and no name of the plain architecture changes. A fresh one, 0 and 1, changes no bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

MEAN, STD = "normalizer_mean", "normalizer_std"
Shapes = Mapping[str, tuple[int, ...]]
"""Module name -> shape of mean and std: () for scalars, (C,) or (C, 1, 1) for channels."""


def insert(model: nn.Module, shapes: Shapes) -> None:
    """Put an identity normaliser after each of these modules. Raises AttributeError for a name
    that the model does not have."""
    for name, shape in shapes.items():
        module = model.get_submodule(name)
        like = next(model.parameters())
        module.register_buffer(MEAN, like.new_zeros(shape))
        module.register_buffer(STD, like.new_ones(shape))
        module.register_forward_hook(normalize)


def normalize(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Forward hook; it finds the buffers on the module itself, so copies of a model stay whole."""
    mean, std = (module.get_buffer(name).to(output.dtype) for name in (MEAN, STD))
    return (output - mean) / std


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Where the normalisers of a network stand: what `insert` needs to rebuild them."""
    return {
        name: tuple(module.get_buffer(MEAN).shape)
        for name, module in model.named_modules()
        if MEAN in dict(module.named_buffers(recurse=False))
    }


def tensors(name: str) -> tuple[str, str]:
    """Names of mean and std of the normaliser after the module `name`."""
    return f"{name}.{MEAN}", f"{name}.{STD}"
