"""Heads that share their episodes, and how tables of results mark those that see all queries."""

from pathlib import Path

import pytest
from support import fakes, pairs

from fsbench.results.table import build_tables
from fsbench.results.verification import read_loaded
from leaderboard.ranking.outcomes import extract_outcomes

SOFT = "folder-blobs:5w1s/soft_kmeans@ibm 32px transductive n_query=5"


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    for adaptation in ("linear", "centroid", "soft_kmeans"):
        pairs.write(tmp_path / "r", [5, 6], "a", adaptation=adaptation)
    return tmp_path / "r"


def test_a_table_marks_transductive_results(mixed: Path) -> None:
    results = {one.result.task.head: one.result for one in read_loaded(mixed)}
    plain, shown = build_tables([results["linear"], results["soft_kmeans"]])
    assert shown.rows[0][0] == SOFT
    assert "transductive" not in plain.note
    note = "transductive: sees all queries at once; not comparable with the other rows"
    assert note in shown.note.splitlines()


def read_draws(root: Path) -> dict[str, str]:
    return {str(one.result.task): extract_outcomes(one).draws for one in read_loaded(root)}


def test_heads_share_their_episodes_shots_and_probes_do_not(mixed: Path, tmp_path: Path) -> None:
    fakes.write(mixed, shots=5)
    fakes.write_probe(mixed)
    once, more, centroid, probe = (
        next(draws for task, draws in read_draws(mixed).items() if part in task)
        for part in ("1s/linear", "5s/linear", "1s/centroid", "probe")
    )
    assert once == centroid
    assert len({once, more, probe}) == 3
    other = fakes.dataset("folder-other").model_copy(update={"images_hash": "f" * 64})
    fakes.write(tmp_path / "other", data=other)
    assert once not in read_draws(tmp_path / "other").values()
