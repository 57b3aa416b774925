"""Dense outcomes in a result: stored, recomputed, shown beside the score, absent in older ones."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import fakes

from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.results.entry import ENTRY_FILE, write_entry
from fsbench.results.outcomes import digest_records
from fsbench.results.table import build_tables
from fsbench.results.verification import find_entries, read_one_result

TOTAL = 29
"""Thirty images a class, one shot."""


def dense(records: EpisodeRecords, total: int = TOTAL) -> EpisodeRecords:
    """Counts near the share of the episode's own queries."""
    right = np.round(records.correct.mean(axis=2) * total).astype(np.int64)
    return replace(records, dense_correct=right, dense_total=np.full_like(right, total))


def write(root: Path, index: range = range(40), **changes: int) -> Result:
    data, spec = fakes.dataset(), fakes.episodic()
    return fakes.store(root, spec, dense(fakes.episodes(spec, data, index, 0.6), **changes))


def test_its_score_is_that_of_classes_that_count_alike_in_a_row_after_the_other(
    tmp_path: Path,
) -> None:
    result = write(tmp_path)
    records, score = read_one_result(tmp_path).records, result.dense
    assert isinstance(records, EpisodeRecords)
    assert records.dense_correct is not None
    assert score is not None
    values = records.dense_correct.mean(axis=1) / TOTAL
    assert (score.n, score.mean) == (40, pytest.approx(values.mean()))
    assert score.ci95 == pytest.approx(1.96 * values.std(ddof=1) / np.sqrt(40))
    shown = build_tables([result])[0]
    assert not any(row[0].endswith("dense") for row in shown.rows), "only --wide shows it"
    rows, task = shown.complete.rows, "folder-blobs:5w1s n_query=5"
    assert [row[0] for row in rows[:2]] == [task, f"{task} dense"]
    assert rows[1][1].startswith(f"{100 * score.mean:.2f} ± {100 * score.ci95:.2f}")
    assert any(note.startswith("dense:") for note in shown.note.splitlines())


def test_results_without_it_are_written_and_digested_as_before(tmp_path: Path) -> None:
    result = fakes.write(tmp_path)
    assert result.dense is None
    (folder,) = find_entries(tmp_path)
    assert "dense" not in json.loads((folder / ENTRY_FILE).read_text())["results"][0]
    shown = build_tables([result])[0]
    assert len(shown.rows) == 2, "the task and the source"
    assert not any("dense" in text for text in [*shown.columns, shown.note])
    plain = fakes.episodes(fakes.episodic(), fakes.dataset(), range(3), 0.6)
    again = replace(dense(plain), dense_correct=None, dense_total=None)
    assert digest_records(plain) == digest_records(again) != digest_records(dense(plain))


@pytest.mark.parametrize("total", [TOTAL - 1, TOTAL + 1])
def test_totals_that_the_classes_do_not_give_are_refused(tmp_path: Path, total: int) -> None:
    """A board draws the episodes again, whose classes say how many images there are."""
    write(tmp_path / "r", total=total)
    with pytest.raises(ValidationFailed, match="other dense totals than the classes give"):
        submit(tmp_path / "r", tmp_path / "board", fakes.DECLARATION)


@pytest.mark.parametrize(
    ("correct", "total"), [(TOTAL + 1, TOTAL), (TOTAL, TOTAL), (0, TOTAL), (0, 0), (-1, TOTAL)]
)
def test_counts_that_contradict_the_queries_are_refused(
    tmp_path: Path, correct: int, total: int
) -> None:
    """Of the queries of a class some are right and some are wrong."""
    write(tmp_path)
    cell = read_one_result(tmp_path)
    assert isinstance(cell.records, EpisodeRecords)
    counts = {"dense_correct": correct, "dense_total": total}
    full = {name: np.full((40, 5), value) for name, value in counts.items()}
    write_entry(cell.folder, [(cell.result, replace(cell.records, **full))])
    with pytest.raises(
        ValidationFailed, match=r"(fewer|more) dense queries (of a class )?are right"
    ):
        read_one_result(tmp_path)
