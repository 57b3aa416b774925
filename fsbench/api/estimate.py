"""Work that would take over an hour says so before it starts, and wants --yes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from fsbench.backbones.base import Backbone
from fsbench.backbones.features import block_size
from fsbench.core.errors import UsageError
from fsbench.core.progress import Reporter
from fsbench.core.specs import EpisodicSpec
from protocols import EPISODIC

HOUR = 3600.0
WORTH_TIMING = 1000
"""Images below which no network that fits this suite takes an hour."""
TIMED_BLOCKS = 2


class Estimate(NamedTuple):
    """One kind of work and how long it will take."""

    what: str
    seconds: float


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


def extraction(images: dict[int, int], backbone: Backbone, device: str) -> list[Estimate]:
    """Of features; images: input size (px) -> images not in the cache. Nothing for a few."""
    if sum(images.values()) < WORTH_TIMING:
        return []
    seconds = sum(seconds_per_image(backbone, s, device) * n for s, n in images.items())
    gigabytes = sum(images.values()) * backbone.facts.feature_dim * 4 / 1e9
    what = f"features of {sum(images.values())} images, {gigabytes:.2f} GB of cache"
    return [Estimate(what, seconds)]


def adaptation(blocks: dict[EpisodicSpec, int], backbone: Backbone, device: str) -> list[Estimate]:
    """Of protocols that train for long; blocks: spec -> blocks not yet computed."""
    found = []
    for spec, n in blocks.items():
        timer, e = block_timer(spec), spec.episode
        if timer is not None and n:
            size = EPISODIC.load(spec.adaptation).block_size(spec, backbone.facts.feature_dim)
            what = f"{spec.adaptation} tuning of {n * size} {e.n_way}w{e.k_shot}s episodes"
            found.append(Estimate(what, n * timer(backbone, spec, device)))
    return found


def block_timer(spec: EpisodicSpec) -> Callable[[Backbone, EpisodicSpec, str], float] | None:
    """The function of the spec's protocol that estimates one block, if it takes long at all."""
    return getattr(EPISODIC.load(spec.adaptation), "block_seconds", None)


SMALLER = "give --yes to start, or --device, a smaller --input-size, fewer --episodes, -t"


def refuse_long(
    parts: list[Estimate], ref: str, yes: bool, report: Reporter, fix: str = SMALLER
) -> None:
    """Say how long the work will take. Raises UsageError above an hour unless `yes`."""
    seconds = sum(part.seconds for part in parts)
    text = "; ".join(f"{part.what}: about {duration(part.seconds)}" for part in parts)
    if seconds > HOUR and not yes:
        raise UsageError(f"{ref}: {text}; {duration(seconds)} in all", fix=fix)
    if parts:
        report.log(f"{ref}: {text}")


def duration(seconds: float) -> str:
    """e.g. 40 s, 12 min, 5.5 h"""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
