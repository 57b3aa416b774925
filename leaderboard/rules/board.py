"""Inspection of a whole board folder: the check for pull requests that add entries.

Every entry is checked by all rules of a submission again, and so are its digest, its badges and its
files. All problems are reported at once; nothing is executed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.errors import FsbenchError, ValidationFailed
from fsbench.core.progress import format_count
from fsbench.core.records import EpisodeRecords
from fsbench.results.entry import ENTRY_FILE, Entry, Loaded, make_file, read_entry
from fsbench.results.names import BADGES
from fsbench.results.verification import Problem, RuleList
from leaderboard.badges import FEWEST, Badge, ColumnCheck, draw_episodes, read_badges
from leaderboard.history import HISTORY_FILE, VERIFICATIONS_FILE
from leaderboard.near_copies import Suspicions, find_suspicions, list_results
from leaderboard.ranking.outcomes import compact
from leaderboard.rules.submission import BOARD_RULES, check_entry, check_origin
from leaderboard.signatures import ENTRY_NAMESPACE, is_signed, signature_path
from leaderboard.store import Board, BoardEntry
from leaderboard.submission import Submission, check_folder

BOARD_FILES = (
    *("board.json", HISTORY_FILE, VERIFICATIONS_FILE, "README.md", "CONTRIBUTING.md"),
    *("LICENSE", "CITATION.cff", "constraints.txt"),
)
HIDDEN_FILES = (".git", ".gitattributes", ".gitignore", ".lock")
"""In a worktree .git is a file."""
HIDDEN_FOLDERS = (".git", ".github")
REMOVE = "remove it from the board"
FOLDER_RULES, STORED_RULES, BADGE_RULES = RuleList(), RuleList(), RuleList()
"""Of the folder of a board, of the folder of an entry, and of a badge in it."""


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


def inspect_board(folder: Path) -> Inspection:
    """Read and check a whole board. Raises UsageError if there is none."""
    try:
        board = Board.open(folder)
        names = board.history.sort(board.names())
    except ValidationFailed as error:
        problem = make_error_problem("board", folder, error)
        return Inspection([*FOLDER_RULES.find_problems(folder, folder), problem])
    inspection = Inspection(list(FOLDER_RULES.find_problems(folder, folder)))
    for name in names:
        try:
            inspection.problems += inspect_entry(board, name, inspection)
        except FsbenchError as error:
            inspection.problems.append(make_error_problem("entry", folder / name, error))
    results = {entry.name: entry.results for entry in inspection.entries}
    inspection.problems += BOARD_RULES.find_problems(folder, results, board.file)
    inspection.suspicions = find_suspicions(board.file, list_results(inspection.entries))
    return inspection


def make_error_problem(code: str, where: Path, error: FsbenchError) -> Problem:
    return Problem(code, str(where), error.message, error.fix or REMOVE)


@FOLDER_RULES.add("stray", REMOVE)
def check_stray_files(folder: Path) -> Iterator[str]:
    """Check that a board folder holds entries and BOARD_FILES only."""
    for path in sorted(folder.iterdir()):
        allowed = HIDDEN_FOLDERS if path.is_dir() else (*BOARD_FILES, *HIDDEN_FILES)
        is_entry = not path.name.startswith(".") and (path / ENTRY_FILE).is_file()
        if path.is_symlink() or not (path.name in allowed or is_entry):
            yield f"{path.name}: no entry, expected entries and {BOARD_FILES[0]}"


@FOLDER_RULES.add("name", REMOVE)
def check_letter_case(folder: Path) -> Iterator[str]:
    """Check that no two entries differ in letter case alone, which some file systems ignore."""
    names = Counter(path.parent.name.casefold() for path in folder.glob(f"[!.]*/{ENTRY_FILE}"))
    for name, count in names.items():
        if count > 1:
            yield f"{name}: the same name in another letter case, expected one"


def inspect_entry(board: Board, name: str, inspection: Inspection) -> Iterator[Problem]:
    """Yield every Problem of one entry, and add it to the inspection."""
    home = board.folder / name
    check_folder(home)
    entry = read_entry(home)
    if entry.file.declaration is None or None in (entry.file.submitted, entry.file.fsbench):
        yield Problem("entry", str(home), "a results folder, not a submitted entry", REMOVE)
        return
    yield from STORED_RULES.find_problems(home / ENTRY_FILE, entry)
    submission = Submission(entry.file.declaration, name, entry.loaded, entry.controls)
    yield from check_entry(submission, board)
    badges = read_badges(home)
    for path, badge in badges:
        yield from BADGE_RULES.find_problems(path, badge, entry)
    inspection.badges += len(badges)
    inspection.entries.append(BoardEntry(**vars(compact(entry))))


@STORED_RULES.add("entry")
def check_layout(entry: Entry) -> Iterator[str]:
    """Check that entry.json is as fsbench writes it: each fact once, in its place."""
    names = ("declaration", "submitted", "fsbench", "key", "outcomes")
    facts = {name: getattr(entry.file, name) for name in names}
    text = make_file([one.result for one in entry.loaded], entry.controls, **facts).to_text()
    if hashlib.sha256(text.encode()).hexdigest() != entry.digest:
        yield "it is not as fsbench writes it"


@STORED_RULES.add("name", "name the folder after it")
def check_folder_name(entry: Entry) -> Iterator[str]:
    """Check that the folder has the declared name."""
    if entry.name != entry.folder.name:
        yield f"{entry.name}, expected {entry.folder.name}"


@STORED_RULES.add("provenance", "submit it again with --replace")
def check_submitted(entry: Entry) -> Iterator[str]:
    """Check that this version of fsbench, or an earlier one, took the entry in the past."""
    yield from check_origin(entry.file.submitted or "", entry.file.fsbench or "")


@STORED_RULES.add("signature", "sign it again: fsbench submit --replace --sign-with KEY")
def check_signature(entry: Entry) -> Iterator[str]:
    """Check that the owner's key signed the entry, if it names one."""
    path, key = entry.folder / ENTRY_FILE, entry.file.key
    if key and not is_signed(path, [key], ENTRY_NAMESPACE):
        yield "none of its key, expected one"


@STORED_RULES.add("stray", REMOVE)
def check_entry_files(entry: Entry) -> Iterator[str]:
    """Check that there are the two files of the entry, its signature and badges, and no other."""
    home, file = entry.folder, entry.file
    expected = {home / ENTRY_FILE, home / file.outcomes_file}
    expected |= {signature_path(home / ENTRY_FILE)} if file.key else set()
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        badge = path.with_suffix("") if path.suffix == ".sig" else path
        is_badge = path.parent == home / BADGES and badge.suffix == ".json" and badge.is_file()
        if not (path in expected or is_badge):
            yield f"{path.relative_to(home)}: no part of the entry, expected only its two files"


@BADGE_RULES.add("badge", "remove the badge, or verify the entry again")
def check_badge(badge: Badge, entry: Entry) -> Iterator[str]:
    """Check that a badge is of these results and of episodes drawn as `verify` draws them.

    What it says of them a signature vouches for. A badge of an earlier state counts for nothing, so
    that only its entry and date are checked.
    """
    if badge.entry != entry.name:
        yield f"a badge of {badge.entry!r}, expected of {entry.name!r}"
    if datetime.fromisoformat(badge.date) > datetime.now(UTC):
        yield f"date {badge.date}, expected a date that has passed"
    if badge.entry_digest != entry.digest:
        return
    of_network = [c for c in entry.loaded if c.result.backbone.identity == badge.weights]
    results = {str(loaded.result.column): loaded for loaded in of_network}
    columns = [str(check.column) for check in badge.checks]
    if sorted([*columns, *badge.not_verified]) != sorted(results):
        yield f"results {', '.join(columns)}, expected {', '.join(sorted(results))}, each once"
    for column, check in zip(columns, badge.checks, strict=True):
        for text in compare_with_entry(badge, check, results[column]) if column in results else ():
            yield f"{column}: {text}"


def compare_with_entry(badge: Badge, check: ColumnCheck, loaded: Loaded) -> Iterator[str]:
    """Yield what is wrong with the episodes of a check: they follow from the entry and the seed."""
    if not isinstance(loaded.records, EpisodeRecords):
        yield "no episodes, expected few-shot results"
        return
    n, most = len(check.drawn), len(loaded.records.index)
    if n < min(FEWEST, most):
        yield f"{n} episodes drawn, expected {min(FEWEST, most)} or more"
    if check.drawn != (drawn := draw_episodes(loaded, n, badge.entry_digest, badge.seed)):
        yield f"drawn episodes {str(check.drawn)[:100]}, expected {str(drawn)[:100]}"
    if not n <= check.episodes <= most:
        yield f"{check.episodes} episodes, expected at most the {most} it has"
