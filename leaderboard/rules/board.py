"""Inspection of a whole board folder: the check for pull requests that add entries.

Every entry is checked by all rules of a submission again, and so are its digest, its badges and its
files. All problems are reported at once; nothing is executed.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.io import MAX_JSON
from fsbench.core.progress import format_count
from fsbench.results.entry import ENTRY_FILE, EntryFile, read_entry
from fsbench.results.names import BADGES
from fsbench.results.verification import AGAIN, Problem
from leaderboard import badges
from leaderboard.history import HISTORY_FILE, MAX_LINES, VERIFICATIONS_FILE
from leaderboard.intake.archive import check_folder
from leaderboard.intake.submission import Submission
from leaderboard.near_copies import Suspicions, find_suspicions, list_results
from leaderboard.ranking.outcomes import compact
from leaderboard.rules.badge import find_badge_problems
from leaderboard.rules.submission import (
    check_date_text,
    check_submission,
    check_version_text,
    find_bad_text,
)
from leaderboard.signatures import ENTRY_NAMESPACE, is_signed, signature_path
from leaderboard.store import Board, BoardEntry

BOARD_FILES = (
    *("board.json", HISTORY_FILE, VERIFICATIONS_FILE, "README.md", "CONTRIBUTING.md"),
    *("LICENSE", "CITATION.cff", "constraints.txt"),
)
HIDDEN_FILES = (".git", ".gitattributes", ".gitignore", ".lock")
"""In a worktree .git is a file."""
HIDDEN_FOLDERS = (".git", ".github")
REMOVE = "remove it from the board"


@dataclass
class Inspection:
    """Every Problem of a board, the entries that could be read, and what is suspicious of them."""

    problems: list[Problem]
    entries: list[BoardEntry] = field(default_factory=list)
    badges: int = 0
    suspicions: Suspicions = field(default_factory=dict)

    @property
    def counts(self) -> str:
        """e.g. '2 entries, 8 results, 4800 episodes, 1 badge'"""
        results = [result for entry in self.entries for result in entry.results]
        episodes = sum(r.score.n for r in results if r.spec.kind == "episodic")
        counts = (len(self.entries), len(results), episodes, self.badges)
        nouns = ("entry", "result", "episode", "badge")
        return ", ".join(map(format_count, counts, nouns))


def find_image_problems(entries: Iterable[BoardEntry]) -> Iterator[Problem]:
    """Yield a Problem for images of equal fingerprint whose classes are counted differently."""
    images: dict[tuple[str, str], dict[object, str]] = defaultdict(dict)
    for loaded in (cell for entry in entries for cell in entry.cells):
        data = loaded.result.dataset
        counts = (data.class_ids, data.class_counts, data.images_hash)
        images[data.name, data.fingerprint].setdefault(counts, loaded.where)
    for places in images.values():
        if len(places) > 1:
            where = ", ".join(list(places.values())[:5])
            fix = "evaluate again; the fingerprint follows from the images"
            actual = "equal fingerprints with other class counts"
            yield Problem.contrast("images", where, actual, "equal counts", fix)


def inspect_board(folder: Path) -> Inspection:
    """Read and check a whole board. Raises UsageError if there is none."""
    try:
        board = Board.open(folder)
    except ValidationFailed as error:
        return Inspection([*find_stray_files(folder), make_error_problem("board", folder, error)])
    inspection = Inspection(list(find_stray_files(folder)))
    names = board.names()
    folded = Counter(name.casefold() for name in names)
    for name in names:
        if folded[name.casefold()] > 1:  # some file systems ignore letter case
            problem = Problem.contrast(
                "name", name, "the same name in another letter case", "one", REMOVE
            )
            inspection.problems.append(problem)
        try:
            inspection.problems += inspect_entry(board, name, inspection)
        except FsbenchError as error:
            inspection.problems.append(make_error_problem("entry", folder / name, error))
    inspection.problems += find_image_problems(inspection.entries)
    inspection.suspicions = find_suspicions(board.file, list_results(inspection.entries))
    return inspection


def make_error_problem(code: str, where: Path, error: FsbenchError) -> Problem:
    return Problem(code, str(where), error.message, error.fix or REMOVE)


def find_stray_files(folder: Path) -> Iterator[Problem]:
    """Yield a Problem for every file of a board folder that is no entry and not in BOARD_FILES."""
    for path in sorted(folder.iterdir()):
        allowed = HIDDEN_FOLDERS if path.is_dir() else (*BOARD_FILES, *HIDDEN_FILES)
        is_entry = not path.name.startswith(".") and (path / ENTRY_FILE).is_file()
        if path.is_symlink() or not (path.name in allowed or is_entry):
            yield Problem.contrast(
                "stray", str(path), "no entry", f"entries and {BOARD_FILES[0]}", REMOVE
            )
        elif path.is_file() and (size := path.stat().st_size) > limit_of(path):
            fix = "shorten the file"
            yield Problem.contrast(
                "size", str(path), f"{size} bytes", f"at most {limit_of(path)}", fix
            )


def limit_of(path: Path) -> int:
    """Return how many bytes a file of a board may have."""
    return MAX_LINES if path.suffix == ".jsonl" else MAX_JSON


def inspect_entry(board: Board, name: str, inspection: Inspection) -> Iterator[Problem]:
    """Yield every Problem of one entry, and add it to the inspection."""
    home = board.folder / name
    path = home / ENTRY_FILE
    check_folder(home)
    entry = read_entry(home)
    file = entry.file
    if hashlib.sha256(file.to_text().encode()).hexdigest() != entry.digest:
        yield Problem("entry", str(path), "it is not as fsbench writes it", AGAIN)
    if file.declaration is None or file.submitted is None or file.fsbench is None:
        yield Problem("entry", str(path), "a results folder, not a submitted entry", REMOVE)
        return
    if entry.name != name:
        yield Problem.contrast("name", home, entry.name, name, "name the folder after it")
    yield from find_bad_text(str(path), file)
    yield from check_date_text(str(path), "submitted", file.submitted)
    yield from check_version_text(str(path), "fsbench", file.fsbench)
    controls = frozenset(file.models[i].identity for i in file.controls)
    if len({model.identity for model in file.models}) < len(file.models):
        yield Problem("backbone", str(path), "two records of one network", AGAIN)
    submission = Submission(file.declaration, name, entry.cells, controls)
    yield from check_submission(submission, board, replace=True)
    removed = board.history.removed
    if event := removed.get(entry.digest) or removed.get(file.outcomes):
        yield Problem("removed", str(home), f"a maintainer removed it: {event.reason}", REMOVE)
    if file.key and not is_signed(path, [file.key], ENTRY_NAMESPACE):
        fix = "sign it again: fsbench submit --replace --sign-with KEY"
        yield Problem.contrast("signature", path, "none of its key", "one", fix)
    yield from check_entry_files(home, file)
    entry_badges = badges.read_badges(home)
    for badge_file, badge in entry_badges:
        yield from find_bad_text(str(badge_file), badge)
        yield from find_badge_problems(badge_file, badge, entry)
    inspection.badges += len(entry_badges)
    inspection.entries.append(BoardEntry(**vars(compact(entry))))


def check_entry_files(home: Path, file: EntryFile) -> Iterator[Problem]:
    """Yield a Problem for every file but the two of the entry, its signature and badges."""
    expected = {home / ENTRY_FILE, home / file.outcomes_file}
    expected |= {signature_path(home / ENTRY_FILE)} if file.key else set()
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        badge = path.with_suffix("") if path.suffix == ".sig" else path
        is_badge = path.parent == home / BADGES and badge.suffix == ".json" and badge.is_file()
        if not (path in expected or is_badge):
            yield Problem.contrast(
                "stray", path, "no part of the entry", "only its two files", REMOVE
            )
