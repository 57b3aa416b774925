"""Boards of many entries, as `fsbench submit` would have left them, made in little time.

Entries differ in skill; an episode is as hard for all of them, so that pairing matters.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from support import fakes

from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.results import assembly
from fsbench.results.entry import Loaded, write_entry
from fsbench.results.summary import summarize
from leaderboard.store import Board

TARGETS = ("chestx", "cropdisease", "eurosat", "isic")
SHOTS = (1, 5, 20, 50)
ADAPTATIONS = ("linear", "affine")
"""32 cells by default."""
SKILLS = np.linspace(0.3, 0.7, 40)
NEAR = 5
"""The skills of one entry lie so many apart at most."""


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
    kinds = [(target, spec) for target in targets for spec in specs]
    for name in names:
        cells = [cell(name, *kind, n) for kind, n in zip(kinds, skills(name), strict=False)]
        declared = fakes.DECLARATION.model_copy(update={"name": name})
        write_entry(
            folder / name,
            [(loaded.result, loaded.records) for loaded in cells],
            declaration=declared,
            submitted="2026-01-01T00:00:00+00:00",
            fsbench="0.1.0",
        )
    Board.open(folder).record_changes()
    return folder


def skills(name: str) -> list[int]:
    """Places in SKILLS, one a cell; those of an entry are near each other."""
    base = int(uniforms((1,), name, "skill")[0] * (len(SKILLS) - NEAR))
    return [base + int(u * NEAR) for u in uniforms((1000,), name, "skills")]


def cell(name: str, target: str, spec: EpisodicSpec, skill: int) -> Loaded:
    """A result of this backbone. Its luck is its own: shared luck would make near copies."""
    template, hard = variant(target, spec)
    n, e = spec.n_episodes, spec.episode
    correct = uniforms((n, e.n_way, e.n_query), name, target, spec.label) < SKILLS[skill] - hard
    records = EpisodeRecords(np.arange(n), correct, np.zeros(n, np.bool_), np.ones(n, np.bool_))
    score = summarize(records, spec).score
    changed = {"backbone": fakes.facts(name), "score": score}
    return Loaded(Path(target), template.model_copy(update=changed), records)


@cache
def variant(target: str, spec: EpisodicSpec) -> tuple[Result, NDArray[np.float64]]:
    """A result with its real manifest, and how hard each episode is."""
    images = hashlib.sha256(target.encode()).hexdigest()  # no two data sets have equal ones
    data = fakes.official(target).model_copy(update={"images_hash": images, "fingerprint": images})
    e, n = spec.episode, spec.n_episodes
    hard = 0.2 * uniforms((n, 1, 1), target, e.k_shot, "hard") - 0.1
    correct = np.zeros((n, e.n_way, e.n_query), np.bool_)
    records = EpisodeRecords(np.arange(n), correct, np.zeros(n, np.bool_), np.ones(n, np.bool_))
    made = fakes.provenance()
    result = assembly.build_result(fakes.facts(), data, spec, records, False, made)
    return result, hard
