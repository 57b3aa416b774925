"""The result cache changes no outcome of a check and no number, however it or an entry changes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fakes
from support.fakes import Heard

from fsbench.core.errors import ValidationFailed
from leaderboard.ranking.outcomes import VerifiedResult, extract_outcomes
from leaderboard.submission import result_cache
from leaderboard.submission.cache_file import list_sources
from leaderboard.submission.result_cache import ResultCache, open_cache

ROOT = Path(__file__).resolve().parents[2]


def read(
    board: Path, cache: Path | None, report: Heard | None = None
) -> tuple[VerifiedResult, ...]:
    with open_cache(board, cache, report or Heard()) as results:
        return results.read_results(board)


def facts(cells: tuple[VerifiedResult, ...]) -> list[tuple[Any, ...]]:
    """All that anyone may learn from cells without reading their records."""
    return [
        (c.path, c.result, o.index.tolist(), o.values.tolist(), o.draws)
        for c in cells
        for o in [c.outcomes]
    ]


def describe(board: Path, cache: Path | None) -> object:
    """What reading gives: the facts, or the error."""
    try:
        return facts(read(board, cache))
    except ValidationFailed as error:
        return str(error)


def board(folder: Path) -> Path:
    """Whole, short, shifted and probed results."""
    fakes.write(folder, 0.6)
    fakes.write(folder, 0.4, name="b", index=range(25))
    fakes.write(folder, 0.7, name="c", index=range(3, 30))
    fakes.write_probe(folder, 0.5, name="c")
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board that no test changes."""
    return board(tmp_path_factory.mktemp("board"))


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing can be verified, only known."""

    def refuse(path: object) -> None:
        raise AssertionError(f"{path} is verified again")

    for name in ("read_verified", "select_verified"):
        monkeypatch.setattr(f"leaderboard.submission.result_cache.{name}", refuse)


def test_none_cold_and_warm_are_one(plain: Path, tmp_path: Path) -> None:
    uncached = facts(read(plain, None))
    assert facts(read(plain, tmp_path)) == uncached
    assert facts(read(plain, tmp_path)) == uncached
    assert len(uncached) == 4


def test_the_second_reading_opens_no_result(
    plain: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(plain, tmp_path)
    request.getfixturevalue("unverified")
    monkeypatch.setattr("leaderboard.submission.result_cache.hash_file", None)
    heard = Heard()
    assert len(read(plain, tmp_path, heard)) == 4
    assert heard.said == []


def test_outcomes_are_those_of_the_records(plain: Path, tmp_path: Path) -> None:
    for cell in read(plain, tmp_path) + read(plain, tmp_path):
        whole = extract_outcomes(result_cache.read_verified(cell.path))
        assert cell.outcomes.values.tolist() == whole.values.tolist()
        if cell.result.manifest_hash:
            assert cell.outcomes.values.tolist() == cell.records.accuracy.tolist()  # type: ignore[union-attr]
            assert cell.outcomes.index.tolist() == cell.records.index.tolist()  # type: ignore[union-attr]


def flip(file: Path, place: float) -> None:
    """One bit, leaving size and mtime."""
    stat, content = file.stat(), bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["json", "parquet"]), st.integers(0, 3), st.floats(0, 1, exclude_max=True))
def test_a_flipped_bit_of_an_entry_is_found(
    plain: Path, tmp_path_factory: pytest.TempPathFactory, kind: str, which: int, place: float
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    read(plain, cache)
    file = sorted(plain.rglob(f"5w*.{kind}"))[which % 3]
    before = file.read_bytes()
    flip(file, place)
    try:
        assert describe(plain, cache) == describe(plain, None)
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize("place", [0.0, 0.01, 0.02, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("how", ["flipped", "cut"])
def test_a_damaged_cache_is_rebuilt(
    plain: Path, tmp_path: Path, place: float, how: str, request: pytest.FixtureRequest
) -> None:
    uncached = facts(read(plain, tmp_path))
    (file,) = (tmp_path / "board-results").iterdir()
    whole, heard = file.read_bytes(), Heard()
    if how == "flipped":
        flip(file, place)
    else:
        file.write_bytes(whole[: int(place * len(whole))])
    assert facts(read(plain, tmp_path, heard)) == uncached
    assert [str(file) in text and "verified again" in text for text in heard.said] == [True]
    request.getfixturevalue("unverified")
    assert facts(read(plain, tmp_path)) == uncached


def test_cached_results_of_other_content_are_not_believed(tmp_path: Path) -> None:
    """The same names, other outcomes: the cache of one board put in place of that of another."""
    for name, accuracy in (("true", 0.3), ("forged", 0.9)):
        fakes.write(tmp_path / name, accuracy)
        read(tmp_path / name, tmp_path / f"{name} cache")
    (mine,) = (tmp_path / "true cache" / "board-results").iterdir()
    (other,) = (tmp_path / "forged cache" / "board-results").iterdir()
    mine.write_bytes(other.read_bytes())
    expected = facts(read(tmp_path / "true", None))
    assert facts(read(tmp_path / "true", tmp_path / "true cache")) == expected


def test_copies_are_known_by_their_content(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """New times, equal bytes: hashed again, not verified again."""
    folder = board(tmp_path / "board")
    expected = facts(read(folder, tmp_path / "cache"))
    for file in folder.rglob("*w*.*"):
        os.utime(file)
    request.getfixturevalue("unverified")
    assert facts(read(folder, tmp_path / "cache")) == expected


def test_rules_that_changed_decide_again(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(plain, tmp_path)
    monkeypatch.setattr(result_cache, "compute_code_version", lambda: "0" * 64)
    heard, again = Heard(), []
    monkeypatch.setattr(result_cache, "read_verified", lambda path: again.append(path) or old(path))
    read(plain, tmp_path, heard)
    assert len(again) == 4
    assert "another version" in heard.said[0]


old = result_cache.read_verified


def test_all_code_that_decides_is_in_the_version() -> None:
    """Whatever of ours reading imports, the settings of a fitted head with it."""
    script = (
        "import sys, leaderboard.submission.result_cache; from fsbench.core.specs import FITTED\n"
        "FITTED.load('soft_kmeans')\n"
        "ours = ('fsbench', 'leaderboard', 'protocols')\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] in ours))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    assert {Path(name) for name in run.stdout.decode().split()} <= set(list_sources())


def test_a_broken_entry_costs_the_others_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = board(tmp_path / "board")
    last = sorted(folder.rglob("*.parquet"))[-1]
    whole = last.read_bytes()
    last.write_bytes(b"no")
    with pytest.raises(ValidationFailed, match=last.name):
        read(folder, tmp_path / "cache")
    last.unlink()
    with pytest.raises(ValidationFailed, match="are missing"):
        read(folder, tmp_path / "cache")
    last.write_bytes(whole)
    last.rename(last.with_suffix(".aside"))
    last.with_suffix(".json").unlink()
    request.getfixturevalue("unverified")
    assert len(read(folder, tmp_path / "cache")) == 3


def test_what_left_the_board_leaves_the_cache(tmp_path: Path) -> None:
    folder = board(tmp_path / "board")
    read(folder, tmp_path / "cache")
    gone = next(folder.rglob("5w*.json"))
    gone.unlink()
    read(folder, tmp_path / "cache")
    names = ResultCache(folder, tmp_path / "cache").previous.keys()
    assert len(names) == 3
    assert gone.relative_to(folder).as_posix() not in names


def test_processes_verify_what_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Several processes change no result, and leave a wrong one to the reader."""
    for name, value in (("MANY", 2), ("BATCH", 1)):
        monkeypatch.setattr(result_cache, name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    folder = board(tmp_path / "board")
    uncached = facts(read(folder, None))
    last = sorted(folder.rglob("*.parquet"))[-1]
    whole = last.read_bytes()
    last.write_bytes(b"no")
    with open_cache(folder, tmp_path / "cache", Heard()) as results:
        results.verify_missing([folder])
        assert len(results.fresh) == (3 if sys.platform == "linux" else 0)
        with pytest.raises(ValidationFailed, match=last.name):
            results.read_results(folder)
        results.current |= results.fresh
    last.write_bytes(whole)
    last.with_suffix(".json").unlink()
    last.unlink()
    request.getfixturevalue("unverified")
    assert facts(read(folder, tmp_path / "cache")) == [
        fact for fact in uncached if fact[0].with_suffix(".parquet") != last
    ]


def test_no_place_for_a_cache_is_said_and_costs_nothing_else(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    heard = Heard()
    assert facts(read(plain, tmp_path / "file", heard)) == facts(read(plain, None))
    assert "results are not cached" in heard.said[-1]


def test_a_full_disk_leaves_the_old_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = board(tmp_path / "board")
    read(folder, tmp_path / "cache")
    (file,) = (tmp_path / "cache" / "board-results").iterdir()
    before = file.read_bytes()
    fakes.write(folder, 0.9, name="d")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    heard = Heard()
    assert len(read(folder, tmp_path / "cache", heard)) == 5
    assert "No space left" in heard.said[-1]
    assert [file_of_cache.read_bytes() for file_of_cache in file.parent.iterdir()] == [before]


def test_two_processes_at_once(plain: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from leaderboard.submission.result_cache import open_cache\n"
        "for i in range(3):\n"
        "    with open_cache(Path(sys.argv[1]), Path(sys.argv[2])) as results:\n"
        "        print(*(c.result.records_digest for c in results.read_results(Path(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", script, str(plain), str(tmp_path)]
    pipe = subprocess.PIPE
    runs = [subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) for _ in range(2)]
    ends = [(*run.communicate(), run.returncode) for run in runs]
    line = " ".join(cell.result.records_digest for cell in read(plain, None)) + "\n"
    assert ends == [((line * 3).encode(), b"", 0)] * 2
    assert len(list((tmp_path / "board-results").iterdir())) == 1


def test_records_that_changed_since_are_refused(tmp_path: Path) -> None:
    fakes.write(tmp_path / "a", 0.3)
    fakes.write(tmp_path / "b", 0.9)
    (cell,) = read(tmp_path / "a", None)
    (other,) = read(tmp_path / "b", None)
    cell.path.with_suffix(".parquet").write_bytes(other.path.with_suffix(".parquet").read_bytes())
    with pytest.raises(ValidationFailed, match="changed while"):
        cell.records  # noqa: B018
