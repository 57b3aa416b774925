"""Boards of many entries, made in little time: in memory as the site reads them, or in a folder."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support import fakes

from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.results import assembly
from fsbench.results.entry import Loaded, in_order, make_file, write_entry
from leaderboard.record import BoardFile
from leaderboard.store import Board, BoardEntry
from leaderboard.tables import BoardTable, rank_tracks

QUERIES = 75
COST = {
    "macs": 1_814_073_344,
    "images_per_second": 90.5,
    "peak_memory_bytes": 716 * 2**20,
    "machine": "AMD EPYC 7763, 2 threads",
}
Facts = BackboneFacts | Sequence[BackboneFacts]
"""The network of an entry, or one per pretraining seed."""


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
    backbones: Mapping[str, Facts] | None = None,
    controls: Sequence[str] = (),
) -> SiteBoard:
    """The better the earlier: each name is half a point below the one before it; all are whole.

    Episodes are as hard for every entry, so that pairing narrows intervals about twofold.
    """
    facts = {name: fakes.facts(name) for name in names} | dict(backbones or {})
    specs = [EpisodicSpec(episode=EpisodeSpec(k_shot=k), n_episodes=n_episodes) for k in shots]
    entries = [
        entry(name, facts[name], 0.75 - 0.005 * i, targets, specs) for i, name in enumerate(names)
    ]
    file = BoardFile(name="fake", controls=tuple(controls))
    return SiteBoard(file, entries, rank_tracks(file, entries))


def entry(
    name: str, facts: Facts, accuracy: float, targets: Sequence[str], specs: Sequence[EpisodicSpec]
) -> BoardEntry:
    return pack(name, make_results(name, facts, accuracy, targets, specs))


def make_results(
    name: str, facts: Facts, accuracy: float, targets: Sequence[str], specs: Sequence[EpisodicSpec]
) -> list[Loaded]:
    return [
        make_result(f"{name} {i}" if i else name, model, accuracy, target, spec)
        for i, model in enumerate([facts] if isinstance(facts, BackboneFacts) else facts)
        for target in targets
        for spec in specs
    ]


def write_board(
    folder: Path,
    names: Sequence[str],
    *,
    targets: Sequence[str] = ("chestx", "cropdisease", "eurosat", "isic"),
    shots: Sequence[int] = (1, 5, 20, 50),
    n_episodes: int = 600,
) -> Path:
    """Add an entry of each name, 32 columns by default, to the board of a folder, without checks.

    targets: official data sets of the suite. Two calls write the same outcomes.
    """
    specs = [
        EpisodicSpec(adaptation=a, episode=EpisodeSpec(k_shot=k), n_episodes=n_episodes)
        for k in shots
        for a in ("linear", "affine")
    ]
    for name in names:
        accuracy = generator(name, "skill").uniform(0.3, 0.7)
        results = make_results(name, fakes.facts(name), accuracy, targets, specs)
        write_entry(
            folder / name,
            in_order([(loaded.result, loaded.records) for loaded in results]),
            declaration=fakes.DECLARATION.model_copy(update={"name": name}),
            submitted="2026-01-01T00:00:00+00:00",
            fsbench="0.1.0",
        )
    Board.open(folder).record_changes()
    return folder


def pack(name: str, results: Sequence[Loaded], controls: Sequence[str] = ()) -> BoardEntry:
    """An entry of these results. controls: identities of models."""
    pairs = in_order([(loaded.result, loaded.records) for loaded in results])
    # The name is put in without the checks that a board makes: the page must bear any text.
    declaration = fakes.DECLARATION.model_copy(update={"name": name, "statement": f"By {name}."})
    stamps = {"submitted": "2026-01-01T00:00:00+00:00", "fsbench": "0.1.0", "outcomes": "0" * 64}
    file = make_file([result for result, _ in pairs], controls, **stamps)
    file = file.model_copy(update={"declaration": declaration})
    digest = hashlib.sha256(file.to_text().encode()).hexdigest()
    loaded = tuple(Loaded(Path(name), result, records) for result, records in pairs)
    return BoardEntry(Path(name), file, digest, loaded)


def make_result(
    draws: str, facts: BackboneFacts, accuracy: float, target: str, spec: EpisodicSpec
) -> Loaded:
    """Return a result of all episodes with outcomes that follow from its names."""
    n, shape = spec.n_episodes, (spec.n_episodes, spec.episode.n_way, spec.episode.n_query)
    shared = generator(target, spec.label).normal(0, 0.08, n)
    noise = generator(draws, target, spec.label).normal(0, 0.05, n)
    right = np.clip(np.rint(QUERIES * (accuracy + shared + noise)), 0, QUERIES)
    order = generator(draws, target, spec.label, "queries").random((n, QUERIES)).argsort(1)
    correct, none = (order < right[:, None]).reshape(shape), np.zeros(n, np.bool_)
    records = EpisodeRecords(np.arange(n), correct, none, ~none)
    images = hashlib.sha256(target.encode()).hexdigest()  # no two data sets have equal ones
    data = fakes.official(target).model_copy(update={"images_hash": images, "fingerprint": images})
    made = fakes.provenance(cost=COST)
    result = assembly.build_result(facts, data, spec, records, False, made)
    return Loaded(Path(target), result, records)


def generator(*names: str) -> np.random.Generator:
    """Of numbers that follow from names alone."""
    digest = hashlib.sha256(" ".join(names).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:8], "little")))
