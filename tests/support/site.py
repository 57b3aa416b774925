"""A board in memory as the site reads it: outcomes of many entries without files or records."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support import fakes

from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts, Result, ScoreRecord
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.core.statistics import score
from fsbench.results import assembly
from fsbench.results.names import file_stem
from leaderboard.ranking.outcomes import Outcomes, VerifiedResult, identify_draws, share_numbers
from leaderboard.record import BoardFile
from leaderboard.store import BoardEntry, EntryFile
from leaderboard.tables import BoardTable, rank_tracks

QUERIES = 75


class SiteBoard(NamedTuple):
    """What the data of a page are made of."""

    file: BoardFile
    entries: Sequence[BoardEntry]
    tables: Sequence[BoardTable]


def source(
    names: Sequence[str],
    *,
    targets: Sequence[str] = ("eurosat", "isic"),
    shots: Sequence[int] = (1, 5),
    n_episodes: int = 60,
    backbones: Mapping[str, BackboneFacts] | None = None,
) -> SiteBoard:
    """The better the earlier: each name is half a point below the one before it; all are whole.

    Episodes are as hard for every entry, so that pairing narrows intervals about twofold.
    """
    facts = {name: fakes.facts(name) for name in names} | dict(backbones or {})
    specs = [EpisodicSpec(episode=EpisodeSpec(k_shot=k), n_episodes=n_episodes) for k in shots]
    entries = [
        entry(name, facts[name], 0.75 - 0.005 * i, targets, specs) for i, name in enumerate(names)
    ]
    file = BoardFile(name="fake")
    return SiteBoard(file, entries, rank_tracks(file, entries))


def entry(
    name: str,
    facts: BackboneFacts,
    accuracy: float,
    targets: Sequence[str],
    specs: Sequence[EpisodicSpec],
) -> BoardEntry:
    cells = [cell(name, facts, accuracy, target, spec) for target in targets for spec in specs]
    # The name is put in without the checks that a board makes: the page must bear any text.
    declaration = fakes.DECLARATION.model_copy(update={"name": name, "statement": f"By {name}."})
    file = EntryFile(declaration=declaration, submitted="2026-01-01T00:00:00", fsbench="0.1.0")
    return BoardEntry(file.model_copy(update={"declaration": declaration}), tuple(cells))


def cell(
    name: str, facts: BackboneFacts, accuracy: float, target: str, spec: EpisodicSpec
) -> VerifiedResult:
    """A result of the template with other weights, and with outcomes of all episodes."""
    n, drawn = spec.n_episodes, template(target, spec)
    shared = generator(target, spec.label).normal(0, 0.08, n)
    noise = generator(name, target, spec.label).normal(0, 0.05, n)
    right = np.clip(np.rint(QUERIES * (accuracy + shared + noise)), 0, QUERIES).astype(np.uint8)
    outcomes = Outcomes(share_numbers(np.arange(n)), right, identify_draws(drawn), QUERIES)
    mean, ci95, n = score(outcomes.values)
    changes = {
        "backbone": facts,
        "records_digest": hashlib.sha256(right.tobytes()).hexdigest(),
        "score": ScoreRecord(mean=mean, ci95=ci95, n=n),
        "flags": tuple(flag for flag in drawn.flags if flag != "short"),
    }
    return VerifiedResult(
        Path(target, f"{file_stem(spec)}.json"), drawn.model_copy(update=changes), outcomes
    )


@cache
def template(target: str, spec: EpisodicSpec) -> Result:
    """A result of one episode whose queries are all wrong."""
    shape = (1, spec.episode.n_way, spec.episode.n_query)
    records = EpisodeRecords(
        np.arange(1),
        np.arange(spec.episode.n_way)[None],
        np.zeros(shape, np.bool_),
        np.zeros(1, np.bool_),
        np.ones(1, np.bool_),
    )
    data = fakes.official(target)
    return assembly.build_result(fakes.facts(), data, spec, records, False, fakes.provenance())


def generator(*names: str) -> np.random.Generator:
    """Of numbers that follow from names alone."""
    digest = hashlib.sha256(" ".join(names).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:8], "little")))
