"""Verdicts on disk: one file a board, one row a verified result.

    fsbench-verdicts <version of the rules> <sha-256 of the rest>
    <Parquet>

A file that is damaged, cut short or of other rules is as good as none: its results are verified
again. The digest guards against damage, not against the owner of the cache folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.io import replacing

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"fsbench-verdicts"
GROUP = 1024
"""Rows that are in memory at once, besides what becomes of them."""


class Row(NamedTuple):
    """One verdict. name: of the result, relative to the board; stamps: size, mtime and ctime (ns)
    of its two files; key: sha-256 of both; result: as JSON; numbers, right, out_of: of its
    Outcomes, as bytes; no numbers for 0..n-1.
    """

    name: str
    stamps: tuple[int, ...]
    key: bytes
    result: bytes
    numbers: bytes
    right: bytes
    out_of: int


class Unusable(Exception):
    """Why a file of verdicts is of no use, in words."""


def schema() -> pa.Schema:
    import pyarrow as pa

    kinds = (pa.string(), pa.list_(pa.int64(), 6), *[pa.binary()] * 4, pa.int64())
    return pa.schema(list(zip(Row._fields, kinds, strict=True)))


def write(path: Path, rules: str, rows: Iterable[Row]) -> None:
    """By rename. Raises OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, form, left = pa.BufferOutputStream(), schema(), iter(rows)
    with pq.ParquetWriter(sink, form, compression="zstd") as writer:
        while group := list(islice(left, GROUP)):
            columns = [list(column) for column in zip(*group, strict=True)]
            writer.write_table(pa.Table.from_arrays([*map(pa.array, columns)], schema=form))
    content = memoryview(sink.getvalue())
    head = b" ".join([MAGIC, rules.encode(), hashlib.sha256(content).hexdigest().encode()])
    with replacing(path) as temporary, temporary.open("wb") as out:
        out.write(head + b"\n")
        out.write(content)


def read(path: Path, rules: str) -> Iterator[Row]:
    """The rows, none where there is no file. Raises Unusable before the first one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = checked(path, rules)
    if content is not None:
        with pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))) as file:
            for group in range(file.metadata.num_row_groups):
                columns = file.read_row_group(group).to_pydict()
                for values in zip(*(columns[name] for name in Row._fields), strict=True):
                    yield Row(*values)


def checked(path: Path, rules: str) -> memoryview | None:
    """The Parquet part, None where there is no file. Raises Unusable."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror})") from error
    head, found, _ = content[:200].partition(b"\n")
    words, body = head.split(b" "), memoryview(content)[len(head) + 1 :]
    if not found or len(words) != 3 or words[0] != MAGIC:
        raise Unusable("is damaged")
    if words[1] != rules.encode():
        raise Unusable("is of other rules")
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise Unusable("is damaged")
    return body
