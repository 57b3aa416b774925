"""What the pages of a Parquet file unpack to, from their headers, before any is decompressed.

A small file can hold pages that unpack to gigabytes, or runs that repeat one value a billion times,
and its footer need not say so. The headers are Thrift structs in compact protocol (Parquet format:
parquet.thrift, PageHeader; Thrift: thrift-compact-protocol.md), which pyarrow does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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


def pages(data: bytes, start: int, end: int) -> Iterator[Page]:
    """The pages of one column chunk, which takes the bytes start..end-1 of the file.

    Raises ValueError for headers that are damaged, leave the chunk, or are too many.
    """
    for _ in range(MAX_PAGES):
        if start == end:
            return
        header, body = _struct(data, start, 0)
        kind, unpacked, packed = (_count(header, field) for field in (1, 2, 3))
        if kind not in KNOWN or body + packed > end:
            raise ValueError("a page leaves its column or is of an unknown kind")
        details = header.get(5 if kind == DATA else 8, {})
        yield Page(unpacked, _count(details, 1) if kind in (DATA, DATA_V2) else 0)
        start = body + packed
    raise ValueError(f"a column has more than {MAX_PAGES} pages")


def _count(struct: Any, field: int) -> int:
    found = struct.get(field) if isinstance(struct, dict) else None
    if not isinstance(found, int) or found < 0:
        raise ValueError("a page header lacks a size")
    return found


def _struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    """Fields by id, and where the struct ends."""
    found: Struct = {}
    field = 0
    while kind := _byte(data, at):
        delta, kind = kind >> 4, kind & 15
        at += 1
        if delta:
            field += delta
        else:
            field, at = _integer(data, at)
        found[field], at = _value(data, at, kind, depth)
    return found, at + 1


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
    size, kind = _byte(data, at) >> 4, _byte(data, at) & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    for _ in range(size):
        if kind in (TRUE, FALSE):
            at += 1
        else:
            _, at = _value(data, at, kind, depth)
        _byte(data, at - 1)
    return None, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number."""
    raw, at = _varint(data, at)
    return raw >> 1 ^ -(raw & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, 70, 7):
        byte = _byte(data, at)
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
    raise ValueError("a page header holds an endless number")


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise ValueError("a page header is cut off")
    return data[at]
