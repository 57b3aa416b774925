"""Identity and health of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from fsbench.backbones.architectures._roles import below
from fsbench.core.errors import CheckpointError

COUNTER = "num_batches_tracked"
"""A BatchNorm buffer that no output depends on in eval mode; old files lack it."""


def weights_hash(state_dict: Mapping[str, Tensor], head: tuple[str, ...] = ()) -> str:
    """sha-256 over the tensors outside `head` (module prefixes): 64 hex digits (design.md 6).

    Over sorted names, with dtype, shape and bytes of each; batch counters are left out.
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
    """Raises CheckpointError naming `where` and the tensors that hold NaN or infinity."""
    bad = [n for n, t in state_dict.items() if t.is_floating_point() and not t.isfinite().all()]
    if bad:
        raise CheckpointError(
            f"{where}: NaN or infinity in {len(bad)} of {len(state_dict)} tensors: "
            f"{', '.join(bad[:10])}",
            fix="the training diverged or the file is damaged; take an earlier checkpoint",
        )
