"""Outcomes on disk: one Arrow table for all results of an entry, compressed as a whole.

A row is an episode, a learning rate of a linear probe, or a probe without training:

    result                 uint16      place of the result in entry.json; its rows are neighbours
    row                    int32       number of the episode, or of the learning rate
    correct                binary      right or wrong, numpy.packbits over the queries of each
                                       class, one class after the other, or over test images
    collapsed, finite      bool        of an episode
    dense_correct, _total  list        of an episode, by class, where all possible queries count
    lr, curve, ...         see fsbench.core.records.ProbeRecords

Classes and images follow from the number of an episode and the spec, so they are not stored.
Measured on five networks x 18 tasks x 200 episodes, bytes a row and time to read: Parquet 14.9 and
3.0 ms, Arrow 24.3 and .02 ms, Arrow in gzip 13.4 and 2.3 ms, in zstd 13.4 and .6 ms. The last one
is a third of the committed bytes, and a stream that is decompressed as a whole is easily bounded.
"""

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import ValidationFailed
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, Records, columns
from fsbench.core.specs import EpisodicSpec, ProbeSpec, Spec

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX = ".arrow.zst"
MAX_FILE = 128 * 2**20
MAX_BYTES = 256 * 2**20
"""Bounds of a file and of what it unpacks to; 600 episodes of 75 queries take 8 kB and 40 kB."""
FAST, SMALL = 3, 19
"""Levels of compression while work runs, and of entries of a board, which are a third smaller."""
FIX = "restore the file from where it was computed, or delete its folder and evaluate again"

KINDS = {
    "correct": "bits",
    "collapsed": "bool",
    "finite": "bool",
    "dense_correct": "int32s",
    "dense_total": "int32s",
    "lr": "float64",
    "curve": "float64s",
    "last": "bits",
    "best": "bits",
    "held_out": "float64",
    "held_out_curve": "float64s",
    "chosen": "bits",
}
"""Column -> type; bits are packed, an s marks a list."""
REQUIRED = {
    EpisodeRecords: ("correct", "collapsed", "finite"),
    ProbeRecords: ("lr", "curve", "last", "best"),
    ImageRecords: ("correct",),
}


def arrow_type(kind: str) -> Any:
    """Return the Arrow type of a kind of column."""
    import pyarrow as pa

    if kind == "bits":
        return pa.binary()
    scalars: dict[str, Any] = {"bool": pa.bool_(), "int32": pa.int32(), "float64": pa.float64()}
    return pa.list_(scalars[kind[:-1]]) if kind.endswith("s") else scalars[kind]


def digest_records(records: Records) -> str:
    """Return the sha-256 over names, types, shapes and values: the file format has no part."""
    digest = hashlib.sha256(type(records).__name__.encode())
    for name, column in columns(records).items():
        values = np.ascontiguousarray(column)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.reshape(-1).data)
    return digest.hexdigest()


def encode(parts: Sequence[Records], level: int = FAST) -> bytes:
    """Return the content of a file with the records of results 0, 1, ...

    Raises ValidationFailed if no reader would take it.
    """
    import pyarrow as pa

    tables = [make_table(i, records) for i, records in enumerate(parts)]
    fields = {field.name: field for table in tables for field in table.schema}
    order = [name for name in ("result", "row", *KINDS) if name in fields]
    schema = pa.schema([fields[name] for name in order])
    table = pa.concat_tables(tables, promote_options="default").select(order).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(table.cast(schema))
    data = sink.getvalue()
    content = bytes(pa.Codec("zstd", compression_level=level).compress(data))
    require_size("the outcomes, unpacked,", data.size, MAX_BYTES)
    require_size("the file of outcomes", len(content), MAX_FILE)
    return content


def require_size(what: str, size: int, most: int) -> None:
    """Raise ValidationFailed for more bytes than are read."""
    if size > most:
        raise ValidationFailed(
            f"{what} would be larger than {most} bytes", fix="use several folders: give another -o"
        )


def make_table(result: int, records: Records) -> "pa.Table":
    """Return the rows of one result."""
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name, values in columns(records).items():
        if name == "index":
            continue
        if isinstance(records, ImageRecords):
            values = values[None]
        arrays[name] = to_arrow(values, KINDS[name])
    rows = len(next(iter(arrays.values())))
    index = records.index if isinstance(records, EpisodeRecords) else np.arange(rows)
    heads = {
        "result": pa.array(np.full(rows, result, np.uint16)),
        "row": pa.array(index.astype(np.int32)),
    }
    return pa.table(heads | arrays)


def to_arrow(values: NDArray[Any], kind: str) -> Any:
    """Convert a column (rows, ...) to an Arrow array."""
    import pyarrow as pa

    if kind == "bits":
        bits = np.packbits(values, axis=-1).reshape(len(values), -1)
        ends = np.arange(len(bits) + 1, dtype=np.int32) * bits.shape[1]
        buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(bits.tobytes())]
        return pa.Array.from_buffers(pa.binary(), len(bits), buffers)
    if kind.endswith("s"):
        ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
        flat = pa.array(values.reshape(-1), type=arrow_type(kind).value_type)
        return pa.ListArray.from_arrays(pa.array(ends), flat)
    return pa.array(values, type=arrow_type(kind))


@dataclass(frozen=True, eq=False)
class ArrowColumn:
    """A column in memory: values, and where those of each row begin, None for one per row."""

    values: NDArray[Any]
    starts: NDArray[np.int32] | NDArray[np.int64] | None
    nulls: NDArray[np.bool_] | None

    def rows(self, low: int, high: int) -> NDArray[Any] | None:
        """Return the values (rows,) or (rows, width) of neighbouring rows; None if empty.

        Raises ValueError if some are empty, or of unequal width.
        """
        if self.nulls is not None and (empty := self.nulls[low:high]).any():
            if empty.all():
                return None
            raise ValueError("some of the values of a result are empty")
        if self.starts is None:
            return self.values[low:high]
        if self.matrix is not None:
            return self.matrix[low:high]
        starts = self.starts[low : high + 1]
        width = int(starts[1] - starts[0])
        if (np.diff(starts) != width).any():
            raise ValueError("the rows of a result are of unequal width")
        return self.values[starts[0] : starts[-1]].reshape(high - low, width)

    @cached_property
    def matrix(self) -> NDArray[Any] | None:
        """All values (rows, width), if all rows of the file are equally wide."""
        if self.starts is None:
            return None
        width = int(self.starts[1] - self.starts[0])
        if (np.diff(self.starts) != width).any():
            return None
        return self.values[self.starts[0] : self.starts[-1]].reshape(-1, width)

    def bits(self, low: int, high: int, shape: tuple[int, ...]) -> NDArray[np.uint8] | None:
        """Return packed bits (rows, ..., bytes) of this shape, of neighbouring rows; None if empty.

        Raises ValueError if the rows hold another number of them, or rubbish.
        """
        packed, size = self.rows(low, high), -(-shape[-1] // 8)
        if packed is None:
            return None
        if packed.shape[1] != math.prod(shape[:-1]) * size:
            held = 8 * packed.shape[1]
            raise ValueError(f"a result holds {held} outcomes a row, expected {shape}")
        packed = packed.reshape(high - low, *shape[:-1], size)
        if (packed[..., -1] & np.uint8(2 ** (8 * size - shape[-1]) - 1)).any():
            raise ValueError("unused bits of the outcomes are set")
        return packed


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """The decoded file: rows of results, in order."""

    columns: Mapping[str, ArrowColumn]

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Where the rows of result i begin, and where the last one ends."""
        result = self.columns["result"].values
        if result.size == 0 or (np.diff(result.astype(np.int64)) < 0).any():
            raise ValueError("the rows of results are not neighbours")
        return np.searchsorted(result, np.arange(int(result[-1]) + 2))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def records(self, i: int, spec: Spec, n: int) -> Records:
        """Return the records of result i, of n episodes or test images. Raises ValueError."""
        low, high = int(self.bounds[i]), int(self.bounds[i + 1])
        if high == low:
            raise ValueError("a result has no rows")
        kind: type[Records] = ImageRecords
        shapes: dict[str, tuple[int, ...]] = {"correct": (n,)}
        if isinstance(spec, EpisodicSpec):
            kind = EpisodeRecords
            shapes = {"correct": (spec.episode.n_way, spec.episode.n_query)}
        elif isinstance(spec, ProbeSpec):
            kind, shapes = ProbeRecords, dict.fromkeys(("last", "best", "chosen"), (n,))
        arrays: dict[str, NDArray[Any]] = {}
        for name in kind.__dataclass_fields__.keys() & self.columns.keys():
            column, shape = self.columns[name], shapes.get(name)
            values = column.rows(low, high) if shape is None else column.bits(low, high, shape)
            if values is not None:
                arrays[name] = values
        if missing := [name for name in REQUIRED[kind] if name not in arrays]:
            raise ValueError(f"a result has no {', '.join(missing)}")
        if isinstance(spec, EpisodicSpec):
            index = self.columns["row"].values[low:high].astype(np.int64)
            return restore_episodes(index, arrays, spec)
        for name in shapes.keys() & arrays.keys():
            arrays[name] = np.unpackbits(arrays[name], axis=-1, count=n).view(np.bool_)
        return restore_probe(arrays, spec)


def restore_episodes(
    index: NDArray[np.int64], arrays: dict[str, NDArray[Any]], spec: EpisodicSpec
) -> EpisodeRecords:
    """Return the records of episodes. Raises ValueError for dense queries of another shape."""
    n_way, n_query = spec.episode.n_way, spec.episode.n_query
    dense = {n: v.astype(np.int64) for n, v in arrays.items() if n.startswith("dense")}
    if len(dense) == 1 or any(v.shape != (index.size, n_way) for v in dense.values()):
        raise ValueError("the dense queries of a result are not counted by class")
    if dense and not is_share(dense["dense_correct"], dense["dense_total"]):
        raise ValueError(
            "more dense queries of a class are right than there are, or none are there"
        )
    packed = arrays.pop("correct")
    return EpisodeRecords.stored(packed, n_query, index=index, **(arrays | dense))


def is_share(part: NDArray[np.int64], whole: NDArray[np.int64]) -> bool:
    return bool(((part >= 0) & (part <= whole) & (whole > 0)).all())


def restore_probe(arrays: dict[str, NDArray[Any]], spec: Spec) -> ProbeRecords | ImageRecords:
    """Return the records of a probe. Raises ValueError for other rows or epochs than it has."""
    if isinstance(spec, ProbeSpec):
        curves = {arrays[name].shape[1] for name in arrays if name.endswith("curve")}
        if curves != {spec.epochs}:
            raise ValueError(f"a curve of a probe does not have {spec.epochs} epochs")
        return ProbeRecords(**arrays)
    if len(arrays["correct"]) > 1:
        raise ValueError("a probe without training has more than one row")
    return ImageRecords(arrays["correct"][0])


def decode(content: bytes) -> OutcomeTable:
    """Return the table in a file. Raises ValueError for other, damaged or too large content."""
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
        require_plain(data)
        reader = pa.ipc.open_file(pa.BufferReader(data))
        require_columns(reader.schema)
        batch = reader.get_batch(0)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, struct.error) as error:
        raise ValueError(f"it is no readable Arrow file: {error}") from error
    if batch.nbytes > len(data):
        raise ValueError("its columns share bytes")
    if not batch.num_rows or batch.column("result").null_count or batch.column("row").null_count:
        raise ValueError("it has no rows, or some that belong to no result")
    return OutcomeTable({name: to_column(batch.column(name)) for name in batch.schema.names})


def require_columns(schema: "pa.Schema") -> None:
    """Raise ValueError unless each column is known, of its type and there once."""
    import pyarrow as pa

    expected: dict[str, Any] = {"result": pa.uint16(), "row": pa.int32()}
    expected |= {name: arrow_type(kind) for name, kind in KINDS.items()}
    wrong = [field.name for field in schema if expected.pop(field.name, None) != field.type]
    if wrong or {"result", "row"} & expected.keys():
        raise ValueError(f"its columns are wrong: {', '.join(wrong)[:200] or 'too few'}")


def require_plain(data: bytes) -> None:
    """Raise ValueError unless an Arrow file is one batch of rows whose columns are not compressed.

    A compressed column says itself how large it becomes, without a bound. The layout is that of
    https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format; pyarrow refuses files whose
    offsets lead astray.
    """

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(f"<{kind}", data, at)[0])

    def find(table: int, field: int) -> int:
        """Return where a field of a flatbuffer begins, 0 if it is left out."""
        layout = table - number("i", table)
        offset = number("H", layout + 4 + 2 * field) if 4 + 2 * field < number("H", layout) else 0
        return table + offset if offset else 0

    def follow(at: int) -> int:
        return at + number("I", at)

    start = len(data) - len(b"ARROW1") - 4
    footer = follow(start - number("i", start))
    dictionaries, batches = find(footer, 2), find(footer, 3)
    if (dictionaries and number("I", follow(dictionaries))) or not batches:
        raise ValueError("it is not one batch of plain columns")
    block = follow(batches) + 4
    message = number("q", block) + 8
    is_one = number("I", block - 4) == 1 and number("i", message - 8) == -1
    if not is_one or find(follow(find(follow(message), 2)), 3):
        raise ValueError("it is not one batch of plain columns")


def to_column(array: Any) -> ArrowColumn:
    """Convert an Arrow array; its own method imports pandas, which takes longer than a board."""
    import pyarrow as pa

    nulls = None
    if array.null_count:
        nulls = ~to_column(array.is_valid()).values
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_list(kind):
        starts = np.frombuffer(array.buffers()[1], np.int32)
        starts = starts[array.offset : array.offset + len(array) + 1]
        if pa.types.is_binary(kind):
            return ArrowColumn(np.frombuffer(array.buffers()[2] or b"", np.uint8), starts, nulls)
        if array.values.null_count:
            raise ValueError("a list holds empty values")
        return ArrowColumn(np.from_dlpack(array.values), starts, nulls)
    if pa.types.is_boolean(kind):
        packed = np.frombuffer(array.buffers()[1], np.uint8)
        end = array.offset + len(array)
        bits = np.unpackbits(packed, count=end, bitorder="little").view(np.bool_)
        return ArrowColumn(bits[array.offset :], None, nulls)
    filled = array if nulls is None else array.fill_null(0)
    return ArrowColumn(np.from_dlpack(filled), None, nulls)
