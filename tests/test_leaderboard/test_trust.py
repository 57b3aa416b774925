"""No entry displaces, unranks, joins, splits or relabels another: it can only be better.

Six faults, each acted out as a pull request in git, then pull requests that hypothesis makes up. A
base board has two controls, rows of several seeds and of one, a signed badge and a failed one.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from support import fakes, methods
from support.badges import add_badge, allow_signer, make_key, needs_ssh_keygen
from support.cli import CommandLine, call
from support.forged import put
from support.repositories import check, git, propose, start

from fsbench.api.leaderboard import leaderboard
from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts, DatasetRecord, Result
from fsbench.results import assembly, outcomes
from fsbench.results.entry import write_entry
from leaderboard.methods import read_method_boards
from leaderboard.repository import init_board
from leaderboard.rules.board import inspect_board
from leaderboard.rules.changes import CHANGE_RULES, compare_folders
from leaderboard.signatures import ENTRY_NAMESPACE, read_public_key, sign_file
from leaderboard.store import Board
from leaderboard.tables import rank_board
from leaderboard.trust import Verification

pytestmark = needs_ssh_keygen
EARLIER, BEFORE = "2025-02-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"
LATER = "2026-03-03T00:00:00+00:00"
SHOTS = (1, 5)
IMAGES = fakes.dataset()
Networks = tuple[tuple[BackboneFacts, float], ...]


@dataclass(frozen=True)
class Made:
    """An entry as a forger writes it: facts and accuracy of each network, over these columns."""

    name: str
    networks: Networks
    shots: tuple[int, ...] = SHOTS
    data: DatasetRecord = IMAGES
    authors: str = "A. Author"
    submitted: str = BEFORE
    draws: str = ""
    n_controls: int = 0

    def write(self, board: Path, key: Path | None = None) -> None:
        results: list[tuple[Result, EpisodeRecords]] = []
        for facts, accuracy in self.networks:
            for spec in map(fakes.episodic, self.shots):
                name = self.draws or facts.weights_hash or "random"
                records = fakes.episodes(spec, self.data, range(40), accuracy, name)
                made = (facts, self.data, spec, records, False, fakes.provenance())
                results.append((assembly.build_result(*made), records))
        declared = fakes.DECLARATION.model_copy(update={"name": self.name, "authors": self.authors})
        write_entry(
            board / self.name,
            results,
            [facts.identity for facts, _ in self.networks[: self.n_controls]],
            outcomes.SMALL,
            declaration=declared,
            submitted=self.submitted,
            fsbench="0.1.0",
            key=read_public_key(key) if key else None,
        )
        if key:
            sign_file(board / self.name / "entry.json", key, ENTRY_NAMESPACE)


def seeds(method: str, accuracy: float, numbers: Sequence[int]) -> Networks:
    return tuple((methods.facts(method, seed), accuracy + 0.01 * seed) for seed in numbers)


BASE = {
    "normal": Made("normal", seeds("normal", 0.5, (0, 1, 2)), authors="Maintainer"),
    "random": Made("random", ((methods.random_init(0), 0.25),), authors="Maintainer"),
    "lw": Made("lw", seeds("lw", 0.7, (0, 1, 2)), authors="L. Lw"),
    "swr": Made("swr", seeds("swr", 0.55, (0, 1)), authors="S. Swr"),
    "seal": Made("seal", seeds("seal", 0.6, (0,)), authors="S. Seal"),
    "plain": Made("plain", ((fakes.facts("plain"), 0.35),), authors="P. Plain"),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a settled board, beside the keys of a judge and of the owner of `plain`."""
    root = tmp_path_factory.mktemp("trust")
    board = root / "board"
    init_board(board)
    judge, owner = make_key(root, "judge"), make_key(root, "owner")
    for made in BASE.values():
        made.write(board, owner if made.name == "plain" else None)
    allow_signer(board, judge)
    controls = {"controls": ("normal", "random")}
    write_record(board / "board.json", Board.open(board).file.model_copy(update=controls))
    Board.open(board).record_changes()
    add_badge(board, "lw", key=judge)
    add_badge(board, "plain", judge, flipped=1)
    Board.open(board).record_changes()
    start(board)
    return root


@pytest.fixture
def board(base: Path, tmp_path: Path) -> Path:
    """A clone with the branch of a pull request."""
    return propose(base / "board", tmp_path / "board")


def merge(board: Path) -> None:
    """What the workflow does after a merge."""
    assert call("leaderboard", "readme", "--board", board) == 0


def verification(board: Path, name: str) -> Verification:
    return Board.open(board).entry(name).verification


class RowFacts(NamedTuple):
    """What a board says of one entry in one table; gains: column and kind -> gap and interval."""

    tier: int | None
    reason: str
    overall: float | None
    seeds: int
    badge: str
    controls: dict[str, str]
    gains: dict[tuple[str, str], tuple[float, float | None, str]]


Rows = dict[tuple[tuple[str, ...], str], RowFacts]
"""Columns of a table and name of an entry -> what is said of it."""


def read_rows(board: Path) -> Rows:
    """Return the rows of the tables that rank."""
    badges = {entry.name: str(entry.verification) for entry in Board.open(board).entries()}
    methods = {
        (made.columns, row.name): row for made in read_method_boards(board) for row in made.rows
    }
    facts: Rows = {}
    for table in rank_board(board):
        for entry in () if table.track.extra else table.ranking.entries:
            key = table.ranking.columns, entry.name
            row = methods.get(key)
            scores = {**row.scores, "": row.overall} if row else {}
            gains = {
                (column, kind): (gain.gap, gain.ci95, gain.covers)
                for column, score in scores.items()
                for kind, gain in (score.gains if score else {}).items()
            }
            n_seeds = len(table.rows[entry.name].networks)
            controls = dict(row.controls if row else {})
            of_entry = entry.tier, entry.reason, entry.overall, n_seeds, badges[entry.name]
            facts[key] = RowFacts(*of_entry, controls, gains)
    return facts


def assert_as_before(board: Path, before: Rows) -> None:
    """Fail unless every entry of the base is as before, also in what `leaderboard show` prints.

    No new entry of the six faults is ranked above one of the base, so no tier may be worse.
    """
    after = read_rows(board)
    (table, *_) = leaderboard(board).to_json()
    shown = {entry["name"]: entry["tier"] for entry in table["entries"]}
    for key, old in before.items():
        assert after[key]._replace(tier=old.tier) == old
        assert shown[key[1]] == after[key].tier, "what is printed"
        assert 1 <= shown[key[1]] <= (old.tier or 0), "p is adjusted for more rows"


def test_the_base_has_what_the_faults_take(base: Path) -> None:
    rows = {name: facts for (_, name), facts in read_rows(base / "board").items()}
    assert None not in {facts.tier for facts in rows.values()}
    assert rows["lw"].badge.startswith("verified 2 of 6 results")
    assert rows["plain"].badge.startswith("failed 1, verified 1 of 2 results")
    assert rows["lw"].controls == {"normal": "normal", "random_init": "random"}
    assert rows["seal"].gains["", "normal"][0] > 0.05
    assert (rows["lw"].seeds, rows["seal"].seeds) == (3, 1)


COPY = replace(BASE["lw"], name="0-first", authors="C. Copy", submitted=EARLIER)
REPEATED = replace(BASE["plain"], name="0-first", shots=(1, 2, 5), submitted=EARLIER)
"""`plain` again, with a result that has nothing to do with the one that failed."""
INVENTED = fakes.dataset("folder-mine").model_copy(update={"fingerprint": "9" * 64})


def fake_seeds(digit: int) -> Networks:
    """Recipe and seeds of the control, other weights, far lower."""
    hashes = {seed: f"{digit}{seed}" * 32 for seed in range(3)}
    facts = [(methods.facts("normal", seed), text) for seed, text in hashes.items()]
    return tuple((f.model_copy(update={"weights_hash": text}), 0.25) for f, text in facts)


FAULTS: dict[str, list[Made]] = {
    "1 a copy with an earlier date": [COPY],
    "2 other outcomes of another's weights": [
        Made("0-first", ((fakes.facts("plain"), 0.3),), submitted=EARLIER, draws="x")],
    "3 an extra column": [
        Made("0-first", ((fakes.facts("more"), 0.2),), (1, 2, 5), submitted=EARLIER)],
    "3 entries on invented images": [
        Made(f"0-{i}", ((fakes.facts(f"x{i}"), 0.9),), data=INVENTED, submitted=EARLIER)
        for i in range(3)],
    "4 a seed under another's authors": [
        Made("0-first", seeds("swr", 0.2, (2,)), authors="S. Swr", submitted=EARLIER)],
    "5 entries of a control's recipe and seeds": [
        Made(f"0-{i}", fake_seeds(i), submitted=EARLIER) for i in range(3)],
    "6 a new name for weights that failed": [REPEATED],
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_impossible(name: str, board: Path, cli: CommandLine) -> None:
    before = read_rows(board)
    for entry in FAULTS[name]:
        entry.write(board)
    check(cli, board, "--base", "main")
    verdict = "failed" if name[0] in "26" else None  # it follows the weights of plain
    for _ in ("as it is merged", "once it is settled"):
        assert_as_before(board, before)
        assert verification(board, entry.name).verdict == verdict
        merge(board)


def test_a_copy_has_no_badge_and_is_flagged_on_both(board: Path, cli: CommandLine) -> None:
    COPY.write(board)
    shutil.copytree(board / "lw" / "badges", board / "0-first" / "badges")
    shown = check(cli, board, "--base", "main", code=5).err
    assert "a badge of 'lw', expected of '0-first'" in shown
    assert "0-first seed 0: the same weights as lw seed 0" in shown
    assert "lw seed 0: the same weights as 0-first seed 0" in shown


def test_fault_6_a_failed_badge_stays_with_a_replaced_entry(
    base: Path, board: Path, cli: CommandLine
) -> None:
    before = read_rows(board)
    shutil.rmtree(board / "plain" / "badges")
    replace(REPEATED, name="plain", submitted=LATER).write(board, base / "owner")
    shown = check(cli, board, "--base", "main", code=5).err
    assert "deleted in the existing entry 'plain'" in shown
    git(board, "checkout", "-q", "main", "--", "plain/badges")
    check(cli, board, "--base", "main")
    for _ in ("as it is merged", "once it is settled"):
        verdicts = verification(board, "plain").verdicts.values()
        assert {*verdicts} == {"failed"}, "what passed was of the old digest"
        merge(board)
    others = {key: facts for key, facts in before.items() if key[1] != "plain"}
    assert {key: read_rows(board)[key] for key in others} == others


def test_a_copy_that_fails_leaves_the_original_as_it_is(base: Path, board: Path) -> None:
    COPY.write(board)
    date = "2999-01-01T00:00:00+00:00"
    add_badge(board, "0-first", base / "judge", flipped=1, date=date)
    for _ in ("as it is added", "once it is settled"):
        assert verification(board, "0-first").verdict == "failed"
        assert verification(board, "lw").verdict == "verified"
        merge(board)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("ref", "run:runs/other"),
        ("source_accuracy", 0.99),
        ("recipe", "toy/other"),
        ("stated_by", {"pool": "user"}),
    ],
)
def test_what_is_shown_is_under_the_digest(fact: str, value: object, board: Path) -> None:
    """A badge of `lw` no longer counts once any fact of it is another one."""
    put(f"models.0.{fact}", value)(board / "lw")
    assert (verification(board, "lw").verdict, verification(board, "lw").claims) == (None, 0)


# --- pull requests that hypothesis makes up ------------------------------------------------------

METHODS = st.sampled_from(["normal", "lw", "swr", "seal"])
CLAIMED = st.builds(
    lambda method, seed, digit: methods.facts(method, seed).model_copy(
        update={"weights_hash": digit * 64}
    ),
    METHODS,
    st.integers(0, 4),
    st.sampled_from("123456"),
)
NETWORKS = st.tuples(
    st.one_of(
        st.sampled_from(["m", "n", "o"]).map(fakes.facts),
        CLAIMED,
        st.sampled_from([facts for entry in BASE.values() for facts, _ in entry.networks]),
    ),
    st.floats(0.2, 0.9),
)
OTHER_IMAGES = [
    IMAGES.model_copy(update={"fingerprint": "8" * 64}),
    IMAGES.model_copy(update={"class_counts": (20, 40, 30, 30, 30, 30)}),
    fakes.dataset("folder-mine"),
]
ENTRIES = st.builds(
    Made,
    name=st.sampled_from(["0-first", "Zz", "normal-2", "lw-1", "plain.2"]),
    networks=st.one_of(
        st.tuples(NETWORKS),
        st.tuples(NETWORKS),
        st.tuples(NETWORKS, NETWORKS),
        st.sampled_from([entry.networks for entry in BASE.values()]),
        st.builds(
            seeds, METHODS, st.floats(0.2, 0.8), st.sampled_from([(0, 1), (0, 1, 2), (3, 4)])
        ),
    ),
    shots=st.sampled_from([SHOTS, SHOTS, SHOTS, (1,), (1, 2, 5), (2,)]),
    data=st.one_of(st.just(IMAGES), st.just(IMAGES), st.sampled_from(OTHER_IMAGES)),
    authors=st.just("S. Swr"),
    submitted=st.sampled_from([EARLIER, BEFORE]),
    draws=st.sampled_from(["", "x", "y"]),
    n_controls=st.sampled_from([0, 0, 1]),
)
REQUESTS = st.lists(ENTRIES, min_size=1, max_size=2, unique_by=lambda entry: entry.name)


@pytest.fixture(scope="module")
def before(base: Path) -> tuple[Path, Rows]:
    """The board without its repository, and its rows."""
    folder = base / "before"
    shutil.copytree(base / "board", folder, ignore=shutil.ignore_patterns(".git"))
    return folder, read_rows(folder)


def assert_non_interference(
    before: tuple[Path, Rows], folder: Path, request: Sequence[Made]
) -> None:
    """Fail if the check accepts a pull request after which an entry of the base is not as before.

    Its tier may be worse if a new entry has a higher overall.
    """
    after, (base, old_rows) = folder / "after", before
    shutil.rmtree(after, ignore_errors=True)
    shutil.copytree(base, after)
    for entry in request:
        entry.write(after)
    problems = list(CHANGE_RULES.find_problems(after, compare_folders(after, base)))
    if problems := problems + inspect_board(after).problems:
        event(f"refused: {problems[0].code}")
        return
    rows = read_rows(after)
    new = {key: facts for key, facts in rows.items() if key not in old_rows}
    for key, old in old_rows.items():
        assert rows[key]._replace(tier=old.tier) == old
        beaten_by = [n for (c, _), n in new.items() if c == key[0] and n.overall]
        if all((n.overall or 0) <= (old.overall or 0) for n in beaten_by):
            assert (rows[key].tier or 0) <= (old.tier or 0), "the tier is no worse"
    in_base = [key for key in rows if key in old_rows]
    if all(rows[key].tier == old.tier for key, old in old_rows.items()):
        assert in_base == list(old_rows), "the order is the same"


EXAMPLES = settings(
    max_examples=12,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EXAMPLES
@given(REQUESTS)
def test_an_accepted_pull_request_leaves_the_others_as_they_are(
    before: tuple[Path, Rows], tmp_path: Path, entries: list[Made]
) -> None:
    assert_non_interference(before, tmp_path, entries)


@pytest.mark.slow
@settings(EXAMPLES, max_examples=600)
@given(REQUESTS)
def test_pull_requests_at_length(
    before: tuple[Path, Rows], tmp_path: Path, entries: list[Made]
) -> None:
    assert_non_interference(before, tmp_path, entries)
