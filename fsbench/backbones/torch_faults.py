"""Faults of torch's processor code that fsbench avoids, and the memory layout that avoids one."""

from typing import NamedTuple

import torch
from torch import nn


class Fault(NamedTuple):
    """What goes wrong, on which processors, and what fsbench does about it."""

    what: str
    where: str
    remedy: str
    present: bool


VECTOR = 8
"""Numbers in a vector register of AVX2."""


def known_faults() -> tuple[Fault, ...]:
    """Return the known faults of this torch on this processor, present or not."""
    narrow = not torch.cpu._is_avx512_supported() or not has_bfloat16_kernels()
    return (
        Fault(
            f"the gradient of a strided 1x1 convolution of fewer than {VECTOR} channels, channels "
            "last, is written past its memory",
            "oneDNN 3.12 (torch 2.14) without AVX-512",
            "trains and evaluates such networks in contiguous layout, on every processor",
            narrow,
        ),
        Fault(
            "bfloat16 convolutions raise a RuntimeError",
            "oneDNN without AVX-512 or AVX-VNNI-2",
            "refuses the setting affine.dtype=bfloat16",
            not has_bfloat16_kernels(),
        ),
    )


def has_bfloat16_kernels() -> bool:
    """Return whether oneDNN computes in bfloat16 here, within ONEDNN_MAX_CPU_ISA."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def memory_layout(model: nn.Module) -> torch.memory_format:
    """Return the layout in which a network is trained and evaluated, the same on every machine.

    Channels last is the faster one. oneDNN's AVX2 kernels have a fault in it: the gradient of the
    input of a 1x1 convolution with a stride and fewer than 8 input channels is written past its
    memory, by one thread and for two images or more. Eight channels, groups, larger kernels and
    contiguous layout are clean (tests/stress/convolutions.py). The network alone decides, not the
    processor, so that equal weights give equal bits; of this project's networks, `toy_resnet` and
    `pilot_resnet` of a width below 8 are concerned.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    is_faulty = any(
        layer.in_channels < VECTOR and layer.kernel_size == (1, 1) and max(layer.stride) > 1
        for layer in layers
    )
    return torch.contiguous_format if is_faulty else torch.channels_last
