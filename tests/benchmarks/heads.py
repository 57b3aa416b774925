"""How much faster the batched heads are than a plain loop: `python -m benchmarks.heads`.

Both start from cached features and end with predictions; init and permutations are drawn inside.
Plain: for each episode, nn.Linear and torch.optim.SGD, one step a mini-batch, as published code
does on cached features. It is timed on a few epochs of one episode, with one torch thread and with
all of them, and the faster counts. Ours: one whole block of the suite's protocol without dense
queries, which the loop has not; the column `dense` says what they add: the time with them over the
time without.
"""

import argparse
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from benchmarks.pairing import (
    AGAIN,
    OURS,
    PLAIN,
    Measurement,
    describe_generated,
    seconds,
    take_rounds,
)
from torch import nn
from torch.nn.functional import cross_entropy

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


WORKS = {1: 10, 5: 2, 20: 1, 50: 1}
"""Blocks, and episodes of the plain loop, timed together: one block of 1 shot takes 50 ms."""


def inputs(dim: int) -> Inputs:
    """Ten classes of 300 images with rectified features."""
    facts = describe_generated(N_CLASSES, IMAGES)
    ids = tuple(f"{name}/{i}" for name in facts.classes for i in range(IMAGES))
    labels = np.repeat(np.arange(N_CLASSES), IMAGES)
    dataset = TargetDataset("bench", facts, Path(), ids, ids, labels, facts.classes)
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


def plain(data: Inputs, spec: EpisodicSpec) -> float:
    """Seconds an episode: the fastest thread count, scaled to all epochs."""
    all_threads, epochs = torch.get_num_threads(), PLAIN_EPOCHS[spec.episode.k_shot]
    works, times = WORKS[spec.episode.k_shot], []

    def episodes() -> None:
        for _ in range(works):
            plain_epochs(data, spec, epochs)

    for threads in {1, all_threads}:
        torch.set_num_threads(threads)
        times.append(seconds(episodes) / works)
    torch.set_num_threads(all_threads)
    return min(times) * spec.head.epochs / epochs


def dense(data: Inputs, spec: EpisodicSpec) -> float:
    """Seconds an episode over whole blocks, dense queries and all."""
    size, works = block_size(spec, data.features.shape[1]), WORKS[spec.episode.k_shot]
    taken = seconds(lambda: [evaluate_block(data, spec, block) for block in range(works)])
    return taken / (size * works)


def batched(data: Inputs, spec: EpisodicSpec) -> float:
    """Seconds an episode over whole blocks, of the queries alone."""
    skipped = {
        "score_dense_queries": lambda records, *_: records,
        "reconstruct_heads": lambda *_: None,
    }
    with patch.multiple(linear, **skipped):
        return dense(data, spec)


def compare(dim: int, k_shot: int, repeats: int) -> Measurement:
    """Seconds per episode: the plain loop, ours, ours again, ours with dense queries."""
    data, spec = inputs(dim), EpisodicSpec(episode=EpisodeSpec(k_shot=k_shot))
    kinds = {PLAIN: plain, OURS: batched, AGAIN: batched, "dense": dense}
    sides = {name: partial(kind, data, spec) for name, kind in kinds.items()}
    return Measurement([take_rounds(sides, repeats)])


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
            measured = compare(dim, k_shot, options.repeats)
            slow, fast = measured.seconds(PLAIN), measured.seconds(OURS)
            row = f"{dim:5} {k_shot:5} {1e3 * slow:17.1f} {1e3 * fast:16.3f}"
            notes = f"A/A {measured.noise:.2f}   dense {measured.ratio('dense'):.2f}"
            print(f"{row} {measured.ratio():7.1f}x   {notes}", flush=True)


if __name__ == "__main__":
    main()
