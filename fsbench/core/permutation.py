"""Sign-flip permutation test of paired outcomes, without assumptions on their distribution.

If A and B do not differ, swapping the two outcomes of an episode changes nothing but the sign of
their difference. All columns over that episode are swapped together, because they share its images.
p is the share of swaps with a mean at least as far from zero (two-sided).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from fsbench.core.seeding import Name, words

RESAMPLES = 9999
"""Random swaps if there are too many to try all; p is then at least 0.0002."""
BLOCK = 500_000
"""Bytes of random signs per batch."""
OCTETS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
"""The eight signs that each byte encodes, (256, 8)."""
DIGITS = 12
"""Decimals to which differences are rounded before they are compared with zero."""

Numbers = NDArray[np.float64]


def shares(
    index: Sequence[NDArray[np.int64]], gaps: Sequence[Numbers], draws: Sequence[str]
) -> Numbers:
    """Return what each episode adds to the unweighted mean over columns of the mean gap.

    index, gaps: one array (n,) per column; draws: one name per column, equal for columns over the
    same episodes, which are identified by their index.
    """
    per_draw = []
    for draw in dict.fromkeys(draws):
        columns = [i for i, name in enumerate(draws) if name == draw]
        _, place = np.unique(np.concatenate([index[i] for i in columns]), return_inverse=True)
        weights = np.concatenate([gaps[i] / gaps[i].size for i in columns])
        per_draw.append(np.bincount(place, weights=weights))
    return np.concatenate(per_draw) / len(gaps)


def sign_flip(parts: Numbers, *names: Name) -> float:
    """Return the two-sided p of a sum of independent parts (n,) under random signs.

    All signs are tried if that takes at most RESAMPLES sums, else RESAMPLES draws from the random
    stream `names`; zeros change nothing. Equal names give equal p, and -parts give the p of parts.
    """
    nonzero = parts[parts.round(DIGITS) != 0]
    if nonzero.size < 2:
        return 1.0
    scaled = nonzero / np.abs(nonzero).sum()
    return enumerate_signs(scaled) if 2**nonzero.size <= RESAMPLES else sample_signs(scaled, *names)


def enumerate_signs(parts: Numbers) -> float:
    """Return p against all signs of the parts (n,)."""
    from scipy.stats import permutation_test

    test = permutation_test(
        (parts,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
    )
    return float(test.pvalue)


def sample_signs(parts: Numbers, *names: Name) -> float:
    """Return p against random signs of the parts (n,), eight signs per byte."""
    from scipy.stats import monte_carlo_test

    sums = np.pad(parts, (0, -parts.size % 8)).reshape(-1, 8) @ OCTETS.T
    test = monte_carlo_test(
        np.zeros(len(sums)),
        draw_octets(*names),
        lambda octets, axis: sums[np.arange(len(sums)), octets.astype(np.intp)].sum(axis=-1),
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, BLOCK // len(sums)),
    )
    return float(test.pvalue)


def draw_octets(*names: Name) -> Callable[..., Numbers]:
    """Return a function that draws new random bytes (rows, n), as whole numbers, on every call."""
    calls = count()

    def draw(size: tuple[int, ...]) -> Numbers:
        rows, n = size
        raw = words(-(-rows * n // 8), *names, "signs", next(calls)).astype("<u8")
        return raw.view(np.uint8)[: rows * n].reshape(rows, n).astype(np.float64)

    return draw
