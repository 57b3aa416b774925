"""Statistics of episode accuracies: mean and interval, paired difference, Holm's correction.

The interval is 1.96 * s / sqrt(n) with ddof 1, as in cpphoo/STARTUP (compile_result.py); ddof 0 of
IBM/cdfsl-benchmark (finetune.py) differs by less than 0.001 points at 600 episodes. It covers the
sampling of episodes, not pretraining seeds. All values are fractions in [0, 1].

If all n outcomes are 0, or all are 1, the half-width is the distance to the bound of Wilson's
interval of n trials, z²/(n + z²); the queries of an episode count as one trial.
"""

import math
from collections.abc import Sequence
from itertools import count
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsbench.core.errors import UsageError
from fsbench.core.seeding import Name, words

Numbers = NDArray[np.float64]
Z95 = 1.96
"""Half-width of a 95 % interval in standard errors, as the papers use it."""


class Score(NamedTuple):
    """The mean of n outcomes and the half-width of its 95 % interval (nan for one outcome)."""

    mean: float
    ci95: float
    n: int


class Paired(NamedTuple):
    """The mean of A - B over n shared outcomes, its standard error, and its two-sided p.

    freedom: of the standard error, by Welch and Satterthwaite; fewest: outcomes of the smallest
    column; half: half-width of the 95 % interval where it is not 1.96 standard errors.
    """

    gap: float
    se: float
    p: float
    n: int
    freedom: float = math.nan
    fewest: int = 0
    half: float = math.nan

    @property
    def ci95(self) -> float:
        return Z95 * self.se if math.isnan(self.half) else self.half


def score(values: ArrayLike) -> Score:
    """Return the mean and interval of accuracies (n,). Raise UsageError if there are none."""
    return score_rows([np.asarray(values, dtype=np.float64)])[0]


def balanced_score(right: NDArray[np.bool_], counts: Sequence[int]) -> Score:
    """Return the mean over classes of the share of right images, with its interval.

    right (N,): class by class, counts[c] images of class c. The variance is the sum of p (1 - p) /
    n over the C classes by C², with Agresti and Coull's p, so that none is 0.
    """
    sizes = np.array([n for n in counts if n], np.float64)
    hits = np.add.reduceat(right.astype(np.float64), (sizes.cumsum() - sizes).astype(np.intp))
    p = (hits + Z95**2 / 2) / (sizes + Z95**2)
    half = Z95 * math.sqrt((p * (1 - p) / sizes).sum()) / sizes.size
    return Score(float((hits / sizes).mean()), half, right.size)


def score_rows(rows: Sequence[Numbers]) -> list[Score]:
    """Return the `score` of each row of outcomes (n,), of equally long rows at once."""
    scores: dict[int, Score] = {}
    for n in {row.size for row in rows}:
        if n == 0:
            raise UsageError("no outcomes to average", fix="evaluate at least one episode")
        positions = [i for i, row in enumerate(rows) if row.size == n]
        x = np.stack([rows[i] for i in positions])
        halves = np.full(len(x), math.nan)
        if n > 1:
            is_certain = (x == 0).all(axis=1) | (x == 1).all(axis=1)
            halves = Z95 * x.std(axis=1, ddof=1) / math.sqrt(n)
            halves[is_certain] = Z95**2 / (n + Z95**2)
        numbers = zip(x.mean(axis=1).tolist(), halves.tolist(), strict=True)
        scores |= {i: Score(*pair, n) for i, pair in zip(positions, numbers, strict=True)}
    return [scores[i] for i in range(len(rows))]


def paired(a: Sequence[Numbers], b: Sequence[Numbers], draws: Sequence[str] = ()) -> Paired:
    """Return the unweighted mean over columns of the mean of A - B, with a z test.

    a, b: accuracies per column, of the same episodes in the same order. draws: a name per column;
    gaps of columns of one name, over the same episodes, are added episode by episode, others count
    as independent. Equal entries give p = 1.
    """
    gaps = [np.subtract(x, y, dtype=np.float64) for x, y in zip(a, b, strict=True)]
    return measure_rows([gaps], [draws])[0]


def measure_rows(rows: Sequence[Sequence[Numbers]], draws: Sequence[Sequence[str]]) -> list[Paired]:
    """Return the mean over columns (n,) of each row and its error; draws: as in `paired`."""
    alike: dict[tuple[tuple[str, ...], tuple[int, ...]], list[int]] = {}
    for i, (row, names) in enumerate(zip(rows, draws, strict=True)):
        alike.setdefault((tuple(names), tuple(column.size for column in row)), []).append(i)
    measured: dict[int, Paired] = {}
    for (names, sizes), positions in alike.items():
        columns = [np.stack(column) for column in zip(*(rows[i] for i in positions), strict=True)]
        means = np.stack([column.mean(axis=1) for column in columns], axis=1).mean(axis=1)
        by_draw: dict[str | int, list[Numbers]] = {}
        for c, column in enumerate(columns):
            by_draw.setdefault(names[c] if names else c, []).append(column)
        groups = [*by_draw.values()]
        squares = np.stack([_standard_error(group) for group in groups]) ** 2
        errors = np.sqrt(sum(squares)) / len(columns)  # in order, for one row as for many
        freedoms = combine_freedom(squares, [min(g.shape[1] for g in group) for group in groups])
        numbers = np.stack([means, errors, freedoms], axis=1).tolist()
        for i, (gap, se, freedom) in zip(positions, numbers, strict=True):
            measured[i] = z_test(gap, se, sum(sizes), freedom, min(sizes))
    return [measured[i] for i in range(len(rows))]


def paired_by_seed(gaps: Sequence[float]) -> Paired:
    """Return the mean of gaps, one per seed, with Student's t test; p = 1 where all are equal."""
    gap, n = float(np.mean(gaps)), len(gaps)
    if np.ptp(gaps) < 1e-9:
        return Paired(gap, math.nan, 1.0, n)
    from scipy.stats import ttest_1samp

    test = ttest_1samp(gaps, 0.0)
    half = float(test.confidence_interval(0.95).high) - gap
    return Paired(gap, gap / float(test.statistic), float(test.pvalue), n, n - 1, n, half)


def combine_freedom(squares: Numbers, sizes: Sequence[int]) -> Numbers:
    """Return Welch's and Satterthwaite's degrees of freedom of sums of squared errors (G, N).

    sizes: outcomes of each of the G groups; a sum without any error has those of the smallest one.
    """
    freedoms = np.maximum(np.asarray(sizes, np.float64) - 1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        combined = sum(squares) ** 2 / sum(squares**2 / freedoms[:, None])
    return np.asarray(np.where(np.isfinite(combined), combined, freedoms.min()), np.float64)


def z_test(gap: float, se: float, n: int, freedom: float, fewest: int) -> Paired:
    """Return a gap with its two-sided p, which is nan if the standard error is."""
    p = float(gap == 0.0) if se == 0.0 else math.erfc(abs(gap) / se / math.sqrt(2.0))
    return Paired(gap, se, p, n, freedom, fewest)


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values of one family of tests adjusted by Holm's step-down rule."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    return [float(x) for x in np.minimum(steps, 1.0)[np.argsort(order)]]


def _standard_error(group: Sequence[Numbers]) -> Numbers:
    """Return the standard error of the sum of the mean gaps (..., n) of a group's columns.

    Columns of unequal length count as fully correlated, the worst case; nan for one episode.
    """
    if len({g.shape for g in group}) > 1:
        return np.asarray(sum(_standard_error([g]) for g in group))
    total = np.sum(group, axis=0)
    n = total.shape[-1]
    spread = total.std(axis=-1, ddof=1) if n > 1 else np.full(total.shape[:-1], np.nan)
    return spread / math.sqrt(n)


RESAMPLES = 9999
"""Random swaps if there are too many to try all; p is then at least 0.0002."""
BLOCK = 500_000
"""Bytes of random signs per batch."""
OCTETS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
"""The eight signs that each byte encodes, (256, 8)."""
DIGITS = 12
"""Decimals to which differences are rounded before they are compared with zero."""


def shares(
    index: Sequence[NDArray[np.int64]], gaps: Sequence[Numbers], draws: Sequence[str]
) -> Numbers:
    """Return what each episode adds to the unweighted mean over columns of the mean gap.

    index, gaps: one array (n,) per column; draws: as in `paired`, for equal index.
    """
    per_draw = []
    for draw in dict.fromkeys(draws):
        columns = [i for i, name in enumerate(draws) if name == draw]
        _, episode = np.unique(np.concatenate([index[i] for i in columns]), return_inverse=True)
        weights = np.concatenate([gaps[i] / gaps[i].size for i in columns])
        per_draw.append(np.bincount(episode, weights=weights))
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
    if 2**scaled.size > RESAMPLES:
        return sample_sign_p(scaled, *names)
    from scipy.stats import permutation_test

    test = permutation_test(
        (scaled,),
        lambda x, axis: x.sum(axis=axis).round(DIGITS),  # equal sums must tie
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
    )
    return float(test.pvalue)


def sample_sign_p(parts: Numbers, *names: Name) -> float:
    """Return p against random signs of the parts (n,), eight signs per byte."""
    from scipy.stats import monte_carlo_test

    calls = count()

    def draw(size: tuple[int, ...]) -> Numbers:
        """Draw new bytes (rows, n), as whole numbers, on every call."""
        rows, n = size
        raw = words(-(-rows * n // 8), *names, "signs", next(calls)).astype("<u8")
        return raw.view(np.uint8)[: rows * n].reshape(rows, n).astype(np.float64)

    sums = np.pad(parts, (0, -parts.size % 8)).reshape(-1, 8) @ OCTETS.T
    test = monte_carlo_test(
        np.zeros(len(sums)),
        draw,
        lambda octets, axis: sums[np.arange(len(sums)), octets.astype(np.intp)].sum(axis=-1),
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, BLOCK // len(sums)),
    )
    return float(test.pvalue)


DETECTABLE = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
"""Gap, in standard errors, that a two-sided z test of level 0.05 finds with power 0.8: 2.80."""


def episodes_needed(sd: float, gap: float) -> int:
    """Return the number of episodes per task that detect a gap with power 0.8, at least two."""
    return max(2, math.ceil((DETECTABLE * sd / gap) ** 2))
