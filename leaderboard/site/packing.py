"""Compact encodings of the data inside the page: JSON, histograms, and paired errors.

JSON is escaped so that no text can end the script element. Histograms count single-episode
accuracies, two bytes per bin. For the gap of two entries the page knows the means; what it cannot
know is the paired standard error. Stored in one byte per pair and column is its ratio to the
standard error of independent samples, on a logarithmic grid of 252 steps from 0.05 to sqrt(2): a
half-width read back is within 0.7 % of `fsbench.core.statistics.paired`, and never too small below
the grid. Where rows have several seeds the grid is scaled (`find_scale`). 200 entries of 16 columns
take about 300 kB; their outcomes would take 1.3 MB.
"""

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.statistics import Z95
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.seeds import SeedErrors
from leaderboard.ranking.tiers import Contenders

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that end a script element or a line of it, and their JSON escapes."""
BINS = 25
"""Bins of 4 %: three of 75 queries, so that all bins are equally wide."""
NO_BINS = np.zeros(BINS, "<u2")
ROUNDING = 1e-9
SAME, UNKNOWN = 0, 255
"""Codes of entries whose gap is constant, and of entries with different episodes."""
LOW, STEP = 0.05, math.log(math.sqrt(2) / 0.05) / 252
"""Code c in 1..253 is the ratio LOW * exp(STEP * (c - 1))."""
MAX_CODES = 400_000
"""Maximum number of codes per table; beyond it only the best entries are compared."""
EXACT = 1e-12
"""Smaller variances are rounding errors of zero; the least real one is (1 / 75)^2 / 600."""

Matrix = NDArray[np.float64]


def embed_json(value: Any) -> str:
    """Return JSON for a script element; equal data gives equal text. Raises ValueError on NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, written in UNSAFE.items():
        text = text.replace(character, written)
    return text


def pack_bytes(data: bytes) -> str:
    """Return Base64 of the zlib stream, which DecompressionStream('deflate') reads."""
    return base64.b64encode(zlib.compress(data)).decode("ascii")


def pack_json(value: Any) -> str:
    """Return JSON compressed and in Base64."""
    return pack_bytes(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf8"))


def count_accuracies(outcomes: Outcomes | None) -> NDArray[np.uint16]:
    """Return the episodes per bin (25,); all zero without outcomes and for a probe's 0 / 1."""
    if outcomes is None:
        return NO_BINS
    outcomes = outcomes.unweighted
    counts = np.bincount(outcomes.right.astype(np.int64), minlength=outcomes.out_of + 1)
    if not counts[1 : outcomes.out_of].any():
        return NO_BINS
    bins = np.bincount(find_bins(outcomes.out_of), weights=counts, minlength=BINS)
    return np.minimum(bins, 0xFFFF).astype("<u2")


@lru_cache
def find_bins(out_of: int) -> NDArray[np.int64]:
    """Return the bins (out_of + 1,) of all accuracies of so many queries."""
    places = np.floor(np.arange(out_of + 1) / np.float64(out_of) * BINS + ROUNDING)
    return np.minimum(places, BINS - 1).astype(np.int64)


def pack_histograms(rows: Sequence[Sequence[Outcomes | None]]) -> bytes:
    """Return the histograms of all entries and columns, little-endian."""
    return b"".join(count_accuracies(outcomes).tobytes() for row in rows for outcomes in row)


def count_paired_entries(n: int, n_columns: int) -> int:
    """Return how many of n entries, best first, are compared within MAX_CODES."""
    most = (1 + math.sqrt(1 + 8 * MAX_CODES / (n_columns + 1))) / 2
    return min(n, int(most))


def encode_pairs(
    contenders: Contenders, names: Sequence[str], columns: Sequence[str], scale: float = 1.0
) -> bytes:
    """Return the codes of pairs (0, 1), (0, 2), (1, 2), (0, 3), ...: overall, then by column.

    scale: what the ratios are divided by, of `find_scale`.
    """
    rows, others = np.tril_indices(len(names), -1)
    codes = b""
    for groups in measure_blocks(contenders, names, columns):
        matrix = np.full((len(names), len(names)), UNKNOWN, np.uint8)
        for members, paired, independent in groups:
            matrix[np.ix_(members, members)] = encode_errors(paired / scale, independent)
        codes += matrix[rows, others].tobytes()
    return codes


def find_scale(contenders: Contenders, names: Sequence[str], columns: Sequence[str]) -> float:
    """Return the largest ratio in parts of sqrt(2), at least 1.

    It exceeds 1 where rows have several seeds: the interval of a row is of its own seeds, that of a
    gap of the pooled spread at least.
    """
    if all(outcomes.n_seeds == 1 for name in names for outcomes in contenders[name].values()):
        return 1.0
    ratios = [
        np.divide(paired, independent, out=np.zeros_like(paired), where=independent > 0).max()
        for groups in measure_blocks(contenders, names, columns)
        for _, paired, independent in groups
    ]
    return max(1.0, float(max(ratios, default=1.0)) / math.sqrt(2))


def measure_blocks(
    contenders: Contenders, names: Sequence[str], columns: Sequence[str]
) -> Iterator[list[tuple[list[int], Matrix, Matrix]]]:
    """Yield overall and per column groups of entries over equal episodes with errors of their gaps.

    The errors are paired, then as if the rows were independent; with several seeds both are
    half-widths in parts of 1.96.
    """
    for block in (columns, *([column] for column in columns)):
        whole = {n: contenders[n] for n in names if block and set(block) <= contenders[n].keys()}
        seeds = SeedErrors({name: [o[c] for c in block] for name, o in whole.items()})
        groups = []
        for members in group_by_episodes([contenders[name] for name in names], block):
            rows = [names[i] for i in members]
            paired, independent = measure_group([whole[row] for row in rows], block)
            if seeds.sides:
                fewest = min(whole[rows[0]][column].index.size for column in block)
                halves = np.array([seeds.scores[row].ci95 for row in rows]) / Z95
                paired = seeds.widen_halves(rows, paired, fewest - 1) / Z95
                independent = np.hypot.outer(halves, halves)
            groups.append((members, paired, independent))
        yield groups


def measure_group(
    rows: Sequence[Mapping[str, Outcomes]], columns: Sequence[str]
) -> tuple[Matrix, Matrix]:
    """Return paired and independent errors (N, N) of the mean over columns on equal episodes."""
    total = np.zeros((len(rows), len(rows)))
    independent_total = np.zeros_like(total)
    for group in group_by_draws(rows[0], columns):
        sums = [np.asarray(sum(row[column].values for column in group)) for row in rows]
        paired, independent = estimate_paired_errors(np.stack(sums))
        total, independent_total = total + paired**2, independent_total + independent**2
    return np.sqrt(total) / len(columns), np.sqrt(independent_total) / len(columns)


def estimate_overall_error(outcomes: Mapping[str, Outcomes], columns: Sequence[str]) -> float:
    """Return the standard error of one entry's mean over all columns; nan for single episodes."""
    total = 0.0
    for group in group_by_draws(outcomes, columns):
        x = np.asarray(sum(outcomes[column].values for column in group))
        total += x.var(ddof=1) / x.size if x.size > 1 else math.nan
    return math.sqrt(total) / len(columns)


def group_by_episodes(
    rows: Sequence[Mapping[str, Outcomes]], columns: Sequence[str]
) -> list[list[int]]:
    """Return positions of entries with all columns grouped by equal episodes, without single ones.

    Nothing is grouped without columns.
    """
    groups: dict[tuple[tuple[str, int | bytes], ...], list[int]] = {}
    for i, outcomes in enumerate(rows):
        of_block = [outcomes[column] for column in columns if column in outcomes]
        if len(of_block) == len(columns) and sum(o.index.size for o in of_block) > 1:
            groups.setdefault(tuple((o.draws, o.numbering) for o in of_block), []).append(i)
    return list(groups.values())


def group_by_draws(outcomes: Mapping[str, Outcomes], columns: Sequence[str]) -> list[list[str]]:
    """Group columns over the same episodes, whose gaps are added episode by episode."""
    groups: dict[tuple[str, int], list[str]] = {}
    for column in columns:
        groups.setdefault((outcomes[column].draws, outcomes[column].values.size), []).append(column)
    return list(groups.values())


def estimate_paired_errors(x: Matrix) -> tuple[Matrix, Matrix]:
    """Return standard errors (N, N) of mean differences of the rows of x (N, E).

    The first matrix is for paired rows, the second one as if the rows were independent.
    """
    centred = x - x.mean(axis=1, keepdims=True)
    products = centred @ centred.T / (x.shape[1] - 1)
    apart = np.add.outer(products.diagonal(), products.diagonal())
    together = apart - 2 * products
    together[together < EXACT] = 0.0
    return np.sqrt(together / x.shape[1]), np.sqrt(apart / x.shape[1])


def encode_errors(paired: Matrix, independent: Matrix) -> NDArray[np.uint8]:
    """Return the codes of standard errors; a ratio below the grid gets the lowest step."""
    ratio = np.divide(paired, independent, out=np.zeros_like(paired), where=independent > 0)
    steps = np.log(np.maximum(ratio, LOW) / LOW) / STEP
    return np.where(paired == 0, SAME, np.clip(np.rint(steps), 0, 252) + 1).astype(np.uint8)
