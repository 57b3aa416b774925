"""Three learning rates of the linear probe in one pass: `python tests/benchmarks/probe.py`.

All start from cached features and end with the outcomes of every epoch on the test images. Plain:
for each learning rate a pass of nn.Linear and torch.optim.SGD, one step a mini-batch, as published
code does. Ours, apart: the suite's probe with one learning rate, three times. Ours: all three side
by side. Products: nothing but the matrix products of that pass, forward and backward in each step
and forward over the test images; three heads have as many multiplications side by side as in three
passes, so plain over products (`bound`) is what this layout of the heads would give if all else
cost nothing. All are warmed and taken in turns; the table shows medians over one run, and an A/A
row (ours against ours) for the noise. Shapes are those of the transfer targets, cut to fewer
images, and of EuroSAT's ten classes.

On two cores (torch 2.15, two runs): D 512 gives 5.7x to 6.1x at 10 classes, 3.7x at 67, 2.8x to
3.2x at 100 to 120 and 2.7x at 200; D 2048 gives 2.9x, 2.2x to 2.7x, 2.5x to 2.6x, 2.5x to 2.7x.
Matrix products set the bound for many classes: in some processes plain passes at D 2048 and 200
classes run in half the time (their weights then lie in the nearest cache) and 1.4x to 1.9x is left.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.data.base import TargetDataset
from fsbench.schema import DatasetFacts
from fsbench.seeding import uniforms
from fsbench.specs import ProbeSpec
from protocols.base import Inputs
from protocols.linear_probe import evaluate

DIMS = (512, 2048)
CLASSES = (10, 67, 100, 102, 120, 200)
"""EuroSAT, MIT Indoor-67, FGVC-Aircraft, Flowers-102, Stanford Dogs, CUB-200-2011."""
TRAIN, TEST = 960, 960
"""Images; the time of an epoch grows in proportion to them."""
EPOCHS = 6


def inputs(dim: int, n_classes: int) -> Inputs:
    """Rectified features of TRAIN + TEST images."""
    text = dict.fromkeys(
        ("title", "label_rule", "layout", "download", "license", "citation", "homepage"), "bench"
    )
    names = tuple(f"class{c}" for c in range(n_classes))
    facts = DatasetFacts(
        name="bench", domain="target", classes=names, images_per_class=(), folders=("b",), **text
    )
    ids = tuple(map(str, range(TRAIN + TEST)))
    labels = np.arange(TRAIN + TEST) % n_classes
    dataset = TargetDataset("bench", facts, Path(), ids, ids, labels, names)
    return Inputs(None, dataset, uniforms((len(ids), dim), "bench", dim).astype(np.float32))


def plain(given: Inputs, spec: ProbeSpec, lr: float) -> None:
    """One pass of the plain loop."""
    x, y = torch.from_numpy(given.features), torch.from_numpy(given.dataset.labels)
    head = nn.Linear(x.shape[1], len(given.dataset.class_names))
    sgd = torch.optim.SGD(
        head.parameters(), lr, momentum=spec.momentum, weight_decay=spec.weight_decay
    )
    for _ in range(spec.epochs):
        for batch in torch.randperm(TRAIN).split(spec.batch_size):
            sgd.zero_grad()
            cross_entropy(head(x[batch]), y[batch]).backward()
            sgd.step()
        with torch.no_grad():
            head(x[TRAIN:]).argmax(dim=1)


def products(given: Inputs, spec: ProbeSpec) -> None:
    """The matrix products of one pass of all learning rates."""
    x = torch.from_numpy(given.features)
    weight = torch.zeros(x.shape[1], len(spec.lrs) * len(given.dataset.class_names))
    velocity = torch.zeros_like(weight)
    for _ in range(spec.epochs):
        for batch in x[:TRAIN].split(spec.batch_size):
            velocity.addmm_(batch.mT, batch @ weight, beta=spec.momentum)
        x[TRAIN:] @ weight


def ours(given: Inputs, spec: ProbeSpec) -> None:
    evaluate(given, spec, np.arange(TRAIN), np.arange(TRAIN, TRAIN + TEST))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(dim: int, n_classes: int, repeats: int) -> list[float]:
    """Median seconds: three plain passes, three of ours, one of ours, products, one of ours."""
    given, spec = inputs(dim, n_classes), ProbeSpec(epochs=EPOCHS)
    single = [spec.model_copy(update={"lrs": (lr,)}) for lr in spec.lrs]
    ways: tuple[Callable[[], object], ...] = (
        lambda: [plain(given, spec, lr) for lr in spec.lrs],
        lambda: [ours(given, each) for each in single],
        lambda: ours(given, spec),
        lambda: products(given, spec),
        lambda: ours(given, spec),
    )
    for way in ways:
        way()
    rounds = [[seconds(way) for way in ways] for _ in range(repeats)]
    return [median(column) for column in zip(*rounds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, median of {given.repeats}, "
        f"{EPOCHS} epochs of {TRAIN} images"
    )
    names = ("plain, 3 passes", "ours, 3 passes", "ours, 1 pass", "products")
    ratios = f" {'plain':>7} {'ours, 3':>7} {'bound':>7}"
    print(f"{'D':>5} {'classes':>7} " + " ".join(f"{name:>16}" for name in names) + ratios)
    for dim in given.dims:
        for n_classes in given.classes:
            *found, again = compare(dim, n_classes, given.repeats)
            slow, apart, fast, bare = found
            times = " ".join(f"{1e3 * t:13.1f} ms" for t in found)
            gains = f"{slow / fast:6.1f}x {apart / fast:6.1f}x {slow / bare:6.1f}x"
            print(f"{dim:5} {n_classes:7} {times}  {gains}   A/A {again / fast:.2f}", flush=True)


if __name__ == "__main__":
    main()
