"""Parquet files that unpack to far more than they say are refused before anything is unpacked."""

import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import fakes

from fsbench.core.errors import ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.results import parquet

SPEC = fakes.episodic(n_episodes=6)
FUZZ = settings(max_examples=100, deadline=None, derandomize=True,
                suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip


def some() -> EpisodeRecords:
    return fakes.episodes(SPEC, fakes.dataset(), range(6), 0.5)


def read(path: Path) -> EpisodeRecords:
    return parquet.read_episodes(path, 5, 5)


def table(rows: int, **columns: pa.Array) -> pa.Table:
    """Episodes of zeros, but for the columns given."""
    schema = parquet.episode_schema(5, 5)
    zero: dict[str, pa.Array] = {
        "index": pa.array(np.arange(rows), pa.int32()),
        "class_ids": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * 5), pa.int32()), 5),
        "correct": pa.array([bytes(4)] * rows, pa.binary(4)),
        "collapsed": pa.array([False] * rows),
        "finite": pa.array([True] * rows),
    }
    return pa.Table.from_arrays([(zero | columns)[f.name] for f in schema], schema=schema)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "none", "gzip"])
def test_the_walk_sees_every_value_of_every_page(codec: str, version: str, tmp_path: Path) -> None:
    """Against pyarrow's own counts, over many pages and row groups, with and without dictionary."""
    path = tmp_path / "a.parquet"
    for dictionary in (True, False):
        small = {"data_page_size": 256, "row_group_size": 400, "use_dictionary": dictionary}
        pq.write_table(table(900), path, compression=codec, data_page_version=version, **small)
        data, meta = path.read_bytes(), pq.ParquetFile(path).metadata
        for i in range(meta.num_row_groups):
            for j in range(meta.num_columns):
                column = meta.row_group(i).column(j)
                starts = (column.dictionary_page_offset, column.data_page_offset)
                start = min(offset for offset in starts if offset is not None)
                values = list(parquet.read_pages(data, start, start + column.total_compressed_size))
                assert sum(page.values for page in values) == column.num_values
                assert sum(page.size for page in values) <= column.total_uncompressed_size
        assert len(read(path).index) == 900


def zigzag(n: int) -> bytes:
    """A signed number as Thrift's compact protocol writes it."""
    left, code = n << 1 if n >= 0 else (-n << 1) - 1, b""
    while left > 127:
        left, code = left >> 7, code + bytes([left & 127 | 128])
    return code + bytes([left])


def header(kind: int = 0, unpacked: int = 4, packed: int = 4, values: int = 1) -> bytes:
    """A page header: i32 fields 1 to 3, then the struct of field 5 with i32 field 1."""
    sizes = b"".join(b"\x15" + zigzag(n) for n in (kind, unpacked, packed))
    return sizes + b"\x2c\x15" + zigzag(values) + b"\0\0"


def test_headers_written_by_hand() -> None:
    data = header(unpacked=300, values=77) + b"page" + header(kind=2) + b"page"
    assert list(parquet.read_pages(data, 0, len(data))) == [(300, 77), (4, 0)]


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (header(packed=5) + b"page", "leaves its column"),
        (header(kind=1) + b"page", "unknown kind"),
        (header(unpacked=-1) + b"page", "lacks a size"),
        (header(packed=-20) + b"page", "lacks a size"),
        (header(values=-1) + b"page", "lacks a size"),
        (header()[:-5] + b"\0page", "lacks a size"),
        (b"\x1c" * 5000, "nests too deep"),
        (b"\x19" * 5000, "nests too deep"),
        (b"\x1d\0", "unknown type"),
        (b"\x15" + b"\xff" * 5000, "endless number"),
        (b"\x19\xf1" + b"\xff" * 8 + b"\x01", "cut off"),
        (header()[:3], "cut off"),
    ],
)
def test_headers_that_lie_are_refused(data: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        list(parquet.read_pages(data, 0, len(data)))


def test_a_page_ends_where_its_column_does() -> None:
    """What stands behind the column belongs to another one."""
    data = header(packed=8) + b"pagepage"
    with pytest.raises(ValueError, match="leaves its column"):
        list(parquet.read_pages(data, 0, len(data) - 4))


def peak(path: Path) -> int:
    """Bytes that a refusal takes at most, of Python and of Arrow."""
    before = pa.default_memory_pool().bytes_allocated()
    tracemalloc.start()
    with pytest.raises(ValidationFailed, match=r"a\.parquet"):
        read(path)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return used + pa.default_memory_pool().bytes_allocated() - before


def test_a_small_file_of_many_wide_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value in the dictionary, two hundred thousand rows that point to it: 4 MB from 2 kB."""
    path = tmp_path / "a.parquet"
    pq.write_table(table(200_000), path, compression="zstd")
    monkeypatch.setattr(parquet, "MAX_BYTES", 4_000_000)
    assert path.stat().st_size < 1_000_000
    assert peak(path) < 3_000_000


def test_a_page_that_unpacks_to_more_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(2000), path, compression="zstd", use_dictionary=False)
    read(path)
    sizes = sum(p.size for p in parquet.read_pages(*whole(path, 1)))
    monkeypatch.setattr(parquet, "MAX_BYTES", sizes)
    measured = parquet.measure_row
    monkeypatch.setattr(parquet, "measure_row", lambda schema: measured(schema)._replace(size=0))
    with pytest.raises(ValidationFailed, match="unpacks to more than"):
        read(path)


def test_an_empty_value_in_a_list_is_refused(tmp_path: Path) -> None:
    """A field may not be empty by its schema, what is in its list may."""
    path = tmp_path / "a.parquet"
    ids = pa.array([[0, 1, 2, 3, None]] * 6, pa.list_(pa.int32(), 5))
    pq.write_table(table(6, class_ids=ids), path)
    with pytest.raises(ValidationFailed, match="holds empty values"):
        read(path)


def whole(path: Path, column: int) -> tuple[bytes, int, int]:
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(column)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return path.read_bytes(), start, start + chunk.total_compressed_size


def test_a_row_that_holds_a_run_of_many_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists are of a fixed length by schema only: the pages may hold any number."""
    path = tmp_path / "a.parquet"
    fixed = parquet.episode_schema(5, 5)
    free = pa.field("class_ids", pa.list_(pa.field("element", pa.int32())), nullable=False)
    loose = pa.schema([free if f.name == "class_ids" else f for f in fixed])
    values = pa.array([[0] * 100_000], loose.field("class_ids").type)
    columns = [values if f.name == "class_ids" else table(1).column(f.name).chunk(0) for f in loose]
    meta = pq.read_metadata(stored(tmp_path)).metadata[b"ARROW:schema"]
    with pq.ParquetWriter(path, loose, store_schema=False) as out:
        out.write_table(pa.Table.from_arrays(columns, schema=loose))
        out.add_key_value_metadata({"ARROW:schema": meta.decode()})
    assert path.stat().st_size < 5000
    with pytest.raises(ValidationFailed, match="other values than 1 rows"):
        read(path)


def stored(folder: Path) -> Path:
    parquet.write_records(folder / "b.parquet", some())
    return folder / "b.parquet"


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(12), path, row_group_size=1)
    assert len(read(path).index) == 12
    monkeypatch.setattr(parquet, "MAX_GROUPS", 11)
    with pytest.raises(ValidationFailed, match="12 groups"):
        read(path)


def test_pages_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(900), path, data_page_size=16, write_batch_size=8)
    monkeypatch.setattr(parquet, "MAX_PAGES", 3)
    with pytest.raises(ValidationFailed, match="more than 3 pages"):
        read(path)
    monkeypatch.setattr(parquet, "MAX_BYTES", 100)
    with pytest.raises(ValidationFailed, match="larger than 100 bytes"):
        read(path)


def damaged(path: Path, at: int, byte: int, cut: int) -> None:
    raw = bytearray(stored(path).read_bytes())
    raw[at % len(raw)] ^= byte
    (path / "a.parquet").write_bytes(raw[: len(raw) - cut])


DAMAGE = (st.integers(0, 2**16), st.integers(1, 255), st.sampled_from([0, 0, 0, 1, 40]))


@FUZZ
@given(*DAMAGE)
def test_damaged_bytes_give_records_or_a_refusal(
    tmp_path: Path, at: int, byte: int, cut: int
) -> None:
    damaged(tmp_path, at, byte, cut)
    with suppress(ValidationFailed):
        assert read(tmp_path / "a.parquet").correct.shape == (6, 5, 5)


@pytest.mark.slow
@settings(FUZZ, max_examples=5000)
@given(*DAMAGE)
def test_damaged_bytes_at_length(tmp_path: Path, at: int, byte: int, cut: int) -> None:
    test_damaged_bytes_give_records_or_a_refusal.hypothesis.inner_test(tmp_path, at, byte, cut)  # type: ignore[attr-defined]


@settings(FUZZ, max_examples=300)
@given(st.binary(max_size=200), st.integers(0, 50))
def test_any_bytes_as_headers(data: bytes, start: int) -> None:
    with suppress(ValueError):
        list(parquet.read_pages(data, start, len(data)))
