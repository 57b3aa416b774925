"""Everything that may be wrong with a board folder, all at once: the check for pull requests.

Every entry is held against all rules of a submission again, with its hash chain, its badges and its
files; nothing on the way is executed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.io import read_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import BackboneFacts
from fsbench.results.names import BADGES, MODEL_FILE
from fsbench.results.rules import Problem
from leaderboard.board import badges, published
from leaderboard.board.board import ENTRY_FILE, Board, EntryFile
from leaderboard.submission import chain
from leaderboard.submission.archive import check_folder
from leaderboard.submission.candidate import Candidate, read_submissions
from leaderboard.submission.checks import check_submission
from leaderboard.submission.staging import list_leftovers

BOARD_FILES = ("board.json", "README.md", "LICENSE", "CITATION.cff", "constraints.txt")
REMOVE = "remove it from the board"


@dataclass
class Inspection:
    """What was read, and every Problem."""

    problems: list[Problem]
    entries: int = 0
    results: int = 0
    episodes: int = 0
    badges: int = 0

    def add(self, candidate: Candidate, held: int) -> None:
        self.entries += 1
        self.results += len(candidate.cells)
        self.badges += held
        for cell in candidate.cells:
            if isinstance(cell.records, EpisodeRecords):
                self.episodes += len(cell.records.index)


def inspect_board(folder: Path) -> Inspection:
    """Read all of a board. Raises UsageError when there is none."""
    found = Inspection(list(find_stray_files(folder)))
    try:
        board = Board.open(folder)
    except ValidationFailed as error:
        found.problems.append(error_problem("board", folder, error))
        return found
    copies: dict[str, list[tuple[str, str]]] = defaultdict(list)
    names = board.names()
    found.problems += find_name_clashes(names)
    for name in names:
        try:
            found.problems += inspect_entry(board, name, found, copies)
        except FsbenchError as error:
            found.problems.append(error_problem("entry", folder / name, error))
    found.problems += find_copies(copies)
    return found


def error_problem(code: str, where: Path, error: FsbenchError) -> Problem:
    return Problem(code, str(where), error.message, "what fsbench wrote", error.fix or REMOVE)


def find_stray_files(folder: Path) -> Iterator[Problem]:
    """What lies in the folder of a board and is neither an entry nor told of in the README.

    The project's board, of any clone, has all published rows beside it. They are validated instead.
    """
    paths = sorted(folder.iterdir())
    names = {path.name for path in paths}
    has_published = all(row.name in names for row in published.ENTRIES.glob("*.json"))
    for path in paths:
        if has_published and path.suffix == ".json" and path.name not in BOARD_FILES:
            try:
                published.read_published(path)
            except ValidationFailed as error:
                yield error_problem("published", path, error)
            continue
        entry = path.is_dir() and not path.is_symlink() and (path / ENTRY_FILE).is_file()
        if not (path.name.startswith(".") or path.name in BOARD_FILES or entry):
            yield Problem("stray", str(path), "no entry", f"entries and {BOARD_FILES[0]}", REMOVE)
    for path in list_leftovers(folder):
        fix = "submit anything to the board: what a killed process left is put back first"
        yield Problem("unfinished", str(path), "half a submission", "none", fix)


def find_name_clashes(names: list[str]) -> Iterator[Problem]:
    """Names that some file systems take for one."""
    folded = Counter(name.casefold() for name in names)
    for name in names:
        if folded[name.casefold()] > 1:
            yield Problem("name", name, "the same name in another letter case", "one", REMOVE)


def inspect_entry(
    board: Board, name: str, found: Inspection, copies: dict[str, list[tuple[str, str]]]
) -> Iterator[Problem]:
    """All that is wrong with one entry."""
    home = board.folder / name
    check_folder(home)
    file = read_record(home / ENTRY_FILE, EntryFile)
    if file.declaration.name != name:
        yield Problem("name", str(home), file.declaration.name, name, "name the folder after it")
    candidates = read_submissions(home, file.declaration)
    if len(candidates) > 1:
        yield Problem("backbone", str(home), f"{len(candidates)} models", "one", REMOVE)
    candidate = candidates[0]
    yield from check_submission(candidate, board, replace=True)
    if file.chain is not None:
        yield from chain.find_changes(file.chain, candidate.cells, str(home))
    yield from check_entry_files(home, candidate)
    ends = badges.read(home)
    end = chain.build_chain(candidate.cells).end
    for badge in ends:
        if badge.chain != end:
            fix = "remove the badge, or verify the entry again"
            yield Problem("badge", str(home), "a badge of other results", "of these", fix)
    found.add(candidate, len(ends))
    for cell in candidate.cells:
        if isinstance(cell.records, EpisodeRecords) and not cell.result.collapsed:
            weights = cell.result.backbone.weights_hash
            copies[cell.result.records_digest].append((weights, str(cell.path)))


def check_entry_files(home: Path, candidate: Candidate) -> Iterator[Problem]:
    """Nothing lies in an entry but its results, model.json of the same backbone, and badges."""
    known = {home / ENTRY_FILE}
    for cell in candidate.cells:
        known |= {cell.path, cell.path.with_suffix(".parquet")}
        known.add(cell.path.parent.parent / MODEL_FILE)
    broken = {problem.where for problem in candidate.broken}
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        badge = path.parent == home / BADGES and path.suffix == ".json"
        if path not in known and not badge and str(path.with_suffix(".json")) not in broken:
            yield Problem("stray", str(path), "no part of the entry", "only its results", REMOVE)
        elif path.name == MODEL_FILE and read_record(path, BackboneFacts) != candidate.facts:
            yield Problem("backbone", str(path), "other facts", "those of the results", REMOVE)


def find_copies(copies: dict[str, list[tuple[str, str]]]) -> Iterator[Problem]:
    """Outcomes of hundreds of episodes are never equal for two networks."""
    for places in copies.values():
        if len({weights for weights, _ in places}) > 1:
            where = ", ".join(path for _, path in places[:5])
            fix = "evaluate each model itself"
            yield Problem("copied", where, "equal outcomes of other weights", "its own", fix)
