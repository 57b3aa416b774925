"""Which results share their draws: heads on the same episodes, and no others."""

from pathlib import Path

from support import fakes, pairs

from fsbench.results.verification import read_loaded
from leaderboard.ranking.outcomes import extract_outcomes


def read_draws(root: Path) -> dict[str, str]:
    return {str(one.result.task): extract_outcomes(one).draws for one in read_loaded(root)}


def test_heads_share_their_episodes_shots_and_probes_do_not(tmp_path: Path) -> None:
    mixed = tmp_path / "r"
    for adaptation in ("linear", "centroid"):
        pairs.write(mixed, [5, 6], "a", adaptation=adaptation)
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
