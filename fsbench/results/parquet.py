"""Outcomes on disk: one Parquet row an episode, learning rate or image; outcomes bit-packed.

Every column has a fixed width, so a reader knows from the row count how much memory a file wants
before it decodes it. Bits are numpy.packbits (big-endian) over (class, query), or over test images.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_bytes, replacing
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, columns

Struct = dict[int, Any]
MAX_PAGES = 10_000
DATA, DATA_V2 = 0, 3
KNOWN = (DATA, 2, DATA_V2)
DEEPEST = 8
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)


class Page(NamedTuple):
    """size: bytes after decompression; values: that it holds, 0 for a dictionary."""

    size: int
    values: int


def read_pages(data: bytes, start: int, end: int) -> Iterator[Page]:
    """Yield the pages of one column chunk, which takes the bytes start..end-1 of the file.

    Raises ValueError for headers that are damaged, leave the chunk, or are too many.
    """
    for _ in range(MAX_PAGES):
        if start == end:
            return
        try:
            header, body = _struct(data, start, 0)
        except IndexError as error:
            raise ValueError("a page header is cut off") from error
        kind, unpacked, packed = (_count(header, field) for field in (1, 2, 3))
        if kind not in KNOWN or body + packed > end:
            raise ValueError("a page leaves its column or is of an unknown kind")
        details = header.get(5 if kind == DATA else 8, {})
        yield Page(unpacked, _count(details, 1) if kind in (DATA, DATA_V2) else 0)
        start = body + packed
    raise ValueError(f"a column has more than {MAX_PAGES} pages")


def _count(struct: Any, field: int) -> int:
    value = struct.get(field) if isinstance(struct, dict) else None
    if not isinstance(value, int) or value < 0:
        raise ValueError("a page header lacks a size")
    return value


def _struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    """Return the fields of a struct by id, and where it ends."""
    fields: Struct = {}
    field = 0
    while head := data[at]:
        delta, kind = head >> 4, head & 15
        at += 1
        if delta:
            field += delta
        else:
            field, at = _integer(data, at)
        if kind in INTEGERS and (raw := data[at]) < 128:  # most fields
            fields[field] = raw >> 1 ^ -(raw & 1)
            at += 1
        else:
            fields[field], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind in INTEGERS:
        return _integer(data, at)
    if kind in (BYTE, DOUBLE):
        return None, at + (1 if kind == BYTE else 8)
    if kind == BINARY:
        size, at = _varint(data, at)
        return None, at + size
    if depth >= DEEPEST or kind not in (LIST, SET, STRUCT):
        raise ValueError("a page header nests too deep or holds an unknown type")
    return _struct(data, at, depth + 1) if kind == STRUCT else _list(data, at, depth + 1)


def _list(data: bytes, at: int, depth: int) -> tuple[None, int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    for _ in range(size):
        if kind in (TRUE, FALSE):
            at += 1
        else:
            _, at = _value(data, at, kind, depth)
        data[at - 1]  # IndexError ends a list that claims more than the file holds
    return None, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number, and where it ends."""
    raw, at = _varint(data, at)
    return raw >> 1 ^ -(raw & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("a page header holds an endless number")


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fsbench.results.summary import Records

MAX_ROWS = 200_000
MAX_BYTES = 64 * 2**20
"""Bounds of a file and of what is decoded from it; 600 episodes of 75 queries take 25 kB."""
MAX_GROUPS = 1000
MAX_STRING, MAX_ITEMS = 2**20, 100_000
"""Bounds of texts (bytes) and lists in the footer."""

DENSE = ("dense_correct", "dense_total")

FIX = "restore the file from where it was computed, or evaluate the task again"


@lru_cache
def episode_schema(n_way: int, n_query: int, dense: bool = False) -> "pa.Schema":
    """Return the schema; dense: with the outcomes of all possible queries, class by class."""
    import pyarrow as pa

    counts = pa.list_(pa.int32(), n_way)
    return pa.schema(
        [
            pa.field("index", pa.int32(), nullable=False),
            pa.field("class_ids", counts, nullable=False),
            pa.field("correct", pa.binary(packed_bytes(n_way * n_query)), nullable=False),
            pa.field("collapsed", pa.bool_(), nullable=False),
            pa.field("finite", pa.bool_(), nullable=False),
            *(pa.field(name, counts, nullable=False) for name in DENSE if dense),
        ],
        metadata={"rows": "episodes", "n_way": str(n_way), "n_query": str(n_query)},
    )


@lru_cache
def probe_schema(n_test: int, epochs: int, choice: tuple[str, ...] = ()) -> "pa.Schema":
    """Return the schema; choice: the columns of the choice on the held-out part of train."""
    import pyarrow as pa

    curve, outcomes = pa.list_(pa.float64(), epochs), pa.binary(packed_bytes(n_test))
    kinds = {"lr": pa.float64(), "curve": curve, "last": outcomes, "best": outcomes}
    of_choice = {"held_out": pa.float64(), "held_out_curve": curve, "chosen": outcomes}
    kinds |= {name: of_choice[name] for name in choice}
    return pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in kinds.items()],
        metadata={"rows": "learning rates", "n_test": str(n_test)},
    )


@lru_cache
def image_schema() -> "pa.Schema":
    import pyarrow as pa

    fields = [pa.field("correct", pa.bool_(), nullable=False)]
    return pa.schema(fields, metadata={"rows": "test images"})


def packed_bytes(bits: int) -> int:
    """Return the number of bytes that contain so many bits."""
    return -(-bits // 8)


def write_records(path: Path, records: "Records") -> None:
    """Write by rename; an existing file is replaced."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(records, EpisodeRecords):
        n_way, n_query = records.correct.shape[1:]
        schema = episode_schema(n_way, n_query, records.dense_total is not None)
    elif isinstance(records, ImageRecords):
        schema = image_schema()
    else:
        n_test, epochs = records.last.shape[1], records.curve.shape[1]
        schema = probe_schema(n_test, epochs, tuple(columns(records))[4:])
    arrays = [to_arrow(getattr(records, field.name), field.type) for field in schema]
    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), temporary, compression="zstd")


def to_arrow(values: NDArray[Any], kind: Any) -> Any:
    """Convert a numpy column (rows, ...) to an Arrow array of one of the types above."""
    import pyarrow as pa

    if pa.types.is_fixed_size_binary(kind):
        bits = np.packbits(values.reshape(len(values), -1), axis=1)
        return pa.FixedSizeBinaryArray.from_buffers(
            kind, len(values), [None, pa.py_buffer(bits.tobytes())]
        )
    if pa.types.is_fixed_size_list(kind):
        flat = pa.array(values.reshape(-1), type=kind.value_type)
        return pa.FixedSizeListArray.from_arrays(flat, kind.list_size)
    return pa.array(values, type=kind)


def read_episodes(path: Path, n_way: int, n_query: int) -> EpisodeRecords:
    """Raise ValidationFailed for a file that is missing, foreign, damaged or too large."""
    raw = read_columns(path, *(episode_schema(n_way, n_query, dense) for dense in (True, False)))
    bits = np.unpackbits(raw["correct"], axis=1, count=n_way * n_query)
    if raw.keys() >= set(DENSE):
        right, total = (raw[name] for name in DENSE)
        if not ((right >= 0) & (right <= total) & (total > 0)).all():
            raise ValidationFailed(f"{path} has more dense queries right than there are", fix=FIX)
    return EpisodeRecords(
        raw["index"].astype(np.int64),
        raw["class_ids"].astype(np.int64),
        bits.view(np.bool_).reshape(-1, n_way, n_query),
        raw["collapsed"],
        raw["finite"],
        *(raw[name].astype(np.int64) for name in DENSE if name in raw),
    )


def read_probe(path: Path, n_test: int, epochs: int) -> ProbeRecords:
    """Raise ValidationFailed for a file that is missing, foreign, damaged or too large."""
    if max(n_test, epochs) > MAX_BYTES // 8:
        raise ValidationFailed(
            f"{path}: {n_test} test images and {epochs} epochs are absurd", fix=FIX
        )
    choices = ((), ("held_out",), ("held_out_curve", "chosen"))
    raw = read_columns(path, *(probe_schema(n_test, epochs, choice) for choice in choices))
    for name in {"last", "best", "chosen"} & raw.keys():
        raw[name] = np.unpackbits(raw[name], axis=1, count=n_test).view(np.bool_)
    return ProbeRecords(**raw)


def read_images(path: Path) -> ImageRecords:
    """Raise ValidationFailed for a file that is missing, foreign, damaged or too large."""
    return ImageRecords(read_columns(path, image_schema())["correct"])


def read_columns(path: Path, *schemas: "pa.Schema") -> dict[str, NDArray[Any]]:
    """Read columns as numpy arrays (rows,) or (rows, width), after a check of all headers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise ValidationFailed(f"the records {path} are missing", fix=FIX)
    try:
        data = read_bytes(path, MAX_BYTES)  # what is checked is what is read
        with pq.ParquetFile(
            pa.BufferReader(data),
            pre_buffer=False,  # no other thread
            thrift_string_size_limit=MAX_STRING,
            thrift_container_size_limit=MAX_ITEMS,
        ) as file:
            schema = check_header(path, file, schemas)
            check_pages(data, file.metadata, measure_row(schema).values)
            table = file.read(use_threads=False)
            named = zip(schema.names, table.itercolumns(), strict=True)
            arrays = {
                name: column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
                for name, column in named
            }
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValidationFailed(f"{path} is no readable Parquet file: {error}", fix=FIX) from error
    if any(map(has_nulls, arrays.values())):
        raise ValidationFailed(f"{path} holds empty values", fix=FIX)
    return {name: to_numpy(array) for name, array in arrays.items()}


def check_header(path: Path, file: "pq.ParquetFile", schemas: "Sequence[pa.Schema]") -> "pa.Schema":
    """Return the schema of the file. Raise ValidationFailed for others, and for too many rows."""
    stated = file.schema_arrow
    fits = [s for s in schemas if stated.equals(s, check_metadata=False)]
    if not fits:
        present = ", ".join(f"{f.name} {f.type}" for f in stated)
        expected = ", ".join(f"{f.name} {f.type}" for f in schemas[-1])
        raise ValidationFailed(
            f"{path} has columns ({present[:500]}), expected ({expected})", fix=FIX
        )
    meta = file.metadata
    size = meta.num_rows * measure_row(fits[0]).size
    if meta.num_rows > MAX_ROWS or size > MAX_BYTES or meta.num_row_groups > MAX_GROUPS:
        raise ValidationFailed(
            f"{path} has {meta.num_rows} rows of {size} bytes in {meta.num_row_groups} groups, "
            f"allowed are {MAX_ROWS}, {MAX_BYTES} and {MAX_GROUPS}",
            fix="split the evaluation into smaller cells",
        )
    return fits[0]


def check_pages(data: bytes, meta: "pq.FileMetaData", per_row: Sequence[int]) -> None:
    """Raise ValueError when the pages hold other values than the rows, or unpack to too much.

    per_row: values a row of each column.
    """
    left = MAX_BYTES
    for group in (meta.row_group(i) for i in range(meta.num_row_groups)):
        for column, n in enumerate(per_row):
            chunk = group.column(column)
            starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
            start = min(offset for offset in starts if offset is not None)
            chunk_pages = list(read_pages(data, start, start + chunk.total_compressed_size))
            left -= sum(page.size for page in chunk_pages)
            if left < 0:
                raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
            if sum(page.values for page in chunk_pages) != n * group.num_rows:
                raise ValueError(f"column {column} holds other values than {group.num_rows} rows")


class RowSize(NamedTuple):
    """Values of a row in each column, and the least number of bytes of all of them."""

    values: tuple[int, ...]
    size: int


@lru_cache
def measure_row(schema: "pa.Schema") -> RowSize:
    values = tuple(values_per_row(field.type) for field in schema)
    sizes = (bytes_per_value(field.type) for field in schema)
    return RowSize(values, sum(n * size for n, size in zip(values, sizes, strict=True)))


def values_per_row(kind: "pa.DataType") -> int:
    """Return the number of values of one row."""
    import pyarrow as pa

    return kind.list_size if pa.types.is_fixed_size_list(kind) else 1


def bytes_per_value(kind: "pa.DataType") -> int:
    """Return the least number of bytes of one value."""
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_fixed_size_list(kind) else kind
    return max(1, inner.bit_width // 8)


def has_nulls(array: Any) -> bool:
    """Return whether a value of an Arrow array is empty, or one inside a list."""
    import pyarrow as pa

    inner = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
    return bool(array.null_count or inner.null_count)


def to_numpy(array: Any) -> NDArray[Any]:
    """Convert an Arrow array to numpy: bits as bytes (rows, width), lists as (rows, width).

    Arrow's own method imports pandas, which takes longer than reading a board.
    """
    import pyarrow as pa

    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        values = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        start = array.offset * width
        return values[start : start + len(array) * width].reshape(len(array), width)
    if pa.types.is_fixed_size_list(array.type):
        return np.from_dlpack(array.flatten()).reshape(len(array), array.type.list_size)
    if pa.types.is_boolean(array.type):
        packed = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        bits = np.unpackbits(packed, bitorder="little").view(np.bool_)
        return bits[array.offset : array.offset + len(array)]
    return np.from_dlpack(array)
