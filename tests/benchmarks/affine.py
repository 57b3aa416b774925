"""Affine tuning of a block beside a plain loop over its episodes.

Both train whole mini-batches of decoded images, head and affine parameters, kernels frozen. Plain:
one episode after the other on a deep copy of the network, with autograd and torch.optim.SGD as the
published code does, on one torch thread and on all of them; the faster counts. Ours: one block of
the suite's protocol on all threads. Times are per step and episode, without those of building
networks: a 1-shot episode takes 200 steps.
"""

from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import torch
from benchmarks.pairing import Settings, Side, fastest_seconds, timer
from support.affine import PlainTuning

from fsbench.backbones import load_backbone
from fsbench.backbones.kernels import exact_float32
from fsbench.core.specs import AffineSpec, EpisodeSpec, EpisodicSpec, ImageSpec
from protocols.affine.network import take_rows
from protocols.affine.tuning import AffineTuning
from protocols.episodic.affine import exact_kernels, piece_size
from protocols.heads.gram import UntrainedHeads

N_WAY, BATCH = 5, 4


class Row(NamedTuple):
    """A network, the side of its images (px), shots, and the least ratio."""

    ref: str
    side: int
    k_shot: int
    bound: float


ROWS = (
    Row("fsbench/toy_resnet", 32, 1, 5),
    Row("fsbench/pilot_resnet", 32, 1, 5),
    Row("fsbench/pilot_resnet", 32, 5, 5),
    Row("timm/resnet18", 32, 1, 5),
    Row("timm/resnet18", 64, 1, 2),
    Row("timm/resnet18", 224, 1, 1),
    Row("timm/resnet50", 64, 5, 8),
    Row("timm/resnet50", 64, 20, 8),
)


def make_sides(settings: Settings, folder: Path, row: Row) -> tuple[Side, Side]:
    """Return the plain loop and the batched tuning, on the same images in the same order."""
    device, steps = settings.device, 2 if settings.quick else 8
    backbone = load_backbone(row.ref, random_init=0, device=device)
    spec = EpisodicSpec(
        adaptation="affine",
        episode=EpisodeSpec(k_shot=row.k_shot),
        image=ImageSpec(input_size=row.side),
        affine=AffineSpec(),
    )
    episodes, n, dim = piece_size(spec, device), N_WAY * row.k_shot, backbone.facts.feature_dim
    pixels = torch.randint(0, 256, (episodes, n, 3, row.side, row.side)).to(device, torch.uint8)
    labels = torch.arange(N_WAY, device=device).repeat_interleave(row.k_shot)
    batches = [*islice(cycle(torch.arange(n, device=device).split(BATCH)), steps)]
    tuning = PlainTuning(backbone, spec)

    def plain() -> None:
        with exact_float32(device):
            for batch in batches:
                tuning.step(pixels[0, batch], labels[batch])

    heads = torch.zeros(episodes, dim, N_WAY, device=device)
    block = AffineTuning(backbone, spec, UntrainedHeads(heads, heads[:, 0]))
    stacked = pixels.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    offsets = n * torch.arange(episodes, device=device)[:, None]

    def ours() -> None:
        with exact_kernels(device, spec):
            for batch in batches:
                rows = (offsets + batch).flatten()
                block.step(take_rows(stacked, rows), labels.repeat(episodes)[rows], rows)

    return lambda: fastest_seconds(plain) / steps, timer(ours, steps * episodes)
