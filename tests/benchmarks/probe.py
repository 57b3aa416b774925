"""Three learning rates of the linear probe in one pass: `python tests/benchmarks/probe.py`.

All start from cached features and end with the outcomes of every epoch on the test images. Plain:
for each learning rate a pass of nn.Linear and torch.optim.SGD, one step a mini-batch, as published
code does. Ours, apart: the suite's probe with one learning rate, three times. Ours: all three side
by side. Products: nothing but the matrix products of that pass, forward and backward in each step
and forward over the test images; three heads have as many multiplications side by side as in three
passes, so plain over products (`bound`) is what this layout of the heads would give if all else
cost nothing. Shapes are those of the transfer targets, cut to fewer images, and of EuroSAT's ten
classes.

All are warmed and taken in turns, in several fresh processes, which keep freed memory as the
command does: where the weights come to lie, and in which cache, differs between processes, and
plain passes at D 2048 and 200 classes run in half the time in some. A ratio is the median over
processes of the median of their rounds; the one asked for, plain over ours, with its range. A/A
(ours against ours) shows the noise that is left.
"""

import argparse
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.process import keep_freed_memory
from fsbench.core.schema import DatasetFacts
from fsbench.core.seeding import uniforms
from fsbench.core.specs import ProbeSpec
from fsbench.data.base import TargetDataset
from protocols.base import Inputs
from protocols.probes.linear import evaluate_linear_probe

DIMS = (512, 2048)
CLASSES = (10, 67, 100, 102, 120, 200)
"""EuroSAT, MIT Indoor-67, FGVC-Aircraft, Flowers-102, Stanford Dogs, CUB-200-2011."""
TRAIN, TEST = 960, 960
"""Images; the time of an epoch grows in proportion to them."""
EPOCHS = 6
PARTS = ("plain", "apart", "ours", "products")


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


def plain(data: Inputs, spec: ProbeSpec, lr: float) -> None:
    """One pass of the plain loop."""
    x, y = torch.from_numpy(data.features), torch.from_numpy(data.dataset.labels)
    head = nn.Linear(x.shape[1], len(data.dataset.class_names))
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


def products(data: Inputs, spec: ProbeSpec) -> None:
    """The matrix products of one pass of all learning rates."""
    x = torch.from_numpy(data.features)
    weight = torch.zeros(x.shape[1], len(spec.lrs) * len(data.dataset.class_names))
    velocity = torch.zeros_like(weight)
    for _ in range(spec.epochs):
        for batch in x[:TRAIN].split(spec.batch_size):
            velocity.addmm_(batch.mT, batch @ weight, beta=spec.momentum)
        x[TRAIN:] @ weight


def ours(data: Inputs, spec: ProbeSpec) -> None:
    evaluate_linear_probe(data, spec, np.arange(TRAIN), np.arange(TRAIN, TRAIN + TEST))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Turn(NamedTuple):
    """Seconds of three plain passes, three of ours, one of ours, its products, one of ours."""

    plain: float
    apart: float
    ours: float
    products: float
    again: float


def take_turns(dim: int, n_classes: int, threads: int, repeats: int) -> list[Turn]:
    """So many rounds; in a fresh process."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    data, spec = inputs(dim, n_classes), ProbeSpec(epochs=EPOCHS)
    single = [spec.model_copy(update={"lrs": (lr,)}) for lr in spec.lrs]
    ways: tuple[Callable[[], object], ...] = (
        lambda: [plain(data, spec, lr) for lr in spec.lrs],
        lambda: [ours(data, rate) for rate in single],
        lambda: ours(data, spec),
        lambda: products(data, spec),
        lambda: ours(data, spec),
    )
    for way in ways:
        way()
    return [Turn(*(seconds(way) for way in ways)) for _ in range(repeats)]


def line(dim: int, n_classes: int, processes: list[list[Turn]]) -> str:
    def typical(of: Callable[[Turn], float]) -> list[float]:
        return sorted(median(map(of, turns)) for turns in processes)

    times = [median(typical(lambda turn, part=part: getattr(turn, part))) for part in PARTS]
    gains = typical(lambda turn: turn.plain / turn.ours)
    others = (lambda turn: turn.apart / turn.ours, lambda turn: turn.plain / turn.products)
    return (
        f"{dim:5} {n_classes:7} "
        + " ".join(f"{1e3 * t:13.1f} ms" for t in times)
        + f" {median(gains):6.1f}x {gains[0]:6.1f}x to {gains[-1]:4.1f}x"
        + "".join(f" {median(typical(of)):6.1f}x" for of in others)
        + f"   A/A {median(typical(lambda turn: turn.again / turn.ours)):.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    options = parser.parse_args()
    print(
        f"torch {torch.__version__}, {options.threads} threads, {options.processes} processes, "
        f"{options.repeats} rounds each, {EPOCHS} epochs of {TRAIN} images"
    )
    names = ("plain, 3 passes", "ours, 3 passes", "ours, 1 pass", "products")
    ratios = f" {'plain':>7} {'range':>15} {'ours, 3':>7} {'bound':>7}"
    print(f"{'D':>5} {'classes':>7} " + " ".join(f"{name:>16}" for name in names) + ratios)
    for dim in options.dims:
        for n_classes in options.classes:
            job = (dim, n_classes, options.threads, options.repeats)
            with get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
                processes = fresh.starmap(take_turns, [job] * options.processes, chunksize=1)
            print(line(dim, n_classes, processes), flush=True)


if __name__ == "__main__":
    main()
