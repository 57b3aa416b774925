"""Counts of episodes by accuracy, against counting by hand."""

import numpy as np

from leaderboard.ranking.outcomes import Outcomes
from leaderboard.site import packing


def outcomes(right: list[int], out_of: int) -> Outcomes:
    return Outcomes(np.arange(len(right)), np.array(right), "d", out_of)


def test_every_count_of_75_queries_falls_in_its_bin() -> None:
    counts = packing.count_accuracies(outcomes(list(range(76)), 75))
    assert counts.tolist() == [3] * 24 + [4]


def test_chance_of_five_ways_begins_a_bin() -> None:
    assert packing.count_accuracies(outcomes([15], 75))[5] == 1
    assert packing.count_accuracies(outcomes([14], 75))[4] == 1


def test_table_is_row_by_row_little_endian_without_probes() -> None:
    columns = ("isic:5w1s/linear@ibm 32px", "isic:5w5s/linear@ibm 32px", "isic:probe 32px")
    many = outcomes([30] * 300, 75)
    entries = {"a": {columns[1]: many, columns[2]: many}, "b": {columns[0]: many}}
    data = packing.pack_histograms(entries, "ab", columns)
    cells = np.frombuffer(data, "<u2").reshape(2, 3, packing.BINS)
    assert cells[0, 1, 10] == cells[1, 0, 10] == cells.sum() / 2 == 300
