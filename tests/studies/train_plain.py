"""Train the study's simple CNN by a plain loop, with WELSR written out in three lines.

    python tests/studies/train_plain.py DATA CACHE SEED FRACTION

prints validation accuracy, training accuracy and the norms of the kernels relative to their initial
ones after every round. FRACTION is the part of every kernel that is redrawn at a round's start; 0
is plain training. Only the images and the network come from fsbench: batches, optimizer, masks and
draws are those of torch.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from fsbench import data
from fsbench.backbones.networks import load_architecture
from fsbench.core.specs import SourceSubset

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ROUNDS, EPOCHS, BATCH, SIDE, WIDTH = 7, 30, 32, 32, 12
PART = SourceSubset(classes=20, images_per_class=25)


def load_images(folder: str, cache: Path) -> list[tuple[Tensor, Tensor]]:
    """Return normalised images and labels of training and validation."""
    roots = data.DataRoots.parse((folder,))
    source = data.load_source("tinyimagenet", roots, cache, SIDE, subset=PART)
    mean, std = (torch.tensor(values)[:, None, None] for values in (MEAN, STD))
    return [
        ((torch.tensor(part.images) / 255 - mean) / std, torch.tensor(part.labels))
        for part in (source.train, source.val)
    ]


def redraw(weight: Tensor, fraction: float, generator: torch.Generator) -> None:
    """Replace a random part of a kernel by He-normal draws."""
    mask = torch.rand(weight.shape, generator=generator) < fraction
    fresh = torch.randn(weight.shape, generator=generator) * (2 / weight[0].numel()) ** 0.5
    weight.copy_(torch.where(mask, fresh, weight))


@torch.no_grad()
def measure_accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the share of right answers in percent."""
    right = [network(part).argmax(1) for part in images.split(500)]
    return 100 * float((torch.cat(right) == labels).double().mean())


def train(
    network: nn.Module,
    parts: list[tuple[Tensor, Tensor]],
    seed: int,
    fraction: float,
    rounds: int = ROUNDS,
    epochs: int = EPOCHS,
) -> None:
    """Train by SGD at a constant rate; print a line after every round."""
    (images, labels), validation = parts
    generator = torch.Generator().manual_seed(seed)
    kernels = [m.weight for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    initial = [float(kernel.detach().norm()) for kernel in kernels]
    settings = {"lr": 0.03, "momentum": 0.9, "weight_decay": 1e-5}
    optimizer = torch.optim.SGD(network.parameters(), **settings)
    for number in range(rounds):
        if number:
            with torch.no_grad():
                for kernel in kernels:
                    redraw(kernel, fraction, generator)
        for _ in range(epochs):
            for batch in torch.randperm(len(images), generator=generator).split(BATCH):
                optimizer.zero_grad()
                functional.cross_entropy(network(images[batch]), labels[batch]).backward()
                optimizer.step()
        norms = [float(k.detach().norm()) / old for k, old in zip(kernels, initial, strict=True)]
        accuracies = [measure_accuracy(network, *part) for part in (validation, parts[0])]
        print(number, *(f"{value:.2f}" for value in (*accuracies, *norms)), flush=True)


if __name__ == "__main__":
    folder, cache, seed, fraction = sys.argv[1:5]
    torch.manual_seed(int(seed))
    network = load_architecture("scnn").at(SIDE).build(PART.classes, WIDTH)
    train(network, load_images(folder, Path(cache)), int(seed), float(fraction))
