"""Boards of many entries, as `fsbench submit` would have left them, made in little time.

Entries differ in skill; an episode is as hard for all of them, so that pairing matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from fsbench.data.episodes import EpisodeSampler
from fsbench.records import EpisodeRecords
from fsbench.results import building
from fsbench.results.names import model_name, stem
from fsbench.results.rules import Loaded
from fsbench.results.summary import records_digest, summarise
from fsbench.schema import BackboneFacts, Result
from fsbench.seeding import uniforms
from fsbench.specs import EpisodeSpec, EpisodicSpec
from leaderboard.board import write_entry
from leaderboard.candidate import Candidate
from tests import fakes

TARGETS = ("chestx", "cropdisease", "eurosat", "isic")
SHOTS = (1, 5, 20, 50)
ADAPTATIONS = ("linear", "affine")
"""32 cells by default."""


def board(
    folder: Path,
    entries: int | Sequence[str],
    *,
    targets: Sequence[str] = TARGETS,
    shots: Sequence[int] = SHOTS,
    adaptations: Sequence[str] = ADAPTATIONS,
    n_episodes: int = 600,
) -> Path:
    """The folder with one entry a name (or so many named entry-0000, ...) added, without checks.

    targets: official data sets of the suite. Two calls write the same outcomes.
    """
    names = [f"entry-{i:04}" for i in range(entries)] if isinstance(entries, int) else entries
    specs = [
        EpisodicSpec(adaptation=a, episode=EpisodeSpec(k_shot=k), n_episodes=n_episodes)
        for k in shots
        for a in adaptations
    ]
    for name in names:
        facts = fakes.facts(name)
        cells = [cell(facts, target, spec, skill(name)) for target in targets for spec in specs]
        declared = fakes.DECLARATION.model_copy(update={"name": name})
        write_entry(folder / name, Candidate(declared, model_name(facts), tuple(cells)))
    return folder


def skill(name: str) -> float:
    """Mean accuracy of an entry, between 0.3 and 0.7."""
    return 0.3 + 0.4 * float(uniforms((1,), name, "skill")[0])


def cell(facts: BackboneFacts, target: str, spec: EpisodicSpec, accuracy: float) -> Loaded:
    """One verified-looking result: that of the template with other weights and outcomes."""
    model, records = template(target, spec)
    task = (facts.ref, target, spec.label)
    hard = 0.2 * uniforms(records.index.shape, target, spec.episode.k_shot, "hard")
    right = uniforms(records.correct.shape, *task) < (accuracy - hard)[:, None, None] + 0.1
    own = EpisodeRecords(records.index, records.class_ids, right, records.collapsed, records.finite)
    score = summarise(own, spec).score
    changes = {"backbone": facts, "records_digest": records_digest(own), "score": score}
    return Loaded(Path(f"{stem(spec)}.json"), model.model_copy(update=changes), own)


@cache
def template(target: str, spec: EpisodicSpec) -> tuple[Result, EpisodeRecords]:
    """A result with its real episodes and manifest; every query is wrong."""
    data, n = fakes.official(target), spec.n_episodes
    counts = dict(zip(data.class_ids, data.class_counts, strict=True))
    sampler = EpisodeSampler(spec.episode, data.name, counts)
    records = EpisodeRecords(
        np.arange(n),
        np.array([sampler.episode(i).class_ids for i in range(n)]),
        np.zeros((n, spec.episode.n_way, spec.episode.n_query), np.bool_),
        np.zeros(n, np.bool_),
        np.ones(n, np.bool_),
    )
    provenance = fakes.provenance()
    return building.build(fakes.facts(), data, spec, records, False, provenance), records
