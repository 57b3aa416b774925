"""What leaks under the classic track: queries that show what the support of their class shows.

CD-FSL draws by class alone (protocol.md 3), so two photographs of one lesion may stand on both
sides of an episode. Counted on the very episodes that are evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from fsbench.core.errors import DataError
from fsbench.core.specs import EpisodeSpec, Frozen, Protocol
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import Episode, EpisodeSampler
from fsbench.data.groups import Groups


class Leak(Frozen):
    """Of 5-way episodes with 15 queries a class; fractions, null where a class is too small."""

    shots: int
    episodes: int
    queries: float | None = Field(None, description="with a group of the support of their class")
    any_class: float | None = Field(None, description="with a group of the support of any class")
    affected: float | None = Field(None, description="episodes with at least one such query")
    reason: str | None = None


class Audit(Frozen):
    """Groups of a data set and what they do to its episodes. repeats: images but the first of each
    group in each class."""

    dataset: str
    pool: str
    images: int
    groups: int
    repeats: int
    meaning: str
    leaks: tuple[Leak, ...]


def audit(dataset: TargetDataset, shots: Sequence[int], n_episodes: int, seed: int = 0) -> Audit:
    """Raises DataError for a data set without groups, and where no shot can be drawn."""
    groups = dataset.require_groups()
    protocol: Protocol = "ibm" if dataset.pool == "full" else "startup"
    specs = [EpisodeSpec(protocol=protocol, k_shot=k, seed=seed) for k in shots]
    leaks = [leak(dataset, groups, spec, n_episodes) for spec in specs]
    if all(found.reason for found in leaks):
        raise DataError(str(leaks[0].reason), fix="lower --shots, or add images to these classes")
    distinct = [np.unique(codes) for codes in groups.by_class.values()]
    return Audit(
        dataset=dataset.name,
        pool=dataset.pool,
        images=len(dataset),
        groups=len(np.unique(np.concatenate(distinct))),
        repeats=len(dataset) - sum(map(len, distinct)),
        meaning=dataset.facts.groups,
        leaks=tuple(leaks),
    )


def leak(dataset: TargetDataset, groups: Groups, spec: EpisodeSpec, n_episodes: int) -> Leak:
    try:
        sampler = EpisodeSampler.of(spec, dataset)
    except DataError as error:
        return Leak(shots=spec.k_shot, episodes=n_episodes, reason=error.message)
    found = np.array([shares(sampler.episode(i), groups) for i in range(n_episodes)])
    own, everywhere = found.T
    return Leak(
        shots=spec.k_shot,
        episodes=n_episodes,
        queries=float(own.mean()),
        any_class=float(everywhere.mean()),
        affected=float((own > 0).mean()),
    )


def shares(episode: Episode, groups: Groups) -> tuple[float, float]:
    """Of an episode's queries: those with a group of their class's support, and of any support."""
    codes = [groups.by_class[int(c)] for c in episode.class_ids]
    support = [code[ranks] for code, ranks in zip(codes, episode.support, strict=True)]
    query = [code[ranks] for code, ranks in zip(codes, episode.query, strict=True)]
    own = [np.isin(asked, seen) for asked, seen in zip(query, support, strict=True)]
    return float(np.mean(own)), float(np.isin(query, np.concatenate(support)).mean())
