"""The file of outcomes: back bit for bit, and nothing in it is believed."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support import fakes

from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, Records, columns
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, ImageSpec, KnnSpec, Spec
from fsbench.results import outcomes
from fsbench.results.outcomes import decode, digest_records, encode

SIZE = ImageSpec(input_size=32)
Cell = tuple[Spec, int, Records]
"""Spec, number of outcomes, and records of a result."""


@st.composite
def episodes(draw: st.DrawFn) -> Cell:
    n, way, query = draw(st.integers(1, 9)), draw(st.integers(2, 6)), draw(st.integers(1, 17))
    bits = arrays(np.bool_, n)
    right = draw(arrays(np.int64, (n, way), elements=st.integers(0, 2**31 - 2)))
    dense = (right, right + 1) if draw(st.booleans()) else ()
    index = draw(arrays(np.int64, n, elements=st.integers(0, 2**31 - 1)))
    correct = draw(arrays(np.bool_, (n, way, query)))
    spec = EpisodicSpec(episode=EpisodeSpec(n_way=way, n_query=query), image=SIZE)
    records = EpisodeRecords(index, correct, draw(bits), draw(bits), *dense)
    return spec, n, fakes.predict(records) if draw(st.booleans()) else records


@st.composite
def probes(draw: st.DrawFn) -> Cell:
    n, epochs, images = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 40))
    rates, bits = arrays(np.float64, n, elements=st.floats(0, 1)), arrays(np.bool_, (n, images))
    curves = arrays(np.float64, (n, epochs), elements=st.floats(0, 1))
    choice = draw(st.sampled_from([(), (rates,), (st.none(), curves, bits)]))
    parts = [draw(part) for part in (rates, curves, bits, bits, *choice)]
    spec = fakes.probe().model_copy(update={"epochs": epochs})
    return spec, images, ProbeRecords(*parts)


images = arrays(np.bool_, st.integers(1, 40)).map(
    lambda right: (KnnSpec(image=SIZE), len(right), ImageRecords(right))
)


@settings(max_examples=40)
@given(st.lists(st.one_of(episodes(), probes(), images), min_size=1, max_size=6))
def test_all_kinds_of_records_in_one_file_come_back_equal(cells: list[Cell]) -> None:
    table = decode(encode([records for _, _, records in cells]))
    assert len(table) == len(cells)
    parts = table.records([(spec, n) for spec, n, _ in cells])
    for (_, _, records), back in zip(cells, parts, strict=True):
        before, after = columns(records), columns(back)
        assert type(back) is type(records)
        assert before.keys() == after.keys()
        for name, values in before.items():
            assert after[name].dtype == values.dtype
            assert np.array_equal(after[name], values)
        assert digest_records(back) == digest_records(records)


def some(dense: bool = False) -> EpisodeRecords:
    records = fakes.episodes(fakes.episodic(), fakes.dataset(), range(6), 0.6)
    counts = {"dense_correct": np.full((6, 5), 7), "dense_total": np.full((6, 5), 29)}
    return replace(fakes.predict(records), **counts) if dense else records


RIGHT = ImageRecords(np.arange(20) % 3 == 0)
PARTS: list[Records] = [some(), some(dense=True), fakes.probe_records(0.5), RIGHT]
SPECS: Sequence[Spec] = [fakes.episodic(), fakes.episodic(), fakes.probe(), KnnSpec(image=SIZE)]
COUNTS = (6, 6, 37, 20)


def read_all(content: bytes) -> list[Records]:
    """The records of PARTS, as a reader of an entry gets them."""
    table = decode(content)
    if len(table) != len(PARTS):
        raise ValueError("other results")
    return table.records(list(zip(SPECS, COUNTS, strict=True)))


def unpack(content: bytes) -> bytes:
    return bytes(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read())


def pack(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content))


def test_bits_are_packed_by_class_the_first_one_highest() -> None:
    table = pa.ipc.open_file(unpack(encode([some()]))).read_all()
    assert table.column_names == ["result", "row", "correct", "collapsed", "finite"]
    first = table.column("correct")[0].as_py()
    bits = [[byte >> (7 - k) & 1 for k in range(8)] for byte in first]
    assert bits == [[*map(int, row), 0, 0, 0] for row in some().correct[0]]


def test_lists_of_equal_length_have_no_offsets_and_the_smallest_integers() -> None:
    """A surplus is what 7 right ones of 29 have over the share of the 5 queries."""
    table = pa.ipc.open_file(unpack(encode([some(dense=True)]))).read_all()
    assert table.schema.field("correct").type == pa.list_(pa.uint8(), 5)
    assert table.schema.field("dense_total").type == pa.list_(pa.uint8(), 5)
    assert table.schema.field("dense_surplus").type == pa.list_(pa.int8(), 5)
    right = some().correct.sum(axis=-1)
    assert table["dense_surplus"].to_pylist() == (7 - right * 29 // 5).tolist()
    table = pa.ipc.open_file(unpack(encode([some()] * 9 + [fakes.probe_records(0.5)]))).read_all()
    assert table.schema.field("correct").type == pa.list_(pa.uint8(), 5), "one row lacks it"
    assert table.schema.field("curve").type == pa.list_(pa.float64()), "nearly all rows lack it"


def test_digest_is_the_stated_formula_and_sees_every_bit() -> None:
    records, expected = some(), hashlib.sha256(b"EpisodeRecords")
    for name in ("index", "correct", "collapsed", "finite"):
        values, kind = getattr(records, name), "<i8" if name == "index" else "|b1"
        expected.update(f"\n{name} {kind} {values.shape}\n".encode() + values.tobytes())
    assert digest_records(records) == expected.hexdigest()
    records.correct[3, 2, 1] ^= True
    assert digest_records(records) != expected.hexdigest()


Change = Callable[[pa.Table], pa.Table]


def put(name: str, change: Callable[[list[object]], list[object]], kind: object = None) -> Change:
    """Changes the values of a column, with its type or another one."""

    def change_table(table: pa.Table) -> pa.Table:
        column = table.column(name)
        values = pa.array(change(column.to_pylist()), kind or outcomes.column_types()[name])
        return table.set_column(table.column_names.index(name), name, values)

    return change_table


def at(row: int, value: object) -> Callable[[list[object]], list[object]]:
    return lambda values: [value if i == row else v for i, v in enumerate(values)]


FORGERIES: dict[str, tuple[Change, str]] = {
    "an unknown column": (lambda t: t.append_column("x", pa.nulls(len(t))), "columns are wrong: x"),
    "a column twice": (lambda t: t.append_column("finite", t["finite"]), "wrong: finite"),
    "no results": (lambda t: t.drop_columns(["result"]), "columns are wrong"),
    "a column is missing": (lambda t: t.drop_columns(["finite"]), "has no finite"),
    "a column of another type": (put("row", lambda v: v, pa.int64()), "columns are wrong: row"),
    "a dictionary": (
        lambda t: t.set_column(1, "row", t["row"].dictionary_encode()),
        "columns are wrong|not one batch",
    ),
    "no rows": (lambda t: t.slice(0, 0), "no rows|not one batch"),
    "unsorted results": (lambda t: t.take(list(range(len(t)))[::-1]), "not neighbours"),
    "a result more": (put("result", at(-1 % 16, 9)), "has no rows"),
    "a result without rows": (lambda t: t.slice(6), "has no rows"),
    "a row of no result": (put("result", at(3, None)), "belong to no result"),
    "a result of no episode": (put("row", at(3, None)), "belong to no result"),
    "an empty outcome": (put("correct", at(3, None)), "values of a result are empty"),
    "an empty flag": (put("finite", at(3, None)), "values of a result are empty"),
    "an empty count": (put("dense_total", at(7, [1, None, 1, 1, 1])), "a list holds empty"),
    "an empty count among lists of equal length": (
        put("dense_total", at(7, [1, None, 1, 1, 1]), pa.list_(pa.int16(), 5)), "a list holds empty"
    ),
    "counts of another type": (
        put("dense_total", lambda v: v, pa.list_(pa.int64(), 5)), "columns are wrong: dense_total"
    ),
    "an outcome too short": (put("correct", at(3, b"abc")), "unequal width"),
    "all outcomes too long": (
        put("correct", lambda v: [x and [*x, 0] for x in v]), r"outcomes a row, expected \(5, 5\)"
    ),
    "unused bits": (put("correct", at(3, b"\0\0\0\0\1")), "unused bits"),
    "counts of four classes": (
        put("dense_surplus", lambda v: [x and x[:4] for x in v]), "not counted by class"
    ),
    "more right than there are": (
        put("dense_surplus", lambda v: [x and [30] * 5 for x in v]), "more dense queries"
    ),
    "none right of none": (
        put("dense_total", lambda v: [x and [0] * 5 for x in v]), "than are there, or none"
    ),
    "a class that is not there": (
        put("predicted", at(7, [5] * 25)), "the predictions are not of 5 x 5 queries"
    ),
    "predictions of fewer queries": (
        put("predicted", lambda v: [x and x[:24] for x in v]), "the predictions are not of 5 x 5"
    ),
    "predictions that contradict the outcomes": (
        put("predicted", lambda v: [x and [0] * 25 for x in v]), "right with another class"
    ),
    "a curve cut short": (put("curve", lambda v: [x and x[:2] for x in v]), "not have 3 epochs"),
    "one kind of counts": (lambda t: t.drop_columns(["dense_total"]), "not counted by class"),
    "a second row of a probe": (
        lambda t: pa.concat_tables([t, t.slice(len(t) - 1)]).combine_chunks(), "more than one row"
    ),
}  # fmt: skip


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "text": lambda _: b"no outcomes",
    "cut": lambda content: content[:-9],
    "half": lambda content: content[: len(content) // 2],
    "not compressed": unpack,
    "an end cut off inside": lambda content: pack(unpack(content)[:-9]),
    "no Arrow inside": lambda _: pack(b"ARROW1" * 100),
    "another frame behind": lambda content: content + pack(b"more"),
}


@pytest.mark.parametrize("name", [*FORGERIES, *BROKEN])
def test_another_table_or_a_damaged_file_is_refused(name: str) -> None:
    if name in BROKEN:
        content, message = BROKEN[name](encode(PARTS)), "no readable Arrow|not one batch"
    else:
        change, message = FORGERIES[name]
        table = change(pa.ipc.open_file(unpack(encode(PARTS))).read_all())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        content = pack(sink.getvalue())
    with pytest.raises(ValueError, match=message):
        read_all(content)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
    st.floats(0, 1),
)
def test_bytes_of_any_kind_are_read_or_refused(
    edits: list[tuple[float, int]], length: float
) -> None:
    content = bytearray(unpack(encode(PARTS)))
    for place, byte in edits:
        content[int(place * len(content))] = byte
    for changed in (bytes(content), bytes(content[: int(length * len(content))])):
        with suppress(ValueError):
            read_all(pack(changed))


def zeros(n: int) -> pa.RecordBatch:
    return pa.record_batch(
        {"result": pa.array([0] * n, pa.uint16()), "row": pa.array([0] * n, pa.int32())}
    )


def ipc(batches: list[pa.RecordBatch], compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zstd": (lambda: pack(bytes(300_000)), "unpacks to more than 200000 bytes"),
    "frames": (lambda: pack(bytes(150_000)) * 2, "unpacks to more than 200000 bytes"),
    "zstd in Arrow": (lambda: pack(ipc([zeros(10**6)], "zstd")), "not one batch of plain"),
    "lz4 in Arrow": (lambda: pack(ipc([zeros(10**6)], "lz4")), "not one batch of plain"),
    "batches": (lambda: pack(ipc([zeros(9)] * 2)), "not one batch of plain"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_before_it_unpacks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow takes no more memory than the bound, and compressed columns are never unpacked."""
    make, message = BOMBS[kind]
    content = make()
    monkeypatch.setattr(outcomes, "MAX_BYTES", 200_000)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(ValueError, match=message):
            decode(content)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 2 * 200_000 + 200_000


def test_columns_that_share_their_bytes_are_refused() -> None:
    """A file of few bytes could else state many large columns."""
    content = unpack(encode([fakes.probe_records(0.5, n_test=80_000)]))
    file = pa.py_buffer(content)
    batch = pa.ipc.open_file(file).get_batch(0)
    body = batch.column("result").buffers()[1].address
    last, best = (batch.column(name).buffers()[2] for name in ("last", "best"))
    length = best.address + best.size - body
    edits = {best.address - body: last.address - body, length: length - best.size}
    end = best.address - file.address
    content = content[:end] + content[end + best.size :]
    for before, after in edits.items():
        assert before.to_bytes(8, "little") in content
        content = content.replace(before.to_bytes(8, "little"), after.to_bytes(8, "little"))
    with pytest.raises(ValueError, match="share bytes"):
        decode(pack(content))
