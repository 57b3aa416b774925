"""Data inside a page: JSON that no text can break out of, and bytes that the browser inflates."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.tiers import Contenders

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What ends a script element or a line of one, and how JSON may write it instead."""


def embed_json(value: Any) -> str:
    """JSON for a script element; equal data gives equal text. Raises ValueError on NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, written in UNSAFE.items():
        text = text.replace(character, written)
    return text


def pack_bytes(data: bytes) -> str:
    """Base64 of the zlib stream, which DecompressionStream('deflate') reads."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def pack_json(value: Any) -> str:
    """Text that nobody reads before it is unpacked."""
    return pack_bytes(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf8"))


def unpack_bytes(text: str) -> bytes:
    """The inverse of `packed`."""
    return zlib.decompress(base64.b64decode(text))


BINS = 25
"""Of 4 %: three of 75 queries, so that no bin is favoured."""
ROUNDING = 1e-9


def count_accuracies(outcomes: Outcomes | None) -> NDArray[np.uint16]:
    """Episodes in each bin (25,), all zero where nothing is held or outcomes are right or wrong."""
    if outcomes is None or np.isin(outcomes.values, (0.0, 1.0)).all():
        return np.zeros(BINS, np.uint16)
    places = np.floor(outcomes.values * BINS + ROUNDING).astype(np.int64)
    found = np.bincount(np.minimum(places, BINS - 1), minlength=BINS)
    return np.minimum(found, 0xFFFF).astype("<u2")


def pack_histograms(rows: Sequence[Sequence[Outcomes | None]]) -> bytes:
    """Entry by entry, in it column by column, little-endian."""
    return b"".join(count_accuracies(each).tobytes() for row in rows for each in row)


Matrix = NDArray[np.float64]

SAME, UNKNOWN = 0, 255
"""Codes of two entries whose gap is one constant, and of two that hold other episodes."""
LOW, STEP = 0.05, math.log(math.sqrt(2) / 0.05) / 252
"""Code c in 1..253 is the ratio LOW * exp(STEP * (c - 1))."""
MAX_CODES = 400_000
"""Of one track: beyond it only the best entries are paired on the page."""
EXACT = 1e-12
"""Variances below it are rounding of zero; the least real one is (1 / 75)^2 / 600."""


def paired_entries(n: int, n_columns: int) -> int:
    """How many of n entries, best first, are paired so that all codes fit the page."""
    most = (1 + math.sqrt(1 + 8 * MAX_CODES / (n_columns + 1))) / 2
    return min(n, int(most))


def encode_pairs(contenders: Contenders, names: Sequence[str], columns: Sequence[str]) -> bytes:
    """Overall first, then column by column: pairs (0, 1), (0, 2), (1, 2), (0, 3), ... of names."""
    blocks = [encode_overall(contenders, names, columns)]
    blocks += [
        encode_column([contenders[name].get(column) for name in names]) for column in columns
    ]
    rows, others = np.tril_indices(len(names), -1)
    return b"".join(block[rows, others].tobytes() for block in blocks)


def encode_column(held: Sequence[Outcomes | None]) -> NDArray[np.uint8]:
    """Codes (N, N) of one column."""
    found = np.full((len(held), len(held)), UNKNOWN, np.uint8)
    for members in group_by_index(held):
        x = np.stack([each.values for i in members if (each := held[i]) is not None])
        found[np.ix_(members, members)] = encode_errors(*paired_errors(x))
    return found


def encode_overall(
    contenders: Contenders, names: Sequence[str], columns: Sequence[str]
) -> NDArray[np.uint8]:
    """Codes (N, N) of the unweighted mean over the columns, of entries that hold all of them."""
    found = np.full((len(names), len(names)), UNKNOWN, np.uint8)
    held = [sum_columns(contenders[name], columns) for name in names]
    for members in group_by_index(held):
        total = np.zeros((len(members), len(members)))
        apart = np.zeros_like(total)
        for group in group_by_draws(contenders[names[members[0]]], columns):
            sums = [sum(contenders[names[i]][c].values for c in group) for i in members]
            paired, independent = paired_errors(np.stack([np.asarray(s) for s in sums]))
            total, apart = total + paired**2, apart + independent**2
        found[np.ix_(members, members)] = encode_errors(np.sqrt(total), np.sqrt(apart))
    return found


def overall_error(held: Mapping[str, Outcomes], columns: Sequence[str]) -> float:
    """Standard error of one entry's mean over all columns; nan where an episode is alone."""
    total = 0.0
    for group in group_by_draws(held, columns):
        x = np.asarray(sum(held[column].values for column in group))
        total += x.var(ddof=1) / x.size if x.size > 1 else math.nan
    return math.sqrt(total) / len(columns)


def sum_columns(held: Mapping[str, Outcomes], columns: Sequence[str]) -> Outcomes | None:
    """All episode numbers of an entry as one; None where it lacks a column."""
    if not columns or any(column not in held for column in columns):
        return None
    index = np.concatenate([held[column].index for column in columns])
    return Outcomes(index, np.zeros(index.size), " ".join(held[c].draws for c in columns))


def group_by_index(held: Sequence[Outcomes | None]) -> list[list[int]]:
    """Places of the entries that hold the same, more than one, episodes of the same draws."""
    groups: dict[tuple[str, bytes], list[int]] = {}
    for i, each in enumerate(held):
        if each is not None and each.values.size > 1:
            groups.setdefault((each.draws, each.index.tobytes()), []).append(i)
    return list(groups.values())


def group_by_draws(held: Mapping[str, Outcomes], columns: Sequence[str]) -> list[list[str]]:
    """Columns over the same episodes, whose gaps add up episode by episode (stats.paired)."""
    groups: dict[tuple[str, int], list[str]] = {}
    for column in columns:
        groups.setdefault((held[column].draws, held[column].values.size), []).append(column)
    return list(groups.values())


def paired_errors(x: Matrix) -> tuple[Matrix, Matrix]:
    """Standard errors (N, N) of the mean differences of the rows of x (N, E): paired, and as if
    the rows were independent."""
    centred = x - x.mean(axis=1, keepdims=True)
    products = centred @ centred.T / (x.shape[1] - 1)
    apart = np.add.outer(products.diagonal(), products.diagonal())
    together = apart - 2 * products
    together[together < EXACT] = 0.0
    return np.sqrt(together / x.shape[1]), np.sqrt(apart / x.shape[1])


def encode_errors(paired: Matrix, independent: Matrix) -> NDArray[np.uint8]:
    """Codes of standard errors; a ratio below the grid is stored as its lowest step."""
    ratio = np.divide(paired, independent, out=np.zeros_like(paired), where=independent > 0)
    steps = np.log(np.maximum(ratio, LOW) / LOW) / STEP
    return np.where(paired == 0, SAME, np.clip(np.rint(steps), 0, 252) + 1).astype(np.uint8)


def decode_ratio(code: int) -> float:
    """The ratio that a code stands for; nan for UNKNOWN."""
    if code == UNKNOWN:
        return math.nan
    return 0.0 if code == SAME else LOW * math.exp(STEP * (code - 1))
