"""How much faster the batched heads are than a plain loop: `python tests/benchmarks/heads.py`.

Both start from cached features and end with predictions; init and permutations are drawn inside.
Plain: for each episode, nn.Linear and torch.optim.SGD, one step a mini-batch, as published code
does on cached features. It is timed on a few epochs of one episode, with one torch thread and with
all of them, and the faster counts. Ours: one whole block of the suite's protocol without dense
queries, which the loop has not; the column `dense` says what they add: the time with them over the
time without. Both are warmed and taken in turns; the table shows medians, and an A/A row (ours
against ours) for the noise.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.schema import DatasetFacts
from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from protocols.base import Inputs
from protocols.episodic import linear
from protocols.episodic.linear import block_size, evaluate_block

DIMS = (512, 2048)
SHOTS = (1, 5, 20, 50)
N_CLASSES, IMAGES = 10, 300
PLAIN_EPOCHS = {1: 100, 5: 40, 20: 10, 50: 4}
"""Epochs of the plain loop that are timed; its time grows in proportion to them."""


def inputs(dim: int) -> Inputs:
    """Ten classes of 300 images with rectified features."""
    text = dict.fromkeys(
        ("title", "label_rule", "layout", "download", "license", "citation", "homepage"), "bench"
    )
    names = tuple(f"class{c}" for c in range(N_CLASSES))
    facts = DatasetFacts(
        name="bench",
        domain="target",
        classes=names,
        images_per_class=(IMAGES,) * N_CLASSES,
        folders=("bench",),
        **text,
    )
    ids = tuple(f"{name}/{i}" for name in names for i in range(IMAGES))
    labels = np.repeat(np.arange(N_CLASSES), IMAGES)
    dataset = TargetDataset("bench", facts, Path(), ids, ids, labels, names)
    features = uniforms((len(ids), dim), "bench", dim).astype(np.float32)
    return Inputs(None, dataset, features)


def plain_epochs(data: Inputs, spec: EpisodicSpec, epochs: int) -> None:
    """One episode of the plain loop, for so many epochs."""
    e, h = spec.episode, spec.head
    sampler = EpisodeSampler(e, data.dataset.name, data.dataset.class_counts)
    support_images, query_images = sampler.episode(0).images(data.dataset.by_class)
    support = torch.from_numpy(data.features[support_images.ravel()])
    query = torch.from_numpy(data.features[query_images.ravel()])
    labels = torch.arange(e.n_way).repeat_interleave(e.k_shot)
    head = nn.Linear(support.shape[1], e.n_way)
    optimizer = torch.optim.SGD(head.parameters(), h.lr, h.momentum, h.dampening, h.weight_decay)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(h.batch_size):
            optimizer.zero_grad()
            cross_entropy(head(support[batch]), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        head(query).argmax(dim=1)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def plain(data: Inputs, spec: EpisodicSpec) -> float:
    """Seconds an episode: the fastest thread count, scaled to all epochs."""
    all_threads, epochs = torch.get_num_threads(), PLAIN_EPOCHS[spec.episode.k_shot]
    times = []
    for threads in {1, all_threads}:
        torch.set_num_threads(threads)
        times.append(seconds(lambda: plain_epochs(data, spec, epochs)))
    torch.set_num_threads(all_threads)
    return min(times) * spec.head.epochs / epochs


def dense(data: Inputs, spec: EpisodicSpec) -> float:
    """Seconds an episode over one block, dense queries and all."""
    size = block_size(spec, data.features.shape[1])
    return seconds(lambda: evaluate_block(data, spec, 0)) / size


def batched(data: Inputs, spec: EpisodicSpec) -> float:
    """Seconds an episode over one block, of the queries alone."""
    with patch.object(linear, "score_dense_queries", lambda records, *_: records):
        return dense(data, spec)


def compare(dim: int, k_shot: int, repeats: int) -> list[float]:
    """Median seconds an episode: the plain loop, ours, ours again (A/A), ours with dense ones."""
    data, spec = inputs(dim), EpisodicSpec(episode=EpisodeSpec(k_shot=k_shot))
    plain_epochs(data, spec, 2)
    dense(data, spec)
    kinds = (plain, batched, batched, dense)
    rounds = [[kind(data, spec) for kind in kinds] for _ in range(repeats)]
    return [median(column) for column in zip(*rounds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    parser.add_argument("--shots", type=int, nargs="+", default=SHOTS, choices=SHOTS)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, median of {options.repeats}"
    )
    print(f"{'D':>5} {'shots':>5} {'plain ms/episode':>17} {'ours ms/episode':>16} {'ratio':>8}")
    for dim in options.dims:
        for k_shot in options.shots:
            slow, fast, again, whole = compare(dim, k_shot, options.repeats)
            row = f"{dim:5} {k_shot:5} {1e3 * slow:17.1f} {1e3 * fast:16.3f}"
            noise = f"A/A {again / fast:.2f}   dense {whole / fast:.2f}"
            print(f"{row} {slow / fast:7.1f}x   {noise}", flush=True)


if __name__ == "__main__":
    main()
