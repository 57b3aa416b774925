"""Compact encodings of the data inside the page: JSON, histograms, and intervals of gaps.

JSON is escaped so that no text can end the script element. Histograms count single-episode
accuracies, two bytes per bin. For the gap of two entries the page knows the means; what it cannot
know is the paired interval. Its half-width is stored per pair and column on a logarithmic grid of
steps of 1 %. 200 entries of 16 columns take about 400 kB; their outcomes would take 1.3 MB.
"""

import base64
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.statistics import Z95
from fsbench.core.tasks import ColumnId
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import Contenders

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that end a script element or a line of it, and their JSON escapes."""
BINS = 25
"""Bins of 4 %: three of 75 queries, so that all bins are equally wide."""
ROUNDING = 1e-9
SAME, UNKNOWN = 0, 0xFFFF
"""Codes of entries whose gap is constant, and of entries with different episodes."""
LEAST, STEP = 1e-6, 0.01
"""Any other code c is the half-width LEAST * exp(STEP * (c - 1))."""
MAX_CODES = 400_000
"""Maximum number of codes per table; beyond it only the best entries are compared."""


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


def count_accuracies(outcomes: Outcomes) -> NDArray[np.uint16]:
    """Return the episodes per bin (25,)."""
    bins = np.minimum((outcomes.values + ROUNDING) * BINS, BINS - 1).astype(np.int64)
    return np.bincount(bins, minlength=BINS).clip(max=0xFFFF).astype("<u2")


def pack_histograms(contenders: Contenders, names: Sequence[str], columns: Sequence[str]) -> bytes:
    """Return the histograms of entries and columns, little-endian; none of a probe's images."""
    episodic = {column for column in columns if ColumnId.parse(column).task.probe is None}
    return b"".join(
        count_accuracies(contenders[name][column]).tobytes()
        if column in episodic & contenders[name].keys()
        else bytes(2 * BINS)
        for name in names
        for column in columns
    )


def count_paired_entries(n: int, n_columns: int) -> int:
    """Return how many of n entries, best first, are compared within MAX_CODES."""
    most = (1 + math.sqrt(1 + 8 * MAX_CODES / (n_columns + 1))) / 2
    return min(n, int(most))


def encode_pairs(contenders: Contenders, names: Sequence[str], columns: Sequence[str]) -> bytes:
    """Return the codes of pairs (0, 1), (0, 2), (1, 2), (0, 3), ...: overall, then by column.

    Each is the half-width of the 95 % interval of the gap. All low bytes come first, then all high
    ones, which are nearly equal and so take no room once they are compressed.
    """
    below = np.tril_indices(len(names), -1)
    blocks = (columns, *([column] for column in columns))
    halves = [measure_halves(contenders, names, block)[below] for block in blocks]
    return encode_halves(np.concatenate(halves)).view(np.uint8).reshape(-1, 2).T.tobytes()


def measure_halves(
    contenders: Contenders, names: Sequence[str], columns: Sequence[str]
) -> NDArray[np.float64]:
    """Return half-widths (N, N) of the gaps in the mean of columns, below the diagonal.

    They are nan for entries that lack a column or have other episodes.
    """
    from scipy.special import stdtrit

    halves = np.full((len(names), len(names)), math.nan)
    whole = {n: contenders[n] for n in names if columns and set(columns) <= contenders[n].keys()}
    pairs = PairwiseGaps({name: [o[column] for column in columns] for name, o in whole.items()})
    indices = {name: i for i, name in enumerate(names)}
    for field in pairs.fields:
        rows = [indices[name] for name in field.names]
        if not pairs.seed_errors.several:  # all at once
            halves[np.ix_(rows, rows)] = Z95 * field.grouped.errors
            continue
        for i, name in enumerate(field.names[:-1]):
            gaps = pairs.behind(name, field.names[i + 1 :])
            quantiles = np.where(gaps.has_seeds, stdtrit(gaps.freedom, 0.975), Z95)
            halves[rows[i + 1 :], rows[i]] = gaps.se * quantiles
    return halves


def encode_halves(halves: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Return the codes of half-widths."""
    steps = np.log(np.maximum(halves, LEAST) / LEAST) / STEP
    codes = np.where(halves == 0, SAME, np.clip(np.rint(steps), 0, UNKNOWN - 2) + 1)
    return np.where(np.isnan(halves), UNKNOWN, codes).astype("<u2")
