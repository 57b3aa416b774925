"""What a careful forger can do to an entry: change it and make every hash below fit again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fsbench.core.io import read_record, write_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Provenance
from fsbench.results import assembly
from fsbench.results.verification import load_result, result_files
from leaderboard.store import EntryFile
from leaderboard.submission.chain import build_chain


def flipped(n: int, episode: int = 0) -> Callable[[EpisodeRecords], EpisodeRecords]:
    """Changes the outcomes of the first n queries of an episode; dense counts still fit."""

    def change(records: EpisodeRecords) -> EpisodeRecords:
        correct = records.correct.copy()
        row = correct[episode].reshape(-1)
        row[:n] ^= True
        dense, total = records.dense_correct, records.dense_total
        if dense is not None and total is not None:
            right = correct.sum(-1)
            dense = np.clip(dense, right, total - (correct.shape[-1] - right))
        return replace(records, correct=correct, dense_correct=dense)

    return change


def forge(
    entry: Path,
    pattern: str,
    change: Callable[[EpisodeRecords], EpisodeRecords] = lambda records: records,
    **environment: object,
) -> None:
    """Other records or provenance for one cell, by part of its file; all hashes follow."""
    file = next(p for p in entry.rglob("*.json") if pattern in p.name)
    cell = load_result(file)
    assert isinstance(cell.records, EpisodeRecords)
    result, records = cell.result, change(cell.records)
    made = Provenance.model_validate(result.provenance.model_dump() | environment)
    anew = assembly.build_result(result.backbone, result.dataset, result.spec, records, False, made)
    assembly.write_result(file, anew, records)
    stated = read_record(entry / "entry.json", EntryFile)
    fits = stated.model_copy(
        update={"chain": build_chain(tuple(map(load_result, result_files(entry))))}
    )
    write_record(entry / "entry.json", fits)
