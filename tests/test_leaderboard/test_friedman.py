"""Average ranks, Friedman and the critical difference against the figures of Demsar (2006)."""

from dataclasses import replace
from math import nan, sqrt

import numpy as np
import pytest
from scipy.stats import rankdata
from support.pairs import contenders

from fsbench.core.errors import UsageError
from fsbench.core.statistics import Score
from leaderboard.ranking.friedman import (
    MOST_PAIRED,
    compute_critical_difference,
    find_cliques,
    is_undivided,
    run_friedman,
)
from leaderboard.ranking.tiers import RankedEntry, Ranking, rank_entries

# Table 6: areas under the ROC curve of C4.5 and three tuned variants on 14 data sets. On `voting`
# it prints .975 twice but ranks them 2 and 3, by digits that it does not print: .9751 here.
DEMSAR = """
.763 .768 .771 .798  .599 .591 .590 .569  .954 .971 .968 .967  .628 .661 .654 .657
.882 .888 .886 .898  .936 .931 .916 .931  .661 .668 .609 .685  .583 .583 .563 .625
.775 .838 .866 .875  1.0 1.0 1.0 1.0      .940 .962 .965 .962  .619 .666 .614 .669
.972 .981 .9751 .975 .957 .978 .946 .970
"""
NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def ranking(means: np.ndarray, names: tuple[str, ...]) -> Ranking:
    """Of entries with these means (columns, entries)."""
    columns = tuple(f"c{i}" for i in range(len(means)))
    standings = tuple(
        RankedEntry(
            name, {c: Score(float(m), nan, 1) for c, m in zip(columns, values, strict=True)}
        )
        for name, values in zip(names, means.T, strict=True)
    )
    return Ranking(columns, (standings,), ())


def test_the_example_of_the_paper() -> None:
    means = np.array(DEMSAR.split(), float).reshape(14, 4)
    test = run_friedman(ranking(means, NAMES))
    looser = run_friedman(replace(ranking(means, NAMES), alpha=0.1))
    expected = {"C4.5+m+cf": 1.964, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert list(test.average_ranks) == list(expected)
    assert test.average_ranks == pytest.approx(expected, abs=5e-4)
    assert test.critical_difference == pytest.approx(1.25, abs=0.005)
    assert test.cliques == (tuple(expected),)
    assert looser.critical_difference == pytest.approx(1.12, abs=0.005)
    figure_1a = (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))
    assert looser.cliques == figure_1a
    assert test.columns == 14
    untied = 12 * 14 / 20 * (sum(r**2 for r in test.average_ranks.values()) - 4 * 25 / 4)
    assert untied == pytest.approx(9.28, abs=0.005)
    pairs, quadruple = 3 * (2**3 - 2), 4**3 - 4  # ties, which scipy corrects for and the paper not
    assert test.chi2 == pytest.approx(untied / (1 - (pairs + quadruple) / (14 * 4 * 15)))
    assert 0.01 < test.p < 0.026


@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        (0.05, "1.960 2.343 2.569 2.728 2.850 2.949 3.031 3.102 3.164"),
        (0.10, "1.645 2.052 2.291 2.459 2.589 2.693 2.780 2.855 2.920"),
    ],
)
def test_critical_values_are_those_published(alpha: float, published: str) -> None:
    """Table 5 (a), for 2 to 10 entries; there they are rounded, a unit of the third digit off."""
    for k, q in enumerate(published.split(), start=2):
        difference = compute_critical_difference(k, 7, alpha)
        assert difference / sqrt(k * (k + 1) / 42) == pytest.approx(float(q), abs=1.5e-3)


def test_cliques_are_largest_sets_within_the_difference() -> None:
    average = {"a": 1.0, "b": 1.5, "c": 2.6, "d": 2.7, "e": 5.0}
    assert find_cliques(average, 1.25) == (("a", "b"), ("b", "c", "d"))
    assert find_cliques(average, 0.1) == ()
    assert find_cliques(average, 9.0) == (tuple(average),)
    assert find_cliques({"a": 1.0, "b": 2.25}, 1.25) == ()  # at least the difference: they differ


def test_all_pairs_agree_with_the_critical_difference() -> None:
    means = np.random.default_rng(0).normal(np.arange(6), 2.5, (16, 6))
    names = tuple("abcdef")
    test = run_friedman(ranking(means, names))
    assert test.nemenyi is not None
    assert len(test.nemenyi) == 15
    verdicts = set()
    for pair in test.nemenyi:
        apart = abs(test.average_ranks[pair.a] - test.average_ranks[pair.b])
        assert (pair.p < 0.05) == (apart >= test.critical_difference)
        together = any({pair.a, pair.b} <= set(clique) for clique in test.cliques)
        assert together == (pair.p >= 0.05)
        verdicts.add(together)
    assert verdicts == {True, False}


def test_all_pairs_as_recorded_from_scikit_posthocs() -> None:
    """The upper triangle that posthoc_nemenyi_friedman of scikit-posthocs 0.17.1 returned."""
    recorded = {
        ("C4.5", "C4.5+m"): 0.08867270928888271,
        ("C4.5", "C4.5+cf"): 0.9561771752218107,
        ("C4.5", "C4.5+m+cf"): 0.07418479506874454,
        ("C4.5+m", "C4.5+cf"): 0.2592280701547286,
        ("C4.5+m", "C4.5+m+cf"): 0.999859449385133,
        ("C4.5+cf", "C4.5+m+cf"): 0.22669688602641525,
    }
    pairs = run_friedman(ranking(np.array(DEMSAR.split(), float).reshape(14, 4), NAMES)).nemenyi
    assert pairs is not None
    p_of_pairs = {frozenset((pair.a, pair.b)): pair.p for pair in pairs}
    assert len(p_of_pairs) == len(recorded)
    for names, p in recorded.items():
        assert p_of_pairs[frozenset(names)] == pytest.approx(p, rel=1e-9)


def test_what_is_undivided_is_one_clique_and_hardly_another_ranking_is_missed() -> None:
    means = np.array(DEMSAR.split(), float).reshape(14, 4)
    assert is_undivided(ranking(means, NAMES))
    assert not is_undivided(replace(ranking(means, NAMES), alpha=0.1))
    rng, answers = np.random.default_rng(2), []
    for _ in range(200):
        entries, columns = rng.integers(3, 6), rng.integers(2, 12)
        slope = rng.uniform(0, 0.6) * np.arange(entries)
        means = rng.normal(slope, 1, (columns, entries)).round(1)
        drawn = ranking(means, tuple("abcde"[:entries]))
        test = run_friedman(drawn)
        answers.append((is_undivided(drawn), tuple(test.average_ranks) in test.cliques))
        ranks = rankdata(-means, axis=1).mean(axis=0)
        assert sorted(test.average_ranks.values()) == sorted(ranks)
    assert (True, False) not in answers
    assert answers.count((False, True)) < 5 < answers.count((False, False))


def test_entries_that_tie_everywhere_are_not_tested_and_order_does_not_matter() -> None:
    tied = run_friedman(ranking(np.full((5, 3), 0.5), ("a", "b", "c")))
    assert (tied.chi2, tied.p) == (0.0, 1.0)
    assert set(tied.average_ranks.values()) == {2.0}
    means = np.random.default_rng(1).normal(0, 1, (9, 4))
    one, other = ranking(means, tuple("abcd")), ranking(means[:, ::-1], tuple("dcba"))
    assert run_friedman(one) == run_friedman(other)


def test_equal_outcomes_in_another_order_tie() -> None:
    """Their means differ in the last bit."""
    values = [0.1, 0.2, 0.3]
    assert np.mean(values) != np.mean(values[::-1])
    board = {name: dict.fromkeys("xy", values) for name in "ab"}
    board |= {"c": dict.fromkeys("xy", values[::-1])}
    assert set(run_friedman(rank_entries(contenders(board), "xy")).average_ranks.values()) == {2.0}


def test_too_few_are_refused_and_many_entries_have_no_table_of_pairs() -> None:
    for shape in ((2, 2), (1, 3)):
        with pytest.raises(UsageError, match="needs 3 entries and 2 columns"):
            run_friedman(ranking(np.zeros(shape), tuple("abc")[: shape[1]]))
    names = tuple(f"entry-{i}" for i in range(MOST_PAIRED + 1))
    test = run_friedman(ranking(np.random.default_rng(1).normal(0, 1, (9, len(names))), names))
    assert test.nemenyi is None
    assert test.critical_difference > 0
