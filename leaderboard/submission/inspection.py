"""Inspection of a whole board folder: the check for pull requests that add entries.

Every entry is checked by all rules of a submission again, and so are its hash chain, its badges and
its files. All problems are reported at once; nothing is executed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.io import MAX_JSON, read_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts
from fsbench.results.names import BADGES, MODEL_FILE
from fsbench.results.verification import Loaded, Problem
from leaderboard.board import badges, published
from leaderboard.board.board import ENTRY_FILE, STAGING_PREFIX, Board, EntryFile, list_leftovers
from leaderboard.board.signatures import ENTRY_NAMESPACE, is_signed, signature_path
from leaderboard.board.suspicion import OutcomeRow, Suspicions, find_suspicions
from leaderboard.submission import chain
from leaderboard.submission.archive import check_folder
from leaderboard.submission.badge_rules import find_badge_problems
from leaderboard.submission.checks import (
    check_date_text,
    check_submission,
    check_version_text,
    find_bad_text,
    has_equal_outcomes,
)
from leaderboard.submission.submission import Submission, read_submissions

BOARD_FILES = (
    *("board.json", "README.md", "CONTRIBUTING.md"),
    *("LICENSE", "CITATION.cff", "constraints.txt"),
)
HIDDEN_FILES = (".git", ".gitattributes", ".gitignore", ".lock")
"""In a worktree .git is a file."""
HIDDEN_FOLDERS = (".git", ".github")
REMOVE = "remove it from the board"


@dataclass
class Inspection:
    """Every Problem of a board, and how much was read."""

    problems: list[Problem]
    entries: int = 0
    results: int = 0
    episodes: int = 0
    badges: int = 0
    suspicions: Suspicions = field(default_factory=dict)

    def count(self, submission: Submission, n_badges: int) -> None:
        self.entries += 1
        self.results += len(submission.cells)
        self.badges += n_badges
        for loaded in submission.cells:
            if isinstance(loaded.records, EpisodeRecords):
                self.episodes += len(loaded.records.index)


@dataclass
class EntryComparison:
    """Comparison of entries: what their results must not share, and what they must.

    copies: digest of records -> (weights hash, path) of the results with these records; images:
    data set and fingerprint -> class counts with the results that state them.
    """

    copies: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    images: dict[tuple[str, str], dict[object, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    rows: list[OutcomeRow] = field(default_factory=list)

    def add(self, entry: str, loaded: Loaded) -> None:
        data, weights = loaded.result.dataset, loaded.result.backbone.weights_hash
        counts = (data.class_ids, data.class_counts, data.images_hash)
        self.images[data.name, data.fingerprint].setdefault(counts, str(loaded.path))
        self.rows.append(OutcomeRow.of(entry, loaded))
        if isinstance(loaded.records, EpisodeRecords) and not (
            loaded.result.collapsed or has_equal_outcomes(loaded)
        ):
            self.copies[loaded.result.records_digest].append((weights, str(loaded.path)))

    def find_problems(self) -> Iterator[Problem]:
        """Yield a Problem for equal records of different weights, and for images counted twice."""
        for places in self.copies.values():
            if len({weights for weights, _ in places}) > 1:
                where = ", ".join(path for _, path in places[:5])
                fix = "evaluate each model itself"
                yield Problem("copied", where, "equal outcomes of other weights", "its own", fix)
        for paths in self.images.values():
            if len(paths) > 1:
                where = ", ".join(list(paths.values())[:5])
                fix = "evaluate again; the fingerprint follows from the images"
                actual = "equal fingerprints with other class counts"
                yield Problem("images", where, actual, "equal counts", fix)


def inspect_board(folder: Path) -> Inspection:
    """Read and check a whole board. Raises UsageError if there is none."""
    inspection = Inspection(list(find_stray_files(folder)))
    try:
        board = Board.open(folder)
    except ValidationFailed as error:
        inspection.problems.append(make_error_problem("board", folder, error))
        return inspection
    across = EntryComparison()
    names = board.names()
    folded = Counter(name.casefold() for name in names)
    for name in names:
        if folded[name.casefold()] > 1:  # some file systems ignore letter case
            problem = Problem("name", name, "the same name in another letter case", "one", REMOVE)
            inspection.problems.append(problem)
        try:
            inspection.problems += inspect_entry(board, name, inspection, across)
        except FsbenchError as error:
            inspection.problems.append(make_error_problem("entry", folder / name, error))
    inspection.problems += across.find_problems()
    inspection.suspicions = find_suspicions(board.file, across.rows)
    return inspection


def make_error_problem(code: str, where: Path, error: FsbenchError) -> Problem:
    return Problem(code, str(where), error.message, "what fsbench wrote", error.fix or REMOVE)


def find_stray_files(folder: Path) -> Iterator[Problem]:
    """Yield a Problem for every file of a board folder that is no entry and not in BOARD_FILES.

    The project's own board lies beside all published rows; those are validated instead.
    """
    paths = sorted(folder.iterdir())
    names = {path.name for path in paths}
    has_published = all(row.name in names for row in published.ENTRIES.glob("*.json"))
    for path in paths:
        if has_published and path.suffix == ".json" and path.name not in BOARD_FILES:
            try:
                published.read_published(path)
            except ValidationFailed as error:
                yield make_error_problem("published", path, error)
            continue
        if path.name.startswith(STAGING_PREFIX):
            continue
        is_plain = path.is_file() and not path.is_symlink()
        allowed = HIDDEN_FOLDERS if path.is_dir() else (*BOARD_FILES, *HIDDEN_FILES)
        is_entry = not path.name.startswith(".") and (path / ENTRY_FILE).is_file()
        if path.is_symlink() or not (path.name in allowed or is_entry):
            yield Problem("stray", str(path), "no entry", f"entries and {BOARD_FILES[0]}", REMOVE)
        elif is_plain and (size := path.stat().st_size) > MAX_JSON:
            fix = "shorten the file"
            yield Problem("size", str(path), f"{size} bytes", f"at most {MAX_JSON}", fix)
    for path in list_leftovers(folder):
        fix = "submit anything to this board: what a killed process left is restored first"
        yield Problem("unfinished", str(path), "half a submission", "none", fix)


def inspect_entry(
    board: Board, name: str, inspection: Inspection, across: EntryComparison
) -> Iterator[Problem]:
    """Yield every Problem of one entry; add its counts to `inspection`, its results to `across`."""
    home = board.folder / name
    check_folder(home)
    file = read_record(home / ENTRY_FILE, EntryFile)
    if file.declaration.name != name:
        yield Problem("name", str(home), file.declaration.name, name, "name the folder after it")
    yield from find_bad_text(str(home / ENTRY_FILE), file)
    yield from check_date_text(str(home / ENTRY_FILE), "submitted", file.submitted)
    yield from check_version_text(str(home / ENTRY_FILE), "fsbench", file.fsbench)
    submissions = read_submissions(home, file.declaration)
    if len(submissions) > 1:
        yield Problem("backbone", str(home), f"{len(submissions)} models", "one", REMOVE)
    submission = submissions[0]
    yield from check_submission(submission, board, replace=True)
    if file.chain is not None:
        yield from chain.find_changes(file.chain, submission.cells, str(home))
    if file.key and not is_signed(home / ENTRY_FILE, [file.key], ENTRY_NAMESPACE):
        fix = "sign it again: fsbench submit --replace --sign-with KEY"
        yield Problem("signature", str(home / ENTRY_FILE), "none of its key", "one", fix)
    yield from check_entry_files(home, submission, signed=file.key is not None)
    entry_badges = badges.read_badges(home)
    for path, badge in entry_badges:
        yield from find_bad_text(str(path), badge)
        yield from find_badge_problems(path, badge, submission.cells)
    inspection.count(submission, len(entry_badges))
    for loaded in submission.cells:
        across.add(name, loaded)


def check_entry_files(home: Path, submission: Submission, signed: bool) -> Iterator[Problem]:
    """Yield a Problem for every file but results, badges and a model.json of the same backbone."""
    expected = {home / ENTRY_FILE, *([signature_path(home / ENTRY_FILE)] if signed else [])}
    for loaded in submission.cells:
        expected |= {loaded.path, loaded.path.with_suffix(".parquet")}
        expected.add(loaded.path.parent.parent / MODEL_FILE)
    broken = {problem.where for problem in submission.broken}
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        badge = path.with_suffix("") if path.suffix == ".sig" else path
        is_badge = path.parent == home / BADGES and badge.suffix == ".json" and badge.is_file()
        is_broken = str(path.with_suffix(".json")) in broken
        if not (path in expected or is_badge or is_broken):
            yield Problem("stray", str(path), "no part of the entry", "only its results", REMOVE)
        elif path.name == MODEL_FILE and read_record(path, BackboneFacts) != submission.facts:
            yield Problem("backbone", str(path), "other facts", "those of the results", REMOVE)
