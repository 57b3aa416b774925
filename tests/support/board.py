"""Boards of many entries, as `fsbench submit` would have left them, made in little time.

Entries differ in skill; an episode is as hard for all of them, so that pairing matters. A cell has
so many variants, the skills; entries share them in ever other combinations.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from support import fakes

from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts, Result
from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.data.episodes import draw_manifest
from fsbench.results import assembly, parquet
from fsbench.results.names import file_stem, model_name
from fsbench.results.summary import Records
from fsbench.results.entry import Loaded
from leaderboard.store import write_entry
from leaderboard.intake.submission import Submission

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
        facts = fakes.facts(name)
        cells = [
            cell(facts, *kind, skill) for kind, skill in zip(kinds, skills(name), strict=False)
        ]
        declared = fakes.DECLARATION.model_copy(update={"name": name})
        with patch.object(assembly, "write_result", write):
            write_entry(folder / name, Submission(declared, model_name(facts), tuple(cells)))
    return folder


def skills(name: str) -> list[int]:
    """Places in SKILLS, one a cell; those of an entry are near each other."""
    base = int(uniforms((1,), name, "skill")[0] * (len(SKILLS) - NEAR))
    return [base + int(u * NEAR) for u in uniforms((1000,), name, "skills")]


def cell(facts: BackboneFacts, target: str, spec: EpisodicSpec, skill: int) -> Loaded:
    """A result of this backbone, with the outcomes of all that share the skill."""
    result, records = variant(target, spec, skill)
    changed = result.model_copy(update={"backbone": facts})
    return Loaded(Path(target) / f"{file_stem(spec)}.json", changed, records)


@cache
def variant(target: str, spec: EpisodicSpec, skill: int) -> tuple[Result, EpisodeRecords]:
    """A result with its real episodes and manifest."""
    images = hashlib.sha256(target.encode()).hexdigest()  # no two data sets have equal ones
    data = fakes.official(target).model_copy(update={"images_hash": images, "fingerprint": images})
    e, n = spec.episode, spec.n_episodes
    counts = dict(zip(data.class_ids, data.class_counts, strict=True))
    drawn = draw_manifest(e, data.name, counts, None, range(n))
    hard = 0.2 * uniforms((n, 1, 1), target, e.k_shot, "hard") - 0.1
    noise = uniforms((n, e.n_way, e.n_query), target, spec.label, skill)
    records = EpisodeRecords(
        drawn.numbers,
        drawn.class_ids,
        noise < SKILLS[skill] - hard,
        np.zeros(n, np.bool_),
        np.ones(n, np.bool_),
    )
    return assembly.build_result(
        fakes.facts(), data, spec, records, False, fakes.provenance()
    ), records


def write(path: Path, result: Result, records: Records) -> None:
    """As building.write; equal records are packed once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".parquet").write_bytes(packed(records))
    write_record(path, result)


@cache
def packed(records: Records) -> bytes:
    with TemporaryDirectory() as folder:
        parquet.write_records(Path(folder) / "records", records)
        return (Path(folder) / "records").read_bytes()
