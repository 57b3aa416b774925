"""The sign-flip permutation test of paired outcomes: no assumption on how they are spread.

If A and B do not differ, the two outcomes of an episode could as well have been swapped, which
flips the sign of their difference; of all columns over that episode at once, for they saw the same
images. p is the share of swaps with a mean at least as far from zero (two-sided).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from fsbench.seeding import Name, words

RESAMPLES = 9999
"""Random swaps where not all can be tried: p is at least 0.0002."""
BLOCK = 500_000
"""Bytes of signs drawn at once."""
OCTETS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
"""The eight signs that a byte stands for, (256, 8)."""
DIGITS = 12
"""Differences that are zero up to rounding are zero."""

Numbers = NDArray[np.float64]


def shares(
    index: Sequence[NDArray[np.int64]], gaps: Sequence[Numbers], draws: Sequence[str]
) -> Numbers:
    """What each episode adds to the unweighted mean over columns of the mean gap, (episodes,).

    index, gaps: (n,) a column; draws: a name a column, equal for columns over the same episodes,
    which are told apart by their index.
    """
    found = []
    for draw in dict.fromkeys(draws):
        columns = [i for i, name in enumerate(draws) if name == draw]
        _, place = np.unique(np.concatenate([index[i] for i in columns]), return_inverse=True)
        weights = np.concatenate([gaps[i] / gaps[i].size for i in columns])
        found.append(np.bincount(place, weights=weights))
    return np.concatenate(found) / len(gaps)


def sign_flip(parts: Numbers, *names: Name) -> float:
    """Two-sided p of a sum of independent parts (n,) against random signs of them.

    All signs are tried where there are few parts, else RESAMPLES draws of the stream `names`;
    parts that are zero change nothing. Same names, same p, and that of -parts.
    """
    kept = parts[parts.round(DIGITS) != 0]
    if kept.size < 2:
        return 1.0
    scaled = kept / np.abs(kept).sum()
    return every(scaled) if 2**kept.size <= RESAMPLES else drawn(scaled, *names)


def every(parts: Numbers) -> float:
    """p against all signs of the parts (n,)."""
    from scipy.stats import permutation_test

    found = permutation_test(
        (parts,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
    )
    return float(found.pvalue)


def drawn(parts: Numbers, *names: Name) -> float:
    """p against random signs of the parts (n,), eight of them a byte."""
    from scipy.stats import monte_carlo_test

    sums = np.pad(parts, (0, -parts.size % 8)).reshape(-1, 8) @ OCTETS.T
    found = monte_carlo_test(
        np.zeros(len(sums)),
        octets(*names),
        lambda octet, axis: added(sums, octet),
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, BLOCK // len(sums)),
    )
    return float(found.pvalue)


def octets(*names: Name) -> Callable[..., Numbers]:
    """Draws bytes of a shape (rows, n), as whole numbers; other ones on every call."""
    calls = count()

    def draw(size: tuple[int, ...]) -> Numbers:
        rows, n = size
        raw = words(-(-rows * n // 8), *names, "signs", next(calls)).astype("<u8")
        return raw.view(np.uint8)[: rows * n].reshape(rows, n).astype(np.float64)

    return draw


def added(sums: Numbers, octet: Numbers) -> Numbers:
    """Sum (...) of the parts under the signs that bytes (..., n) stand for; sums: (n, 256), of
    eight parts each under every byte."""
    picked: Numbers = sums[np.arange(len(sums)), octet.astype(np.intp)].sum(axis=-1)
    return picked
