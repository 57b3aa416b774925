"""Computations of torch: float32 as it is written, a layout without faults, support of bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import nn

PRECISION: Literal["ieee"] = "ieee"
"""Value of torch's `fp32_precision` under which features and heads are computed."""


@contextmanager
def float32_precision(on_gpu: Literal["ieee", "tf32"]) -> Iterator[None]:
    """Multiply float32 numbers on GPUs by this rule inside, on CPUs as they are; then restore.

    Beside these new switches (`fp32_precision`) the old ones (`allow_tf32`) raise errors.
    """
    backends: Any = torch.backends
    cudnn, onednn = backends.cudnn, backends.mkldnn
    values = dict.fromkeys((backends.cuda.matmul, cudnn.conv, cudnn.rnn), on_gpu)
    values |= dict.fromkeys((onednn.matmul, onednn.conv, onednn.rnn), PRECISION)
    before = {operation: operation.fp32_precision for operation in values}
    try:
        for operation, value in values.items():
            operation.fp32_precision = value
        yield
    finally:
        for operation, value in before.items():
            operation.fp32_precision = "none"  # follows its backend's again
            if operation.fp32_precision != value:
                operation.fp32_precision = value


@contextmanager
def exact_float32(device: str = "cpu") -> Iterator[None]:
    """Compute in true float32 by deterministic kernels inside, on every device.

    The choices of the host program, autocast included, do not act inside and are restored.
    """
    cudnn = torch.backends.cudnn
    flags = cudnn.benchmark, cudnn.deterministic
    try:
        cudnn.benchmark, cudnn.deterministic = False, True
        with float32_precision(PRECISION), torch.autocast(torch.device(device).type, enabled=False):
            yield
    finally:
        cudnn.benchmark, cudnn.deterministic = flags


def has_bfloat16_kernels() -> bool:
    """Return whether oneDNN computes in bfloat16 here; ONEDNN_MAX_CPU_ISA can forbid it."""
    has_onednn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(has_onednn and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def has_bfloat16(device: str) -> bool:
    """Return whether the device multiplies bfloat16 numbers in hardware."""
    if device == "cpu":
        units = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        return units and has_bfloat16_kernels()
    return device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False)


def memory_layout(model: nn.Module) -> torch.memory_format:
    """Return the layout in which a network is trained and evaluated, the same on every machine.

    Channels last is the faster one, but oneDNN's AVX2 kernels have a fault in it: the gradient of
    the input of a 1x1 convolution with a stride and fewer than 8 input channels is written past its
    memory (tests/stress/convolutions.py). `toy_resnet` and `pilot_resnet` of a width below 8 have
    one. The network alone decides, not the processor, so that equal weights give equal bits.
    """
    is_faulty = any(
        layer.in_channels < 8 and layer.kernel_size == (1, 1) and max(layer.stride) > 1
        for layer in model.modules()
        if isinstance(layer, nn.Conv2d)
    )
    return torch.contiguous_format if is_faulty else torch.channels_last
