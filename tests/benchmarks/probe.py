"""Three learning rates of the linear probe in one pass: `python -m benchmarks.probe`.

All start from cached features and end with the outcomes of every epoch on the test images. Plain:
for each learning rate a pass of nn.Linear and torch.optim.SGD, one step a mini-batch, as published
code does. Ours, apart: the suite's probe with one learning rate, three times. Ours: all three side
by side. Products: nothing but the matrix products of that pass, forward and backward in each step
and forward over the test images; three heads have as many multiplications side by side as in three
passes, so plain over products (`bound`) is what this layout of the heads would give if all else
cost nothing. Shapes are those of the transfer targets, cut to fewer images, and of EuroSAT's ten
classes.

Plain passes at D 2048 and 200 classes run in half the time in some processes, by where the weights
come to lie.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from benchmarks.pairing import (
    AGAIN,
    OURS,
    PLAIN,
    Measurement,
    Round,
    describe_generated,
    in_fresh_processes,
    take_rounds,
    timer,
)
from torch import nn
from torch.nn.functional import cross_entropy

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
PARTS = (PLAIN, "apart", OURS, "products")


def inputs(dim: int, n_classes: int) -> Inputs:
    """Rectified features of TRAIN + TEST images."""
    facts = describe_generated(n_classes, 0)
    ids = tuple(map(str, range(TRAIN + TEST)))
    labels = np.arange(TRAIN + TEST) % n_classes
    dataset = TargetDataset("bench", facts, Path(), ids, ids, labels, facts.classes)
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


def take_shape(dim: int, n_classes: int, threads: int, repeats: int) -> list[Round]:
    """So many rounds of one shape."""
    torch.set_num_threads(threads)
    data, spec = inputs(dim, n_classes), ProbeSpec(epochs=EPOCHS)
    single = [spec.model_copy(update={"lrs": (lr,)}) for lr in spec.lrs]
    works: dict[str, Callable[[], object]] = {
        PLAIN: lambda: [plain(data, spec, lr) for lr in spec.lrs],
        "apart": lambda: [ours(data, rate) for rate in single],
        OURS: lambda: ours(data, spec),
        "products": lambda: products(data, spec),
        AGAIN: lambda: ours(data, spec),
    }
    return take_rounds({name: timer(work) for name, work in works.items()}, repeats)


def line(dim: int, n_classes: int, measured: Measurement) -> str:
    ratios = measured.ratios()
    others = (measured.ratio("apart"), measured.ratio(fast="products"))
    return (
        f"{dim:5} {n_classes:7} "
        + " ".join(f"{1e3 * measured.seconds(part):13.1f} ms" for part in PARTS)
        + f" {measured.ratio():6.1f}x {ratios[0]:6.1f}x to {ratios[-1]:4.1f}x"
        + "".join(f" {ratio:6.1f}x" for ratio in others)
        + f"   A/A {measured.noise:.2f}"
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
            processes = in_fresh_processes(take_shape, job, options.processes)
            print(line(dim, n_classes, Measurement(processes)), flush=True)


if __name__ == "__main__":
    main()
