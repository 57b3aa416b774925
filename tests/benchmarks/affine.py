"""How much faster affine tuning is than a plain loop: `python -m benchmarks.affine`.

Both train whole mini-batches of decoded images, head and affine parameters, kernels frozen. Plain:
one episode after the other on a deep copy of the network, with autograd and torch.optim.SGD as the
published code does, on one torch thread and on all of them; the faster counts. Ours: one block of
the suite's protocol on all threads. Times are per step and episode, without those of building
networks: a 1-shot episode takes 200 steps.

Rows for GPUs are skipped with the reason where none is; --rows asks for any row on the CPU.
"""

import argparse
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from benchmarks.pairing import OURS, PLAIN, Measurement, seconds, take_paired_rounds
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
    """A network, the side of its images (px), shots, and whether the row is meant for GPUs."""

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
    """One row on one device: the same images and orders for both sides."""

    def __init__(
        self, row: Row, device: str, steps: int, dtype: Literal["bfloat16"] | None = None
    ) -> None:
        self.backbone: Backbone = backbones.load_backbone(row.ref, random_init=0, device=device)
        self.spec = EpisodicSpec(
            adaptation="affine",
            episode=EpisodeSpec(k_shot=row.k_shot),
            image=ImageSpec(input_size=row.side),
            affine=AffineSpec(dtype=dtype),
        )
        self.row = row
        self.device, self.steps, n = device, steps, N_WAY * row.k_shot
        self.episodes = piece_size(self.spec)
        images = torch.randint(0, 256, (self.episodes, n, 3, row.side, row.side))
        self.images = images.to(device, torch.uint8)
        self.labels = torch.arange(N_WAY, device=device).repeat_interleave(row.k_shot)
        whole = [list(range(low, min(low + 4, n))) for low in range(0, n, 4)]
        self.batches = [torch.tensor(whole[i % len(whole)], device=device) for i in range(steps)]

    def plain(self, episodes: int = 1) -> None:
        network, head, both = self.plain_network
        for i in range(episodes):
            for batch in self.batches:
                for optimizer in both:
                    optimizer.zero_grad()
                x = self.backbone.normalised(self.images[i, batch])
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

    def seconds(self, work: Callable[[], None]) -> float:
        def finish() -> None:
            work()
            if self.device != "cpu":
                torch.cuda.synchronize()

        return seconds(finish)

    def plain_seconds(self) -> float:
        """A step and episode, at the faster number of threads."""
        threads, times = torch.get_num_threads(), []
        for n in {1, threads} if self.device == "cpu" else {threads}:
            torch.set_num_threads(n)
            times.append(self.seconds(self.plain) / self.steps)
        torch.set_num_threads(threads)
        return min(times)

    def ours_seconds(self) -> float:
        return self.seconds(self.ours) / self.steps / self.episodes


def channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


def compare(case: Case, repeats: int) -> Measurement:
    """Seconds per step and episode: ours, the plain loop, ours again."""
    return Measurement([take_paired_rounds(case.plain_seconds, case.ours_seconds, repeats)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, nargs="+", choices=range(len(ROWS)))
    parser.add_argument("--dtype", choices=["bfloat16"], help="of ours; float32 by default")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    name = torch.cuda.get_device_name() if options.device != "cpu" else "cpu"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {name}")
    print(f"{'network':22} {'px':>4} {'shots':>5} {'plain ms':>9} {'ours ms':>8} {'ratio':>7}")
    for number in range(len(ROWS)) if options.rows is None else options.rows:
        row = ROWS[number]
        label = f"{row.ref:22} {row.side:4} {row.k_shot:5}"
        if row.gpu and options.device == "cpu" and options.rows is None:
            print(f"{label} skipped: meant for a GPU; --rows {number} runs it here")
            continue
        case = Case(row, options.device, options.steps, options.dtype)
        measured = compare(case, options.repeats)
        times = f"{1e3 * measured.seconds(PLAIN):9.2f} {1e3 * measured.seconds(OURS):8.2f}"
        print(f"{label} {times} {measured.ratio():6.1f}x   A/A {measured.noise:.2f}", flush=True)


if __name__ == "__main__":
    main()
