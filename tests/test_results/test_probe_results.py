"""Results of probes: which rate is the score, what stands beside it, and nearest neighbours."""

import json
from pathlib import Path

import numpy as np
import pytest
from support import fakes

from fsbench.core import statistics
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.records import ImageRecords, ProbeRecords
from fsbench.core.schema import Result
from fsbench.core.specs import ImageSpec, KnnSpec, ProbeSpec
from fsbench.results import ResultStore, episode_records, parquet, probe_records, read, summary
from fsbench.results.summary import digest_records, scored_outcomes
from fsbench.results.table import build_table

SIZE = ImageSpec(input_size=32)
PUBLISHED = ProbeSpec(image=SIZE, epochs=3, held_out=0.1)
HONEST = ProbeSpec(image=SIZE, epochs=3, held_out=0.1, select="held_out")
NEIGHBOURS = KnnSpec(image=SIZE)


def rows(*counts: int, n: int = 10) -> np.ndarray:
    """Of n test images the first ones are right."""
    return np.arange(n) < np.array(counts)[:, None]


def records(held_out: bool = True) -> ProbeRecords:
    """On test 0.1 is best (9, after epoch 2), at the end 0.001 (8); held out, 0.01 (6 at end)."""
    last, best = rows(4, 6, 8), rows(9, 7, 8)
    curve = np.array([[0.1, 0.9, 0.4], [0.7, 0.2, 0.6], [0.2, 0.3, 0.8]])
    accuracy = np.array([0.5, 0.75, 0.75]) if held_out else None
    return ProbeRecords(np.array([0.1, 0.01, 0.001]), curve, last, best, accuracy)


def write(root: Path, spec: ProbeSpec | KnnSpec, block: ProbeRecords | ImageRecords) -> Result:
    cell = ResultStore(root).cell(fakes.facts(), fakes.dataset(), spec)
    return cell.write_probe(block, provenance=fakes.provenance())


def test_the_papers_rule_is_the_score_and_the_other_stands_beside(tmp_path: Path) -> None:
    result = write(tmp_path, PUBLISHED, records())
    details = result.details
    assert result.score.mean == 0.9
    assert (details["lr"], details["epoch"]) == (0.1, 2)
    assert (details["beside_mean"], details["beside_lr"], details["beside_epoch"]) == (0.6, 0.01, 3)
    assert details["beside_ci95"] == statistics.score(rows(6)[0].astype(float))[1]
    assert (details["held_out@0.1"], details["held_out@0.001"]) == (0.5, 0.75)
    assert "as SEAL reports" in str(details["score"])
    assert "held-out part of train" in str(details["beside"])
    assert read(tmp_path) == [result]


def test_the_spec_can_make_the_held_out_rule_the_score(tmp_path: Path) -> None:
    result = write(tmp_path, HONEST, records())
    details = result.details
    assert result.score.mean == 0.6
    assert (details["lr"], details["epoch"], details["beside_mean"]) == (0.01, 3, 0.9)
    assert details["score"] == summary.CHOICE_RULES["held_out"]
    assert scored_outcomes(records(), HONEST).tolist() == rows(6)[0].astype(float).tolist()
    assert scored_outcomes(records(), PUBLISHED).tolist() == rows(9)[0].astype(float).tolist()


def test_without_a_held_out_part_a_result_is_what_it_was(tmp_path: Path) -> None:
    plain = ProbeSpec(image=SIZE, epochs=3)
    result = write(tmp_path, plain, records(held_out=False))
    names = ["score", "lr", "epoch"]
    names += [f"{kind}@{lr}" for lr in ("0.1", "0.01", "0.001") for kind in ("last", "best")]
    assert list(result.details) == names
    assert digest_records(records(held_out=False)) != digest_records(records())


@pytest.mark.parametrize("held_out", [True, False])
def test_records_come_back_equal(tmp_path: Path, held_out: bool) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_records(path, records(held_out))
    back = parquet.read_probe(path, 10, 3)
    assert (back.held_out is None) == (not held_out)
    assert digest_records(back) == digest_records(records(held_out))


@pytest.mark.parametrize(
    ("spec", "held_out"), [(PUBLISHED, False), (ProbeSpec(image=SIZE, epochs=3), True)]
)
def test_records_hold_what_the_spec_says(tmp_path: Path, spec: ProbeSpec, held_out: bool) -> None:
    write(tmp_path, spec, records(held_out))
    with pytest.raises(ValidationFailed, match="other choices of the rate"):
        read(tmp_path)


def test_neighbours_are_written_and_read(tmp_path: Path) -> None:
    block = ImageRecords(rows(7)[0])
    result = write(tmp_path, NEIGHBOURS, block)
    assert (str(result.task), result.score.mean, result.score.n) == ("folder-blobs:knn", 0.7, 10)
    assert result.details == {}
    assert read(tmp_path) == [result]
    (file,) = tmp_path.rglob("knn*.json")
    for reader in (episode_records, probe_records):
        with pytest.raises(UsageError):
            reader(file)
    other = ImageRecords(rows(8)[0])
    parquet.write_records(file.with_suffix(".parquet"), other)
    with pytest.raises(ValidationFailed, match=r"\[records-digest\]"):
        read(tmp_path)
    data = json.loads(file.read_text())
    file.write_text(json.dumps(data | {"records_digest": digest_records(other)}))
    with pytest.raises(ValidationFailed, match=r"\[score\]"):
        read(tmp_path)


def test_both_rules_are_rows_of_the_table_with_the_source_accuracy(tmp_path: Path) -> None:
    results = [write(tmp_path, PUBLISHED, records()), write(tmp_path, HONEST, records())]
    results.append(write(tmp_path, NEIGHBOURS, ImageRecords(rows(7)[0])))
    table = build_table(results)
    shown = {row[0]: row[1].split()[0] for row in table.rows}
    assert table.title.startswith("results: 32px")
    assert shown == {
        "folder-blobs:knn": "70.00",
        "folder-blobs:probe": "90.00",
        "folder-blobs:probe lr held out": "60.00",
        "folder-blobs:probe lr-held-out": "60.00",
        "folder-blobs:probe lr-held-out best on test": "90.00",
        "source (in-domain)": "25.00",
    }
    text = table.note
    assert "probe: best learning rate and epoch, picked on the test images as SEAL" in text
    assert "lr held out: learning rate picked on a held-out part of train, last epoch" in text
    assert "knn: k nearest training images vote" in text
    assert "±" in table.rows[2][1]
    table = build_table([write(tmp_path, ProbeSpec(image=SIZE, epochs=3), records(False))])
    assert [row[0] for row in table.rows] == ["folder-blobs:probe 32px", "source (in-domain)"]
    assert "held" not in table.note
