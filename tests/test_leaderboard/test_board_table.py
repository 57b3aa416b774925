"""What columns share: the same episodes under other adaptations, the same test images of probes."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from support import fakes

from fsbench.core.progress import Silent
from fsbench.core.specs import EpisodicSpec
from fsbench.results import ResultStore
from fsbench.results.verification import read_cells
from leaderboard.near_copies import OutcomeRow, describe_suspicions, find_suspicious_pairs
from leaderboard.ranking.outcomes import Outcomes, count_up
from leaderboard.repository import init_board
from leaderboard.store import Board
from leaderboard.tables import extract_outcomes


def draws(root: Path) -> dict[str, str]:
    return {str(cell.result.task): extract_outcomes(cell).draws for cell in read_cells(root)}


@pytest.mark.parametrize(
    ("n", "out_of", "rows"), [(600, 75, 60), (10_000, 1, 40), (10_000, 300, 20)]
)
def test_suspicious_pairs_are_those_of_all_comparisons(n: int, out_of: int, rows: int) -> None:
    """Near copies, equal weights with other outcomes, and neither; in the order of the rows."""
    rng = np.random.default_rng(n)
    models, group = rng.integers(0, out_of + 1, (rows // 3, n)), []
    for i in range(rows):
        right, flips = (
            models[i % len(models)].copy(),
            rng.integers(0, n, rng.choice([0, 9, n // 5])),
        )
        right[flips] = rng.integers(0, out_of + 1, flips.size)
        outcomes = Outcomes(count_up(n), right, "draws", out_of)
        weights = str(rng.integers(rows))
        group.append(OutcomeRow(f"e{i}", "linear", ("c", "d", out_of, n), weights, outcomes))
    expected = []
    for i, a in enumerate(group):
        for j, b in enumerate(group[i + 1 :], i + 1):
            x, y = (row.outcomes.right.astype(np.float64) for row in (a, b))
            apart, accuracy = ((x - y) ** 2).sum(), (x + y).sum() / (2 * n * out_of)
            chance = 2 * accuracy * (1 - accuracy) * n * out_of
            near = chance >= 50 and apart <= 0.1 * chance
            if apart > 0.01 * n * out_of if a.weights == b.weights else near:
                expected.append((i, j, a.weights == b.weights))
    pairs, same = find_suspicious_pairs(group)
    assert np.column_stack([pairs, same]).tolist() == [list(map(int, pair)) for pair in expected]
    assert {equal for *_, equal in expected} == {True, False}


def test_many_suspicions_of_one_reason_are_counted() -> None:
    others = {"near copy of": [f"e{i}" for i in range(22)], "other outcomes than": ["x"]}
    assert describe_suspicions(others) == ("near copy of e0 and 21 more", "other outcomes than x")


def test_reading_a_board_without_entries_reports_no_progress(tmp_path: Path) -> None:
    report = Mock(spec=Silent)
    init_board(tmp_path / "board")
    assert Board.open(tmp_path / "board").entries(None, report) == []
    report.task.assert_not_called()


def test_adaptations_share_their_episodes_shots_and_probes_do_not(tmp_path: Path) -> None:
    data = fakes.dataset()
    for shots in (1, 5):
        fakes.write(tmp_path, shots=shots)
    linear = fakes.episodic(1)
    spec = EpisodicSpec(
        adaptation="centroid",
        episode=linear.episode,
        n_episodes=linear.n_episodes,
        image=linear.image,
    )
    cell = ResultStore(tmp_path).cell(fakes.facts(), data, spec)
    cell.write_block(0, fakes.episodes(spec, data, range(fakes.N_EPISODES), 0.5))
    cell.finish(list(range(fakes.N_EPISODES)), provenance=fakes.provenance())
    fakes.write_probe(tmp_path)
    draws_by_column = draws(tmp_path)
    assert len(draws_by_column) == 4
    once, more, centroid, probe = (
        next(d for task, d in draws_by_column.items() if part in task)
        for part in ("1s/linear", "5s/linear", "1s/centroid", "probe")
    )
    assert once == centroid
    assert len({once, more, probe}) == 3
    other = fakes.dataset("folder-other").model_copy(update={"images_hash": "f" * 64})
    fakes.write(tmp_path / "other", data=other)
    assert once not in draws(tmp_path / "other").values()
