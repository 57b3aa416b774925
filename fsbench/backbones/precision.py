"""Float32 as it is written: no TF32, no bfloat16 inside, whatever the host program has chosen."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

PRECISION = "ieee"
"""Value of torch's `fp32_precision` under which features and heads are computed."""


@contextmanager
def exact_float32(device: str = "cpu") -> Iterator[None]:
    """Compute in true float32 by deterministic kernels inside, on every device.

    The choices of the host program, autocast included, do not act inside and are restored. The old
    switches (`allow_tf32`) raise an error in a program that has used the new ones, so only
    `fp32_precision` is read and set.
    """
    backends: Any = torch.backends
    cudnn, onednn = backends.cudnn, backends.mkldnn
    operations = [backends.cuda.matmul, cudnn.conv, cudnn.rnn]
    operations += [onednn.matmul, onednn.conv, onednn.rnn]
    before = [operation.fp32_precision for operation in operations]
    flags = cudnn.benchmark, cudnn.deterministic
    try:
        cudnn.benchmark, cudnn.deterministic = False, True
        for operation in operations:
            operation.fp32_precision = PRECISION
        with torch.autocast(torch.device(device).type, enabled=False):
            yield
    finally:
        cudnn.benchmark, cudnn.deterministic = flags
        for operation, value in zip(operations, before, strict=True):
            operation.fp32_precision = "none"  # follows its backend's again
            if operation.fp32_precision != value:
                operation.fp32_precision = value
