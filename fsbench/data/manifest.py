"""Episodes of a task by its id, and their export as a JSON Lines file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import UsageError
from fsbench.core.io import replacing
from fsbench.core.specs import EpisodeSpec
from fsbench.core.tasks import DEFAULT_PROTOCOL, USER_DATA, TaskId
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import TARGETS
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.loading import load_target
from fsbench.data.roots import DataRoots


def episode_spec(task: TaskId, seed: int = 0, n_query: int = 15) -> EpisodeSpec:
    """Return the EpisodeSpec of an episodic task."""
    return EpisodeSpec(
        protocol=task.protocol or DEFAULT_PROTOCOL,
        n_way=task.n_way,
        k_shot=task.n_shot or 1,
        n_query=n_query,
        seed=seed,
    )


def load_episodes(
    task: TaskId, roots: DataRoots, seed: int = 0
) -> tuple[TargetDataset, EpisodeSampler]:
    """Load the data set of an episodic task with its sampler. Raise like load_target."""
    spec = episode_spec(task, seed)
    dataset = load_target(task.dataset, roots, spec.pool)
    return dataset, EpisodeSampler.of(spec, dataset)


def make_sampler(task: TaskId, roots: DataRoots | None, seed: int = 0) -> EpisodeSampler:
    """Return the sampler of an episodic task.

    Without roots no image is read: the official class counts describe the full pool on the classic
    track.
    """
    spec = episode_spec(task, seed)
    countable = spec.pool == "full" and spec.track == "classic"
    official = countable and not task.dataset.startswith(USER_DATA)
    if roots is not None or not official:
        return load_episodes(task, roots or DataRoots.parse(), seed)[1]
    facts = TARGETS.load(task.dataset).FACTS
    if not facts.images_per_class:
        raise UsageError(
            f"{facts.name} has no official image counts per class",
            fix="pass the images with --data",
        )
    return EpisodeSampler(spec, facts.name, dict(enumerate(facts.images_per_class)))


def write_episodes(
    file: Path, sampler: EpisodeSampler, dataset: TargetDataset, n_episodes: int
) -> None:
    """Write episodes 0..n-1 as JSON Lines; the file appears only when complete.

    Each object has index, class_ids (n_way official ids), and support and query: n_way lists of
    image paths relative to the data set folder.
    """
    with replacing(file) as temporary, temporary.open("w", encoding="utf8") as part:
        part.writelines(format_episodes(sampler, dataset, n_episodes))


def format_episodes(
    sampler: EpisodeSampler, dataset: TargetDataset, n_episodes: int
) -> Iterator[str]:
    """Yield one JSON object per line, in episode order."""

    def paths(images: NDArray[np.int64]) -> list[list[str]]:
        return [[dataset.paths[i] for i in row] for row in images.tolist()]

    for i in range(n_episodes):
        episode = sampler.episode(i)
        support, query = episode.images(dataset.by_class)
        record = {
            "index": i,
            "class_ids": episode.class_ids.tolist(),
            "support": paths(support),
            "query": paths(query),
        }
        yield json.dumps(record) + "\n"
