"""No entry displaces, unranks, joins, splits or relabels another: it can only be better.

Six faults, each acted out as a pull request in git, then pull requests that hypothesis makes up. A
base board has two controls, rows of several seeds and of one, a signed badge and a failed one.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from support import fakes, methods
from support.badges import add_badge, make_badge, make_key, needs_ssh_keygen
from support.cli import call

from fsbench.api.leaderboard import leaderboard
from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts, DatasetRecord, Result
from fsbench.results import assembly, outcomes
from fsbench.results.entry import read_entry, write_entry
from leaderboard.badges import Badge
from leaderboard.methods import Gain, read_method_boards
from leaderboard.repository import init_board
from leaderboard.rules.board import inspect_board
from leaderboard.rules.changes import CHANGE_RULES, compare_folders
from leaderboard.signatures import (
    ENTRY_NAMESPACE,
    read_public_key,
    sign_file,
)
from leaderboard.store import Board
from leaderboard.tables import rank_board

pytestmark = needs_ssh_keygen
GIT = {
    **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER")
       for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"],
}  # fmt: skip
EARLIER, BEFORE = "2025-02-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"
SHOTS = (1, 5)
IMAGES = fakes.dataset()


@dataclass(frozen=True)
class Made:
    """An entry as a forger writes it: facts and accuracy of each network, over these columns."""

    name: str
    networks: tuple[tuple[BackboneFacts, float], ...]
    shots: tuple[int, ...] = SHOTS
    data: DatasetRecord = IMAGES
    authors: str = "A. Author"
    submitted: str = BEFORE
    draws: str = ""
    n_controls: int = 0

    def write(self, board: Path, key: Path | None = None) -> None:
        cells: list[tuple[Result, EpisodeRecords]] = []
        for facts, accuracy in self.networks:
            for shots in self.shots:
                spec = fakes.episodic(shots)
                name = self.draws or facts.weights_hash or "random"
                records = fakes.episodes(spec, self.data, range(40), accuracy, name)
                made = (facts, self.data, spec, records, False, fakes.provenance())
                cells.append((assembly.build_result(*made), records))
        declared = fakes.DECLARATION.model_copy(update={"name": self.name, "authors": self.authors})
        write_entry(
            board / self.name,
            cells,
            [facts.identity for facts, _ in self.networks[: self.n_controls]],
            outcomes.SMALL,
            declaration=declared,
            submitted=self.submitted,
            fsbench="0.1.0",
            key=read_public_key(key) if key else None,
        )
        if key:
            sign_file(board / self.name / "entry.json", key, ENTRY_NAMESPACE)


def seeds(method: str, accuracy: float, numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple((methods.facts(method, seed), accuracy + 0.01 * seed) for seed in numbers)


BASE = (
    Made("normal", seeds("normal", 0.5, (0, 1, 2)), authors="Maintainer"),
    Made("random", ((methods.random_init(0), 0.25),), authors="Maintainer"),
    Made("lw", seeds("lw", 0.7, (0, 1, 2)), authors="L. Lw"),
    Made("swr", seeds("swr", 0.55, (0, 1)), authors="S. Swr"),
    Made("seal", seeds("seal", 0.6, (0,)), authors="S. Seal"),
    Made("plain", ((fakes.facts("plain"), 0.35),), authors="P. Plain"),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a settled board, beside the keys of a judge and of the owner of `plain`."""
    root = tmp_path_factory.mktemp("trust")
    board = root / "board"
    init_board(board)
    judge, owner = make_key(root, "judge"), make_key(root, "owner")
    for made in BASE:
        made.write(board, owner if made.name == "plain" else None)
    signer = judge.with_suffix(".pub").read_text().strip()
    trusted = {"controls": ("normal", "random"), "signers": (signer,)}
    write_record(board / "board.json", Board.open(board).file.model_copy(update=trusted))
    with Board.open(board).lock():
        Board.open(board).record_changes()
    add_badge(board, "lw", key=judge)
    add_badge(board, "plain", failed(board, "plain"), judge)
    with Board.open(board).lock():
        Board.open(board).record_changes()
    (board / ".lock").unlink()
    git(board, "init", "-q", "-b", "main", "--template=")
    commit(board)
    return root


def failed(board: Path, name: str) -> Badge:
    """A badge that found a flip in the environment of the entry."""
    return make_badge(board, name, flipped=1)


def git(board: Path, *words: str) -> str:
    command = ["git", "-C", str(board), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=GIT).stdout


def commit(board: Path) -> None:
    git(board, "add", "-A")
    git(board, "commit", "-q", "-m", "change")


@pytest.fixture
def board(base: Path, tmp_path: Path) -> Path:
    """A clone with the branch of a pull request."""
    board = Path(shutil.copytree(base / "board", tmp_path / "board"))
    git(board, "switch", "-q", "-c", "proposal")
    return board


def check(board: Path) -> int:
    commit(board)
    return call("leaderboard", "check", "--board", board, "--base", "main")


def merge(board: Path) -> None:
    """What the workflow does after a merge."""
    assert call("leaderboard", "readme", "--board", board) == 0


@dataclass(frozen=True)
class Standing:
    """What a board says of one entry in one table; gains: column and kind -> gap and interval."""

    place: tuple[int | None, str]
    overall: float | None
    seeds: int
    badge: str
    controls: dict[str, str]
    gains: dict[tuple[str, str], tuple[float, float | None, str]]


def read_standings(board: Path) -> dict[tuple[tuple[str, ...], str], Standing]:
    """Return columns and entry -> its standing, of the tables that rank."""
    opened = Board.open(board)
    badges = {entry.name: str(entry.verification) for entry in opened.entries()}
    standings = {}
    rows = {
        (made.columns, row.name): row for made in read_method_boards(board) for row in made.rows
    }
    for table in rank_board(board):
        if table.track is not None and table.track.extra:
            continue
        columns = table.ranking.columns
        for entry in table.ranking.entries:
            row = rows.get((columns, entry.name))
            gains: dict[tuple[str, str], Gain] = {}
            for column, score in row.scores.items() if row else ():
                gains |= {(column, kind): gain for kind, gain in score.gains.items()}
            if row and row.overall:
                gains |= {("", kind): gain for kind, gain in row.overall.gains.items()}
            standings[columns, entry.name] = Standing(
                (entry.tier, entry.reason),
                entry.overall,
                len(table.rows[entry.name].networks),
                badges[entry.name],
                {**row.controls} if row else {},
                {key: (g.gap, g.ci95, g.covers) for key, g in gains.items()},
            )
    return standings


def assert_equal_standing(board: Path, before: dict[Any, Standing]) -> None:
    """Fail unless every entry of the base is as before, also in what `leaderboard show` prints.

    No new entry of the six faults is ranked above one of the base, so no tier may be worse.
    """
    after = read_standings(board)
    assert {key: replace(after[key], place=s.place) for key, s in before.items()} == before
    (table, *_) = leaderboard(board).to_json()
    shown = {entry["name"]: entry["tier"] for entry in table["entries"]}
    for key, standing in before.items():
        assert shown[key[1]] == after[key].place[0], "what is printed"
        assert after[key].place[1] == standing.place[1]
        assert 1 <= shown[key[1]] <= (standing.place[0] or 0), "p is adjusted for more rows"


def test_the_base_has_what_the_faults_take(base: Path) -> None:
    standings = {name: s for (_, name), s in read_standings(base / "board").items()}
    assert None not in {s.place[0] for s in standings.values()}
    assert standings["lw"].badge.startswith("verified 2 of 6 results")
    assert standings["plain"].badge.startswith("failed 1, verified 1 of 2 results")
    assert standings["lw"].controls == {"normal": "normal", "random_init": "random"}
    assert standings["seal"].gains["", "normal"][0] > 0.05
    assert (standings["lw"].seeds, standings["seal"].seeds) == (3, 1)


def made(name: str) -> Made:
    return next(entry for entry in BASE if entry.name == name)


def copy(board: Path, with_badges: bool = False) -> None:
    replace(made("lw"), name="0-first", authors="C. Copy", submitted=EARLIER).write(board)
    if with_badges:
        shutil.copytree(board / "lw" / "badges", board / "0-first" / "badges")


def other_outcomes(board: Path) -> None:
    """The public weights of `plain`, and numbers that were made up."""
    Made("0-first", ((fakes.facts("plain"), 0.3),), submitted=EARLIER, draws="x").write(board)


def extra_column(board: Path) -> None:
    networks = ((fakes.facts("more"), 0.2),)
    Made("0-first", networks, (1, 2, 5), submitted=EARLIER).write(board)


def invented_images(board: Path) -> None:
    data = fakes.dataset("folder-mine").model_copy(update={"fingerprint": "9" * 64})
    for i in range(3):
        Made(f"0-{i}", ((fakes.facts(f"x{i}"), 0.9),), data=data, submitted=EARLIER).write(board)


def fake_seed(board: Path) -> None:
    Made("0-first", seeds("swr", 0.2, (2,)), authors="S. Swr", submitted=EARLIER).write(board)


def fake_controls(board: Path) -> None:
    """Equal recipes and seeds, other weights, far lower."""
    for i in range(3):
        facts = (
            methods.facts("normal", seed).model_copy(update={"weights_hash": f"{i}{seed}" * 32})
            for seed in range(3)
        )
        Made(f"0-{i}", tuple((f, 0.25) for f in facts), submitted=EARLIER).write(board)


FAULTS: dict[str, Callable[[Path], None]] = {
    "1 a copy with an earlier date": copy,
    "2 other outcomes of another's weights": other_outcomes,
    "3 an extra column": extra_column,
    "3 entries on invented images": invented_images,
    "4 a seed under another's authors": fake_seed,
    "5 entries of a control's recipe and seeds": fake_controls,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_impossible(name: str, board: Path) -> None:
    before = read_standings(board)
    FAULTS[name](board)
    assert check(board) == 0
    for _ in ("as it is merged", "once it is settled"):
        assert_equal_standing(board, before)
        merge(board)
    entry = Board.open(board).entry(next(path.name for path in sorted(board.glob("0-*"))))
    assert entry.verification.verdict in {None, "failed"}


def test_a_copy_has_no_badge_and_is_flagged_on_both(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read_standings(board)
    copy(board, with_badges=True)
    assert check(board) == 5
    assert "a badge of 'lw', expected of '0-first'" in capsys.readouterr().err
    shutil.rmtree(board / "0-first" / "badges")
    assert check(board) == 0
    shown = capsys.readouterr().err
    assert "0-first seed 0: the same weights as lw seed 0" in shown
    assert "lw seed 0: the same weights as 0-first seed 0" in shown
    assert_equal_standing(board, before)


def unrelated(board: Path, name: str, key: Path | None, submitted: str) -> None:
    """`plain` again, with a result that has nothing to do with the one that failed."""
    again = replace(made("plain"), name=name, shots=(1, 2, 5), submitted=submitted)
    again.write(board, key)


def test_fault_6_a_failed_badge_stays(
    base: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read_standings(board)
    badge = str(Board.open(board).entry("plain").verification)
    shutil.rmtree(board / "plain" / "badges")
    unrelated(board, "plain", base / "owner", "2026-02-02T00:00:00+00:00")
    assert check(board) == 5
    assert "deleted in the existing entry 'plain'" in capsys.readouterr().err
    git(board, "checkout", "-q", "main", "--", "plain/badges")
    assert check(board) == 0
    for _ in ("as it is merged", "once it is settled"):
        verification = Board.open(board).entry("plain").verification
        assert verification.verdict == "failed"
        assert [v for v in verification.verdicts.values() if v == "verified"] == [], "old digest"
        merge(board)
    assert badge.startswith("failed 1, verified 1")
    for key, standing in before.items():
        if key[1] != "plain":
            assert read_standings(board)[key] == standing


def test_fault_6_a_failed_badge_follows_the_weights(board: Path) -> None:
    """Under a new name with an earlier date; a badge of the entry itself takes it away."""
    before = read_standings(board)
    unrelated(board, "0-first", None, EARLIER)
    assert check(board) == 0
    for _ in ("as it is merged", "once it is settled"):
        assert Board.open(board).entry("0-first").verification.verdict == "failed"
        assert_equal_standing(board, before)
        merge(board)
    assert str(Board.open(board).entry("0-first").verification).startswith("failed 1 of 3")


def test_a_badge_of_the_entry_itself_takes_a_failed_one_away(base: Path, board: Path) -> None:
    date = "2026-03-03T00:00:00+00:00"
    add_badge(board, "plain", make_badge(board, "plain", date=date, seed=1), base / "judge")
    assert check(board) == 0
    assert str(Board.open(board).entry("plain").verification).startswith("verified 2 of 2")


def test_what_is_shown_is_under_the_digest(base: Path, board: Path) -> None:
    """A badge of `lw` no longer counts once any fact of it is another one."""
    before = read_entry(board / "lw")
    changes: tuple[dict[str, Any], ...] = (
        {"ref": "run:runs/other"},
        {"source_accuracy": 0.99},
        {"recipe": "toy/other"},
        {"stated_by": {"pool": "user"}},
    )
    for change in changes:
        cells = [
            (c.result.model_copy(update={"backbone": c.result.backbone.model_copy(update=change)}),
             c.records)
            for c in before.cells
        ]  # fmt: skip
        kept = {n: getattr(before.file, n) for n in ("declaration", "submitted", "fsbench")}
        write_entry(board / "lw", cells, (), outcomes.SMALL, **kept)
        verification = Board.open(board).entry("lw").verification
        assert (verification.verdict, verification.claims) == (None, 0), change


# --- pull requests that hypothesis makes up ------------------------------------------------------

NAMES = st.sampled_from(["0-first", "Zz", "normal-2", "lw-1", "plain.2"])
OWN = st.sampled_from(["m", "n", "o"]).map(fakes.facts)
CLAIMED = st.builds(
    lambda method, seed, digit: methods.facts(method, seed).model_copy(
        update={"weights_hash": digit * 64}
    ),
    st.sampled_from(["normal", "lw", "swr", "seal"]),
    st.integers(0, 4),
    st.sampled_from("123456"),
)
EQUAL = st.sampled_from([facts for entry in BASE for facts, _ in entry.networks])
OTHER_IMAGES = st.sampled_from(
    [
        IMAGES.model_copy(update={"fingerprint": "8" * 64}),
        IMAGES.model_copy(update={"class_counts": (20, 40, 30, 30, 30, 30)}),
        fakes.dataset("folder-mine"),
    ]
)
NETWORKS = st.tuples(st.one_of(OWN, CLAIMED, EQUAL), st.floats(0.2, 0.9))
ENTRIES = st.builds(
    Made,
    NAMES,
    st.one_of(
        st.tuples(NETWORKS),
        st.tuples(NETWORKS),
        st.tuples(NETWORKS, NETWORKS),
        st.sampled_from([entry.networks for entry in BASE]),
        st.builds(
            seeds,
            st.sampled_from(["normal", "lw", "swr", "seal"]),
            st.floats(0.2, 0.8),
            st.sampled_from([(0, 1), (0, 1, 2), (3, 4)]),
        ),
    ),
    st.sampled_from([SHOTS, SHOTS, SHOTS, (1,), (1, 2, 5), (2,)]),
    st.one_of(st.just(IMAGES), st.just(IMAGES), OTHER_IMAGES),
    st.just("S. Swr"),
    st.sampled_from([EARLIER, BEFORE]),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from([0, 0, 1]),
)
REQUESTS = st.lists(ENTRIES, min_size=1, max_size=2, unique_by=lambda entry: entry.name)


def assert_non_interference(base: Path, board: Path, request: Sequence[Made]) -> bool:
    """Return whether the check accepts a pull request; then base entries must stand as before."""
    for entry in request:
        shutil.rmtree(board / entry.name, ignore_errors=True)
        entry.write(board)
    comparison = compare_folders(board, base)
    problems = list(CHANGE_RULES.find_problems(board, comparison))
    problems += inspect_board(board).problems
    if problems:
        event(f"refused: {problems[0].code}")
        return False
    before, after = read_standings(base), read_standings(board)
    new = {e.name for e in request}
    for key, old in before.items():
        now = after[key]
        assert now.place[1] == old.place[1], "it is ranked as before"
        same = ("overall", "seeds", "badge", "controls", "gains")
        assert {n: getattr(now, n) for n in same} == {n: getattr(old, n) for n in same}
        above = [
            name
            for (columns, name), s in after.items()
            if columns == key[0] and name in new and s.overall and s.overall > (old.overall or 0)
        ]
        if not above:
            assert (now.place[0] or 0) <= (old.place[0] or 0), "the tier is no worse"
    order = [key for key in after if key in before]
    if {key: s.place[0] for key, s in before.items()} == {k: after[k].place[0] for k in before}:
        assert order == list(before)
    return True


def attempt(base: Path, folder: Path, request: Sequence[Made]) -> bool:
    board = folder / "board"
    shutil.rmtree(board, ignore_errors=True)
    clean = folder / "base"
    if not clean.exists():
        shutil.copytree(base / "board", clean, ignore=shutil.ignore_patterns(".git"))
    shutil.copytree(clean, board)
    return assert_non_interference(clean, board, request)


EXAMPLES = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EXAMPLES
@given(REQUESTS)
def test_an_accepted_pull_request_leaves_the_others_as_they_are(
    base: Path, tmp_path: Path, entries: list[Made]
) -> None:
    attempt(base, tmp_path, entries)


@pytest.mark.slow
@settings(EXAMPLES, max_examples=600)
@given(REQUESTS)
def test_pull_requests_at_length(base: Path, tmp_path: Path, entries: list[Made]) -> None:
    attempt(base, tmp_path, entries)
