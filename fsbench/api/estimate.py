"""Estimates of evaluations and analyses, from a few timed forward passes."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from fsbench.backbones.base import Backbone
from fsbench.backbones.features import feature_block_size
from fsbench.core.estimates import WorkEstimate
from fsbench.core.specs import EpisodicSpec
from protocols import EPISODIC, episodes_per_block

WORTH_TIMING = 1000
"""Images below which no network that fits fsbench takes an hour."""
TIMED_BLOCKS = 2
SMALLER = "choose another --device, a smaller --input-size, fewer --episodes or tasks"


def seconds_per_image(backbone: Backbone, input_size: int, device: str) -> float:
    """Return the time of the forward pass alone, over a few blocks after one to warm up."""
    size = feature_block_size(backbone.facts.feature_dim, input_size)
    images = torch.zeros((size, 3, input_size, input_size), dtype=torch.uint8, device=device)
    with torch.inference_mode():
        backbone.features(images).cpu()
        started = time.monotonic()
        for _ in range(TIMED_BLOCKS):
            backbone.features(images).cpu()
    return (time.monotonic() - started) / (TIMED_BLOCKS * size)


def estimate_extraction(
    images: dict[int, int], backbone: Backbone, device: str
) -> list[WorkEstimate]:
    """Return the cost of extracting features; nothing for a few images.

    images: input size (px) -> images whose features are not in the cache.
    """
    n_images = sum(images.values())
    if n_images < WORTH_TIMING:
        return []
    seconds = sum(seconds_per_image(backbone, s, device) * n for s, n in images.items())
    disk = n_images * backbone.facts.feature_dim * 4
    return [WorkEstimate(f"features of {n_images} images", seconds, disk=disk)]


def estimate_tuning(
    blocks: dict[EpisodicSpec, int], backbone: Backbone, device: str
) -> list[WorkEstimate]:
    """Return the cost of heads that train for long; blocks: spec -> blocks not yet computed."""
    estimates = []
    for spec, n in blocks.items():
        timer, e = block_timer(spec), spec.episode
        if timer is not None and n:
            size = episodes_per_block(spec, backbone.facts.feature_dim)
            what = f"{spec.adaptation} tuning of {n * size} {e.n_way}w{e.k_shot}s episodes"
            estimates.append(WorkEstimate(what, n * timer(backbone, spec, device)))
    return estimates


def block_timer(spec: EpisodicSpec) -> Callable[[Backbone, EpisodicSpec, str], float] | None:
    """Return the function that estimates the seconds of one block; None for fast heads."""
    return getattr(EPISODIC.load(spec.adaptation), "block_seconds", None)
