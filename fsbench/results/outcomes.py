"""Outcomes on disk: one Arrow table for all results of an entry, compressed as a whole.

A row is an episode, a learning rate of a linear probe, or a probe without training:

    result                 uint16      place of the result in entry.json; its rows are neighbours
    row                    int32       number of the episode, or of the learning rate
    correct                list        right or wrong, numpy.packbits over the queries of each
                                       class, one class after the other, or over test images
    collapsed, finite      bool        of an episode
    dense_total            list        of an episode, by class, where all possible queries count
    dense_surplus          list        dense_correct - right * dense_total // n_query, by class;
                                       right: of its n_query queries. Takes fewer bits
    predicted              list        the class that each query of an episode was taken for
    lr, curve, ...         see fsbench.core.records.ProbeRecords

Lists of equal length are stored as fixed_size_list, without offsets, unless the rows that have no
list would take more bytes; whole numbers in them as the smallest integer that fits. Classes and
images follow from the number of an episode and the spec. Arrow in zstd is as small as Parquet, is
read five times as fast, and is easily bounded.
"""

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import ValidationFailed
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, Records, columns
from fsbench.core.specs import EpisodicSpec, ProbeSpec, Spec

SUFFIX = ".arrow.zst"
MAX_FILE = 128 * 2**20
MAX_BYTES = 256 * 2**20
"""Bounds of a file and of what it unpacks to; 600 episodes of 75 queries take 8 kB and 16 kB."""
FAST, SMALL = 3, 19
"""Levels of compression while work runs, and of entries of a board, which are a third smaller."""
BITS = ("correct", "last", "best", "chosen")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32")
"""Types that lists of whole numbers may have."""
COUNTS = ("row", "dense_surplus", "dense_total")
OPTIONAL = ("dense_surplus", "dense_total", "predicted")
"""Columns that not all results of episodes have."""
OFFSET_BYTES = 4
"""Bytes of a row that a fixed_size_list saves."""
COLUMN_NAMES = {"index": "row", "dense_correct": "dense_surplus"}
"""Names of columns that differ from those in memory."""
FIX = "restore the file from where it was computed, or delete its folder and evaluate again"


@cache
def column_types() -> dict[str, Any]:
    import pyarrow as pa

    return {
        "result": pa.uint16(),
        "row": pa.int32(),
        "correct": pa.list_(pa.uint8()),
        **dict.fromkeys(("collapsed", "finite"), pa.bool_()),
        **dict.fromkeys(("dense_surplus", "dense_total"), pa.list_(pa.int32())),
        "predicted": pa.list_(pa.uint8()),
        "lr": pa.float64(),
        "curve": pa.list_(pa.float64()),
        **dict.fromkeys(("last", "best"), pa.list_(pa.uint8())),
        "held_out": pa.float64(),
        "held_out_curve": pa.list_(pa.float64()),
        "chosen": pa.list_(pa.uint8()),
    }


def is_fitting(kind: Any, expected: Any) -> bool:
    """Return whether a column may have this type: the expected one, or lists of equal length."""
    import pyarrow as pa

    if expected is None or not pa.types.is_list(expected):
        return bool(kind == expected)
    allowed = INTEGERS if expected.value_type == pa.int32() else (str(expected.value_type),)
    is_list = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    return is_list and str(kind.value_type) in allowed


def digest_records(records: Records) -> str:
    """Return the sha-256 over names, types, shapes and values of all but predictions."""
    digest = hashlib.sha256(type(records).__name__.encode())
    for name, column in columns(records).items():
        if name == "predicted":
            continue
        values = np.ascontiguousarray(column)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.reshape(-1).data)
    return digest.hexdigest()


def encode(parts: Sequence[Records], level: int = FAST) -> bytes:
    """Return the content of a file of these records. Raise ValidationFailed for too many."""
    import pyarrow as pa

    tables = [list_columns(i, records) for i, records in enumerate(parts)]
    lengths = [len(table["row"]) for table in tables]
    batch = pa.record_batch(
        {
            name: make_array(kind, [table.get(name) for table in tables], lengths)
            for name, kind in column_types().items()
            if any(name in table for table in tables)
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
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


def list_columns(result: int, records: Records) -> dict[str, NDArray[Any]]:
    """Return the columns of a result, (rows,) or (rows, width); right or wrong is packed."""
    arrays = columns(records)
    if isinstance(records, ImageRecords):
        arrays = {name: values[None] for name, values in arrays.items()}
    elif "dense_total" in arrays:
        arrays["dense_correct"] = arrays["dense_correct"] - expect_right(arrays)
    n_rows = len(next(iter(arrays.values())))
    arrays.setdefault("index", np.arange(n_rows))
    for name in arrays.keys() & set(BITS):
        arrays[name] = np.packbits(arrays[name], axis=-1).reshape(n_rows, -1)
    table = {COLUMN_NAMES.get(name, name): values for name, values in arrays.items()}
    return table | {"result": np.full(n_rows, result)}


def expect_right(arrays: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Return how many dense queries (E, n_way) are right at the rate of the queries."""
    right = EpisodeRecords(**arrays).right
    return np.asarray(right * arrays["dense_total"] // arrays["correct"].shape[-1])


def make_array(kind: Any, parts: Sequence[NDArray[Any] | None], lengths: Sequence[int]) -> Any:
    """Return a column of the table. parts: by result (rows,) or (rows, width), None without it."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        present = [part for part in parts if part is not None]
        [width, *other_widths] = {part.shape[1] for part in present}
        value_type, n_rows = kind.value_type, sum(lengths)
        if value_type == pa.int32():
            low, high = min(part.min() for part in present), max(part.max() for part in present)
            smallest = np.min_scalar_type(min(low, -high - 1) if low < 0 else high)
            value_type = pa.from_numpy_dtype(smallest)
        filler = (n_rows - sum(map(len, present))) * width * value_type.byte_width
        is_fixed = not other_widths and filler <= OFFSET_BYTES * n_rows
        kind = pa.list_(value_type, width if is_fixed else -1)
    arrays = []
    for part, n in zip(parts, lengths, strict=True):
        rows = part if part is None or part.ndim == 1 else [*part]
        arrays.append(pa.nulls(n, kind) if rows is None else pa.array(rows, kind))
    return pa.concat_arrays(arrays)


def to_numpy(array: Any) -> NDArray[Any] | None:
    """Return an Arrow array as values (rows,), or (rows, width) of lists; None if all are empty.

    `array.to_numpy` would import pandas. Raises ValueError if some are empty or of unequal width.
    """
    import pyarrow as pa

    rows, kind = len(array), array.type
    if array.null_count == rows:
        return None
    if array.null_count:
        raise ValueError("some of the values of a result are empty")
    if kind == pa.bool_():
        return np.from_dlpack(array.cast(pa.uint8())).view(np.bool_)
    if pa.types.is_primitive(kind):
        return np.from_dlpack(array)
    if pa.types.is_list(kind):
        starts = np.frombuffer(array.buffers()[1], np.int32)
        widths = np.diff(starts[array.offset : array.offset + rows + 1])
        if (widths != widths[0]).any():
            raise ValueError("the rows of a result are of unequal width")
    values = array.flatten()
    if values.null_count:
        raise ValueError("a list holds empty values")
    return np.from_dlpack(values).reshape(rows, -1)


def unpack_bits(packed: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return right or wrong (rows, *shape). Raises ValueError for another number of bits."""
    size = -(-shape[-1] // 8)
    if packed.shape[1] != math.prod(shape[:-1]) * size:
        raise ValueError(f"a result holds {8 * packed.shape[1]} outcomes a row, expected {shape}")
    bits = np.unpackbits(packed.reshape(-1)).view(np.bool_)  # 10 times as fast as with its count
    bits = bits.reshape(-1, *shape[:-1], 8 * size)
    if bits[..., shape[-1] :].any():
        raise ValueError("unused bits of the outcomes are set")
    return bits[..., : shape[-1]]


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """The decoded file, a record batch: rows of results, in order."""

    batch: Any

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Where the rows of result i begin, and where the last one ends."""
        result = np.from_dlpack(self.batch.column("result"))
        if (result[1:] < result[:-1]).any():
            raise ValueError("the rows of results are not neighbours")
        bounds = np.searchsorted(result, np.arange(int(result[-1]) + 2))
        if (bounds[1:] == bounds[:-1]).any():
            raise ValueError("a result has no rows")
        return bounds

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def records(self, shapes: Sequence[tuple[Spec, int]], first: int = 0) -> list[Records]:
        """Return records of neighbouring results; shapes: spec and number of outcomes of each."""
        names = [name for name in OPTIONAL if name in self.batch.schema.names]

        def find_shape(i: int) -> tuple[type[Records], tuple[int, ...], object]:
            spec, n = shapes[i - first]
            if isinstance(spec, EpisodicSpec):
                row = int(self.bounds[i])
                present = [self.batch.column(name)[row].is_valid for name in names]
                return EpisodeRecords, (spec.episode.n_way, spec.episode.n_query), present
            return ProbeRecords if isinstance(spec, ProbeSpec) else ImageRecords, (n,), i

        records: list[Records] = []
        for (kind, shape, _), equal in groupby(range(first, first + len(shapes)), find_shape):
            numbers = list(equal)
            bounds = self.bounds[numbers[0] : numbers[-1] + 2].tolist()
            arrays = read_rows(self.batch.slice(bounds[0], bounds[-1] - bounds[0]), kind, shape)
            require_consistent(arrays, shapes[numbers[0] - first][0])
            for low, high in pairwise(bound - bounds[0] for bound in bounds):
                rows = 0 if kind is ImageRecords else slice(low, high)
                records.append(kind(**{name: values[rows] for name, values in arrays.items()}))
        return records


def read_rows(batch: Any, kind: type[Records], shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Return the columns that a kind of records has. Raises ValueError where one is wrong."""
    arrays: dict[str, NDArray[Any]] = {}
    for field in fields(kind):
        column = COLUMN_NAMES.get(field.name, field.name)
        is_there = column in batch.schema.names
        values = to_numpy(batch.column(column)) if is_there else None
        if values is not None:
            values = unpack_bits(values, shape) if column in BITS else values
            arrays[field.name] = values.astype(np.int64) if column in COUNTS else values
        elif field.default is MISSING:
            raise ValueError(f"a result has no {field.name}")
    if dense := [values.shape for name, values in arrays.items() if name.startswith("dense")]:
        if dense != [arrays["correct"].shape[:2]] * 2:
            raise ValueError("the dense queries of a result are not counted by class")
        arrays["dense_correct"] += expect_right(arrays)
    return arrays


def require_consistent(arrays: dict[str, NDArray[Any]], spec: Spec) -> None:
    """Raise ValueError for arrays of a result that do not fit together."""
    if isinstance(spec, EpisodicSpec):
        if "dense_total" in arrays:
            right, total = arrays["dense_correct"], arrays["dense_total"]
            if not ((right >= 0) & (right <= total) & (total > 0)).all():
                raise ValueError("more dense queries of a class are right than are there, or none")
        if "predicted" in arrays:
            n_way, n_query = arrays["correct"].shape[1:]
            predicted, truth = arrays["predicted"], np.repeat(np.arange(n_way), n_query)
            if predicted.shape[1:] != truth.shape or predicted.max() >= n_way:
                raise ValueError(f"the predictions are not of {n_way} x {n_query} queries")
            if ((predicted == truth) != arrays["correct"].reshape(predicted.shape)).any():
                raise ValueError("a query is right with another class predicted, or wrong with its")
    elif isinstance(spec, ProbeSpec):
        if {arrays[name].shape[1] for name in arrays if name.endswith("curve")} != {spec.epochs}:
            raise ValueError(f"a curve of a probe does not have {spec.epochs} epochs")
    elif len(arrays["correct"]) > 1:
        raise ValueError("a probe without training has more than one row")


def decode(content: bytes) -> OutcomeTable:
    """Return the table in a file. Raises ValueError for other, damaged or too large content."""
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            data = stream.read_buffer(MAX_BYTES + 1)
        if data.size > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
        reader = pa.ipc.open_file(pa.BufferReader(data))
        types = column_types().copy()
        wrong = [f.name for f in reader.schema if not is_fitting(f.type, types.pop(f.name, None))]
        if wrong or {"result", "row"} & types.keys():
            raise ValueError(f"its columns are wrong: {', '.join(wrong)[:200] or 'too few'}")
        if reader.num_record_batches != 1 or is_compressed(data):
            raise ValueError("it is not one batch of plain columns")
        batch = reader.get_batch(0)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, struct.error) as error:
        raise ValueError(f"it is no readable Arrow file: {error}") from error
    if batch.nbytes > data.size:
        raise ValueError("its columns share bytes")
    if not batch.num_rows or batch.column("result").null_count or batch.column("row").null_count:
        raise ValueError("it has no rows, or some that belong to no result")
    return OutcomeTable(batch)


def is_compressed(data: Any) -> bool:
    """Return whether the columns of the first batch of an Arrow file may be compressed.

    A compressed column says itself how large it becomes, without a bound. The layout is that of
    https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format; pyarrow refuses files whose
    offsets lead astray, and dictionaries that no column has.
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

    footer = len(data) - len(b"ARROW1") - 4
    batches = follow(find(follow(footer - number("i", footer)), 3))
    message = number("q", batches + 4) + 8
    return number("i", message - 8) != -1 or find(follow(find(follow(message), 2)), 3) > 0
