"""Affine tuning of a block beside a plain loop over its episodes.

Both train whole mini-batches of decoded images, head and affine parameters, kernels frozen. Plain:
one episode after the other on a deep copy of the network, with autograd and torch.optim.SGD as the
published code does, on one torch thread and on all of them; the faster counts. Ours: one block of
the suite's protocol on all threads. Times are per step and episode, without those of building
networks: a 1-shot episode takes 200 steps.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import NamedTuple

import torch
from benchmarks.pairing import Round, fastest_seconds, seconds, take_paired_rounds
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from fsbench import backbones
from fsbench.backbones.architectures import affine_layers
from fsbench.backbones.base import Backbone
from fsbench.core.specs import AffineSpec, EpisodeSpec, EpisodicSpec, HeadSpec, ImageSpec
from protocols.affine.network import take_rows
from protocols.affine.tuning import AffineTuning, make_optimizer
from protocols.episodic.affine import exact_kernels, piece_size
from protocols.heads.gram import UntrainedHeads

N_WAY = 5


class Row(NamedTuple):
    """A network, the side of its images (px), shots, and whether the row needs a GPU."""

    ref: str
    side: int
    k_shot: int
    gpu: bool = False


ROWS = (
    Row("fsbench/toy_resnet", 32, 1),
    Row("fsbench/pilot_resnet", 32, 1),
    Row("fsbench/pilot_resnet", 32, 5),
    Row("timm/resnet18", 32, 1),
    Row("timm/resnet18", 64, 1),
    Row("timm/resnet18", 224, 1),
    Row("timm/resnet50", 64, 5, gpu=True),
    Row("timm/resnet50", 64, 20, gpu=True),
)


class Case:
    """A row on its device: the same images and orders for both sides."""

    def __init__(self, row: Row, steps: int = 8) -> None:
        device = "cuda:0" if row.gpu else "cpu"
        self.backbone: Backbone = backbones.load_backbone(row.ref, random_init=0, device=device)
        self.spec = EpisodicSpec(
            adaptation="affine",
            episode=EpisodeSpec(k_shot=row.k_shot),
            image=ImageSpec(input_size=row.side),
            affine=AffineSpec(),
        )
        self.device, self.steps, n = device, steps, N_WAY * row.k_shot
        self.episodes = piece_size(self.spec)
        images = torch.randint(0, 256, (self.episodes, n, 3, row.side, row.side))
        self.images = images.to(device, torch.uint8)
        self.labels = torch.arange(N_WAY, device=device).repeat_interleave(row.k_shot)
        whole = [list(range(low, min(low + 4, n))) for low in range(0, n, 4)]
        self.batches = [torch.tensor(whole[i % len(whole)], device=device) for i in range(steps)]

    def plain(self) -> None:
        network, head, both = self.plain_network
        for batch in self.batches:
            for optimizer in both:
                optimizer.zero_grad()
            x = self.backbone.normalised(self.images[0, batch])
            cross_entropy(head(network(x)), self.labels[batch]).backward()
            for optimizer in both:
                optimizer.step()

    @cached_property
    def plain_network(self) -> tuple[nn.Module, nn.Module, tuple[SGD, SGD]]:
        network = deepcopy(self.backbone.module)
        head = nn.Linear(self.backbone.facts.feature_dim, N_WAY).to(self.device)
        layers = affine_layers(network).values()
        tuned: list[Tensor] = [p for layer in layers for p in layer.parameters()]
        for p in tuned:
            p.requires_grad_(True)
        optimizers = (
            make_optimizer((list(head.parameters()), HeadSpec())),
            make_optimizer((tuned, AffineSpec())),
        )
        return network, head, optimizers

    def ours(self) -> None:
        (tuning, stacked), n = self.block, len(self.labels)
        labels = self.labels.repeat(self.episodes)
        offsets = n * torch.arange(self.episodes, device=self.device)[:, None]
        with exact_kernels(self.device, self.spec):
            for batch in self.batches:
                rows = (offsets + batch).flatten()
                tuning.step(take_rows(stacked, rows), labels[rows], rows)

    @cached_property
    def block(self) -> tuple[AffineTuning, Tensor]:
        """Untuned networks and stacked images of a block."""
        dim = self.backbone.facts.feature_dim
        heads = torch.zeros(self.episodes, dim, N_WAY, device=self.device)
        tuning = AffineTuning(self.backbone, self.spec, UntrainedHeads(heads, heads[:, 0]))
        return tuning, channels_last(self.images.flatten(0, 1))

    def finish(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return the work with a wait until the device has done it."""

        def finish() -> None:
            work()
            if self.device != "cpu":
                torch.cuda.synchronize()

        return finish

    def plain_seconds(self) -> float:
        return fastest_seconds(self.finish(self.plain)) / self.steps

    def ours_seconds(self) -> float:
        return seconds(self.finish(self.ours)) / self.steps / self.episodes


def channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


def compare(case: Case, rounds: int) -> list[Round]:
    """Return seconds per step and episode of the plain loop and of the batched tuning."""
    return take_paired_rounds(case.plain_seconds, case.ours_seconds, rounds)
