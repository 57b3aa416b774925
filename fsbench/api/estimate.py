"""Work that would take over an hour says so before it starts, and wants --yes."""

from __future__ import annotations

import time

import torch

from fsbench.backbones.base import Backbone
from fsbench.backbones.features import block_size
from fsbench.errors import UsageError
from fsbench.progress import Reporter

HOUR = 3600.0
WORTH_TIMING = 1000
"""Images below which no network that fits this suite takes an hour."""
TIMED_BLOCKS = 2


def seconds_per_image(backbone: Backbone, input_size: int, device: str) -> float:
    """Time of the forward pass alone, over a few blocks after one to warm up."""
    size = block_size(backbone.facts.feature_dim, input_size)
    images = torch.zeros((size, 3, input_size, input_size), dtype=torch.uint8, device=device)
    with torch.inference_mode():
        backbone.features(images).cpu()
        started = time.monotonic()
        for _ in range(TIMED_BLOCKS):
            backbone.features(images).cpu()
    return (time.monotonic() - started) / (TIMED_BLOCKS * size)


def refuse_long(
    images: dict[int, int], backbone: Backbone, device: str, yes: bool, report: Reporter
) -> None:
    """Estimate the extraction of features; images: input size (px) -> images not in the cache.

    Raises UsageError above an hour unless `yes`.
    """
    if sum(images.values()) < WORTH_TIMING:
        return
    seconds = sum(seconds_per_image(backbone, s, device) * n for s, n in images.items())
    gigabytes = sum(images.values()) * backbone.facts.feature_dim * 4 / 1e9
    text = (
        f"features of {sum(images.values())} images for {backbone.facts.ref}: about "
        f"{seconds / 60:.0f} min and {gigabytes:.2f} GB of cache"
    )
    if seconds > HOUR and not yes:
        raise UsageError(text, fix="give --yes to start, or --device, a smaller --input-size, -t")
    report.log(text)
