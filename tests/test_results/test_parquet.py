"""Outcomes on disk and back: bit for bit, with a digest that knows no writer."""

import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support import fakes

from fsbench.core.errors import ValidationFailed
from fsbench.core.records import EpisodeRecords, ProbeRecords, columns
from fsbench.results import parquet
from fsbench.results.summary import Records, digest_records


@st.composite
def episode_records(draw: st.DrawFn) -> EpisodeRecords:
    n, way, query = draw(st.integers(1, 9)), draw(st.integers(2, 6)), draw(st.integers(1, 17))
    bits = arrays.arrays(np.bool_, n)
    counts = arrays.arrays(np.int64, (n, way), elements=st.integers(0, 2**31 - 2))
    right = draw(counts)
    dense = (right, right + 1) if draw(st.booleans()) else ()
    return EpisodeRecords(
        draw(arrays.arrays(np.int64, n, elements=st.integers(0, 2**31 - 1))),
        draw(arrays.arrays(np.int64, (n, way), elements=st.integers(0, 999))),
        draw(arrays.arrays(np.bool_, (n, way, query))),
        draw(bits),
        draw(bits),
        *dense,
    )


@st.composite
def probe_records(draw: st.DrawFn) -> ProbeRecords:
    n, epochs, images = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 40))
    numbers = st.floats(0, 1)
    return ProbeRecords(
        draw(arrays.arrays(np.float64, n, elements=numbers)),
        draw(arrays.arrays(np.float64, (n, epochs), elements=numbers)),
        draw(arrays.arrays(np.bool_, (n, images))),
        draw(arrays.arrays(np.bool_, (n, images))),
    )


def same(a: Records, b: Records) -> bool:
    x, y = columns(a), columns(b)
    equal = (np.array_equal(x[n], y[n]) and x[n].dtype == y[n].dtype for n in x.keys() & y.keys())
    return x.keys() == y.keys() and all(equal)


@settings(max_examples=40, deadline=None)
@given(episode_records())
def test_episodes_come_back_equal(records: EpisodeRecords) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        parquet.write_records(path, records)
        back = parquet.read_episodes(path, *records.correct.shape[1:])
    assert same(records, back)
    assert digest_records(records) == digest_records(back)


@settings(max_examples=40, deadline=None)
@given(probe_records())
def test_probes_come_back_equal(records: ProbeRecords) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        parquet.write_records(path, records)
        back = parquet.read_probe(path, records.last.shape[1], records.curve.shape[1])
    assert same(records, back)
    assert digest_records(records) == digest_records(back)


def some() -> EpisodeRecords:
    return fakes.episodes(fakes.episodic(), fakes.dataset(), range(6), 0.6)


def test_bits_are_packed_row_major_big_endian(tmp_path: Path) -> None:
    records = some()
    parquet.write_records(tmp_path / "a.parquet", records)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["index", "class_ids", "correct", "collapsed", "finite"]
    first = table.column("correct")[0].as_py()
    bits = [byte >> (7 - k) & 1 for byte in first for k in range(8)][:25]
    assert bits == records.correct[0].reshape(-1).astype(int).tolist()
    assert len(first) == 4


def test_dense_outcomes_are_counts_a_class(tmp_path: Path) -> None:
    records = replace(some(), dense_correct=np.full((6, 5), 7), dense_total=np.full((6, 5), 29))
    parquet.write_records(tmp_path / "a.parquet", records)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names[5:] == ["dense_correct", "dense_total"]
    assert table.column("dense_total")[3].as_py() == [29] * 5
    assert digest_records(records) != digest_records(some())
    rewrite(tmp_path / "a.parquet", lambda t: t.drop_columns(["dense_total"]))
    with pytest.raises(ValidationFailed, match="has columns"):
        parquet.read_episodes(tmp_path / "a.parquet", 5, 5)


def test_digest_is_the_stated_formula() -> None:
    records = some()
    text = hashlib.sha256(b"EpisodeRecords")
    for name, kind in (("index", "<i8"), ("class_ids", "<i8"), ("correct", "|b1")):
        values = getattr(records, name)
        text.update(f"\n{name} {kind} {values.shape}\n".encode() + values.tobytes())
    for name in ("collapsed", "finite"):
        text.update(f"\n{name} |b1 (6,)\n".encode() + getattr(records, name).tobytes())
    assert digest_records(records) == text.hexdigest()


def test_digest_sees_every_bit() -> None:
    records = some()
    before = digest_records(records)
    records.correct[3, 2, 1] ^= True
    assert digest_records(records) != before


def rewrite(path: Path, change: object) -> None:
    table = change(pq.read_table(path))  # type: ignore[operator]
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.append_column("extra", pa.array([0] * len(t))), "has columns"),
        (lambda t: t.drop_columns(["finite"]), "has columns"),
        (lambda t: t.set_column(0, "index", pa.array(["x"] * len(t))), "has columns"),
    ],
)
def test_foreign_columns_are_refused(change: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_records(path, some())
    rewrite(path, change)
    with pytest.raises(ValidationFailed, match=message):
        parquet.read_episodes(path, 5, 5)


def test_empty_values_are_refused(tmp_path: Path) -> None:
    schema = parquet.episode_schema(5, 5)
    loose = pa.schema([pa.field(f.name, f.type) for f in schema])
    row = {"index": None, "class_ids": [0, 1, 2, 3, 4], "correct": b"abcd"}
    table = pa.Table.from_pylist([row | {"collapsed": False, "finite": True}], schema=loose)
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValidationFailed):
        parquet.read_episodes(tmp_path / "a.parquet", 5, 5)


@pytest.mark.parametrize("cut", [0, 3, 200, -4])
def test_damaged_files_are_named(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_records(path, some())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValidationFailed, match=r"a\.parquet"):
        parquet.read_episodes(path, 5, 5)


def test_a_file_of_too_many_rows_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_records(tmp_path / "a.parquet", some())
    monkeypatch.setattr(parquet, "MAX_ROWS", 5)
    with pytest.raises(ValidationFailed, match="6 rows"):
        parquet.read_episodes(tmp_path / "a.parquet", 5, 5)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match=r"b\.parquet are missing"):
        parquet.read_episodes(tmp_path / "b.parquet", 5, 5)


def test_absurd_probe_sizes_are_refused(tmp_path: Path) -> None:
    parquet.write_records(tmp_path / "a.parquet", fakes.probe_records(0.5))
    with pytest.raises(ValidationFailed, match="absurd"):
        parquet.read_probe(tmp_path / "a.parquet", 10**15, 3)
