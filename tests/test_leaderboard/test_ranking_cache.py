"""The ranking cache changes no ranking: whatever decides one is in the key."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fakes import Heard

from leaderboard.board import ranking_cache
from leaderboard.board.ranking_cache import RankingCache
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.tiers import Ranking, rank_entries

ROOT = Path(__file__).resolve().parents[2]
Arguments = dict[str, Any]


def draw(seed: int, index: range = range(40)) -> Outcomes:
    right = np.random.default_rng(seed).binomial(75, 0.5 + 0.01 * seed, len(index))
    return Outcomes(np.array(index), right.astype(np.uint8), "draws", 75)


@pytest.fixture
def arguments() -> Arguments:
    """Rows of one seed and of three, over other episodes, of one episode, without a column."""
    contenders = {f"one-{i}": {"x": draw(i), "y": draw(i + 9)} for i in range(4)}
    for i in range(3):
        seeds = [[draw(10 * i + 3 * s + column) for s in range(3)] for column in range(2)]
        contenders[f"three-{i}"] = dict(zip("xy", map(Outcomes.average, seeds), strict=True))
    contenders["other"] = {"x": draw(1, range(5, 45)), "y": draw(1, range(5, 45))}
    contenders["single"] = {"x": draw(1, range(1)), "y": draw(2, range(1))}
    contenders["half"] = {"x": draw(1)}
    return {
        "table": "a",
        "contenders": contenders,
        "columns": ["x", "y"],
        "excluded": {"one-3": "short"},
        "averaged": {"both": ["x", "y"], "x": ["x"]},
    }


def rank(folder: Path | None, arguments: Arguments, heard: Heard | None = None) -> Ranking:
    return RankingCache(Path("board"), folder, heard or Heard()).rank(**arguments)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each ranking that was computed."""
    calls: list[int] = []

    def count(*args: Any, **others: Any) -> Ranking:
        calls.append(len(calls))
        return rank_entries(*args, **others)

    monkeypatch.setattr(ranking_cache, "rank_entries", count)
    return calls


def test_none_cold_and_warm_are_one(
    tmp_path: Path, arguments: Arguments, counted: list[int]
) -> None:
    uncached = rank(None, arguments)
    assert repr(rank(tmp_path, arguments)) == repr(uncached)  # nan in several places
    assert len(counted) == 2
    warm = rank(tmp_path, arguments)
    assert len(counted) == 2
    assert repr(warm) == repr(uncached)
    assert {entry.covers for entry in warm.entries} == {
        *("seeds and episodes", "pooled seeds and episodes")
    }
    assert warm.apart
    assert warm.entries[0].averages.keys() == {"both", "x"}
    assert any(entry.missing for entry in warm.unranked)


def change_outcome(arguments: Arguments) -> None:
    outcomes = arguments["contenders"]["one-0"]["x"]
    right = outcomes.right.copy()
    right[[0, 1]] = right[[1, 0]]
    arguments["contenders"]["one-0"]["x"] = replace(outcomes, right=right)


def change_seed(arguments: Arguments) -> None:
    """The mean of a row stays, two of its seeds change places in one episode."""
    row = arguments["contenders"]["three-0"]
    first, second, third = row["x"].seeds
    a, b = first.right.copy(), second.right.copy()
    a[0], b[0] = second.right[0], first.right[0]
    assert a[0] != b[0]
    row["x"] = Outcomes.average([replace(first, right=a), replace(second, right=b), third])


def change(place: str, value: Any) -> Callable[[Arguments], None]:
    return lambda arguments: arguments.update({place: value})


def change_field(**fields: Any) -> Callable[[Arguments], None]:
    def spoil(arguments: Arguments) -> None:
        row = arguments["contenders"]["one-0"]
        row["x"] = replace(row["x"], **fields)

    return spoil


CHANGES: dict[str, Callable[[Arguments], None]] = {
    "an outcome": change_outcome,
    "a seed": change_seed,
    "a name": lambda a: a["contenders"].update(new=a["contenders"].pop("one-0")),
    "an entry without outcomes": lambda a: a["contenders"].update(empty={}),
    "an entry less": lambda a: a["contenders"].pop("one-0"),
    "the episodes": change_field(index=np.arange(1, 41)),
    "the draws": change_field(draws="others"),
    "the queries": change_field(out_of=100),
    "the order of columns": change("columns", ["y", "x"]),
    "a column less": change("columns", ["x"]),
    "no reason": change("excluded", {}),
    "another reason": change("excluded", {"one-3": "limited"}),
    "the averages": change("averaged", {"both": ["x", "y"]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_all_that_decides_a_ranking_is_in_the_key(
    name: str, tmp_path: Path, arguments: Arguments, counted: list[int]
) -> None:
    rank(tmp_path, arguments)
    CHANGES[name](arguments)
    ranked = rank(tmp_path, arguments)
    assert len(counted) == 2
    assert repr(ranked) == repr(rank(None, arguments))


@pytest.mark.parametrize("what", ["compute_code_version", "version"])
def test_other_code_ranks_again(
    what: str,
    tmp_path: Path,
    arguments: Arguments,
    counted: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rank(tmp_path, arguments)
    monkeypatch.setattr(ranking_cache, what, lambda *names: "0")
    heard = Heard()
    rank(tmp_path, arguments, heard)
    assert len(counted) == 2
    assert heard.said == []
    assert len(list((tmp_path / "board-rankings").iterdir())) == 1


def test_tables_and_boards_have_files_of_their_own(
    tmp_path: Path, arguments: Arguments, counted: list[int]
) -> None:
    for _ in range(2):
        for table in ("a", "b"):
            rank(tmp_path, arguments | {"table": table})
        RankingCache(Path("other"), tmp_path).rank(**arguments)
    assert len(counted) == 3


@pytest.mark.parametrize("how", ["flipped", "cut", "empty"])
def test_a_damaged_cache_is_ranked_again(
    how: str, tmp_path: Path, arguments: Arguments, counted: list[int]
) -> None:
    uncached = repr(rank(tmp_path, arguments))
    (file,) = (tmp_path / "board-rankings").iterdir()
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes({"flipped": bytes(content), "cut": bytes(content[:-40]), "empty": b""}[how])
    heard = Heard()
    assert repr(rank(tmp_path, arguments, heard)) == uncached
    assert [str(file) in text and "ranked again" in text for text in heard.said] == [True]
    assert repr(rank(tmp_path, arguments)) == uncached
    assert len(counted) == 2


def test_no_place_for_a_cache_is_said_and_costs_nothing_else(
    tmp_path: Path, arguments: Arguments
) -> None:
    (tmp_path / "file").write_text("")
    heard = Heard()
    assert repr(rank(tmp_path / "file", arguments, heard)) == repr(rank(None, arguments))
    assert "the ranking is not cached" in heard.said[-1]


def test_showing_a_board_again_needs_no_quantiles(tmp_path: Path) -> None:
    """The board has rows of several seeds; SciPy takes as long to load as all entries."""
    script = (
        "import sys; from pathlib import Path; import fsbench\n"
        "board = fsbench.leaderboard(Path('leaderboard/entries'), cache=Path(sys.argv[1]))\n"
        "print(board.to_markdown(), 'scipy.special' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    cold, warm = (
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for _ in range(2)
    )
    assert cold.removesuffix("True\n") == warm.removesuffix("False\n")
