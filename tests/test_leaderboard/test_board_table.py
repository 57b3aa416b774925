"""What columns share: the same episodes under other adaptations, the same test images of probes."""

from pathlib import Path
from unittest.mock import Mock

from support import fakes

from fsbench.core.progress import Silent
from fsbench.core.specs import EpisodicSpec
from fsbench.results.store import ResultStore
from fsbench.results.verification import read_cells
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.repository import init_board
from leaderboard.store import Board


def draws(root: Path) -> dict[str, str]:
    return {str(cell.result.task): extract_outcomes(cell).draws for cell in read_cells(root)}


def test_reading_a_board_without_entries_reports_no_progress(tmp_path: Path) -> None:
    report = Mock(spec=Silent)
    init_board(tmp_path / "board")
    assert Board.open(tmp_path / "board").entries(report) == []
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
    cell = ResultStore(tmp_path, fakes.facts(), data, spec)
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
