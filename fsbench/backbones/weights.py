"""Weights of a network: their hash, and the check for finite values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from fsbench.backbones.roles import below
from fsbench.core.errors import CheckpointError

COUNTER = "num_batches_tracked"
"""A BatchNorm buffer without effect in eval mode, which old files lack."""


def weights_hash(state_dict: Mapping[str, Tensor], head: tuple[str, ...] = ()) -> str:
    """Return the sha-256 over the tensors outside `head` (module prefixes), 64 hex digits.

    It covers name, dtype, shape and bytes in order of name, without batch counters.
    """
    digest = hashlib.sha256()
    for name in sorted(state_dict):
        if name.endswith(COUNTER) or below(name, head):
            continue
        tensor = state_dict[name].detach().cpu().contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name}\0{dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(state_dict: Mapping[str, Tensor], where: str) -> None:
    """Raise CheckpointError naming `where` and the tensors with NaN or infinity."""
    bad = [n for n, t in state_dict.items() if t.is_floating_point() and not t.isfinite().all()]
    if bad:
        raise CheckpointError(
            f"{where}: NaN or infinity in {len(bad)} of {len(state_dict)} tensors: "
            f"{', '.join(bad[:10])}",
            fix="the training diverged or the file is damaged; take an earlier checkpoint",
        )
