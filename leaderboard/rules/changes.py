"""Changes of a board against a base: what a pull request of a submitter may and may not do.

A submitter adds whole entry folders of one owner, or replaces an entry that the owner signed and
signs again. A signer of the base's board.json also adds signed badges to existing entries. Every
other change is a maintainer's: deleted and changed files, other badges of existing entries,
board.json, workflows, links, submodules, hidden files.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from filecmp import cmp
from functools import cached_property
from pathlib import Path, PurePosixPath

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_record
from fsbench.results.entry import ENTRY_FILE, MAX_ENTRY, EntryFile, parse_entry, read_content
from fsbench.results.names import BADGES
from fsbench.results.verification import Problem
from leaderboard.badges import Badge
from leaderboard.intake.archive import MAX_DEPTH
from leaderboard.official import BOARD_FILE
from leaderboard.record import BoardFile
from leaderboard.signatures import BADGE_NAMESPACE, ENTRY_NAMESPACE, is_signed, signature_path

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
"""File modes of git."""
SPECIAL_MODES = {PROGRAM: "an executable file", LINK: "a link", SUBMODULE: "a submodule"}
MAX_ADDED_FILE = 16 * 2**20
"""Bytes of one file of a new entry; 90 results of 600 episodes take 1 MB."""
EXPECTED = "new entry folders of one owner"
FIX = "leave it out and rebase on the base, or ask a maintainer, who checks with --allow-maintainer"


@dataclass(frozen=True)
class FileChange:
    """A file that differs from the base: its path and its modes, None where it does not exist."""

    path: PurePosixPath
    before: str | None
    after: str | None

    @property
    def words(self) -> str:
        if self.after is None:
            return "deleted"
        if self.after in SPECIAL_MODES:
            return SPECIAL_MODES[self.after]
        if self.before is None:
            return "added"
        return "changed" if self.before == self.after else f"mode {self.before} -> {self.after}"


@dataclass(frozen=True)
class TreeChanges:
    """All changes of a tree below `root`, and the board of the base.

    board: path of the board below `root`; base_names: names in the board folder of the base; read:
    path on the board -> text in the base.
    """

    root: Path
    board: PurePosixPath
    changes: tuple[FileChange, ...]
    base_names: frozenset[str]
    read: Callable[[str], str]

    @cached_property
    def taken(self) -> frozenset[str]:
        """The base's names in lower case, which some file systems take for the same."""
        return frozenset(name.casefold() for name in self.base_names)

    @cached_property
    def file(self) -> BoardFile:
        """The base's board.json; one that trusts nobody if it has no valid one."""
        try:
            return BoardFile.model_validate_json(self.read(BOARD_FILE))
        except (OSError, ValueError, UsageError):
            return BoardFile(name="board")

    @cached_property
    def replaced(self) -> dict[str, EntryFile | None]:
        """Changed entries of the base that name a key: their new state if it signed that."""
        inside = (c.path for c in self.changes if c.path.is_relative_to(self.board))
        parts = [path.relative_to(self.board).parts for path in inside]
        replaced = {}
        for name in sorted({part[0] for part in parts if len(part) > 1} & self.base_names):
            try:
                before = EntryFile.model_validate_json(self.read(f"{name}/{ENTRY_FILE}"))
            except (OSError, ValueError, UsageError):  # no entry, or none that fsbench wrote
                continue
            if before.key:
                path = self.root / self.board / name / ENTRY_FILE
                replaced[name] = read_replacement(path, before)
        return replaced


def compare_with_base(board: Path, base: str) -> TreeChanges:
    """Compare the commit that is checked out with a revision of its repository.

    base: a name of a commit and nothing else, so that no file of a pull request can take its place.
    Raises UsageError for another base, and where files are not committed.
    """
    root = Path(run_git(board, "rev-parse", "--show-toplevel").rstrip("\n"))
    before, after = (find_commit(board, name) for name in (base, "HEAD"))
    if run_git(root, "status", "--porcelain", "-z", "--untracked-files=all"):
        fix = "commit them: what is compared is what git has"
        raise UsageError(f"{root} has changes that are not committed", fix=fix)
    home = PurePosixPath(board.resolve().relative_to(root.resolve()).as_posix())
    tree = before if home == PurePosixPath() else f"{before}:{home}"
    names = run_git(board, "ls-tree", "-z", "--name-only", "--full-tree", tree)
    changes = tuple(sorted(read_git_changes(root, before, after), key=lambda change: change.path))

    def read(name: str) -> str:
        return run_git(root, "show", f"{before}:{home / name}")

    return TreeChanges(root, home, changes, frozenset(names.split("\0")), read)


def find_commit(folder: Path, name: str) -> str:
    """Return the commit of a revision. Raises UsageError, also for an empty one."""
    return run_git(folder, "rev-parse", "--verify", "--end-of-options", name + "^{commit}").strip()


def read_git_changes(root: Path, before: str, after: str) -> Iterator[FileChange]:
    """Yield the files that differ between two commits."""
    options = ("-r", "--raw", "-z", "--no-renames", "--no-abbrev")
    words = run_git(root, "diff-tree", *options, before, after).split("\0")
    for facts, path in zip(words[:-1:2], words[1::2], strict=True):
        modes = (None if set(m) == {"0"} else m for m in facts.lstrip(":").split()[:2])
        yield FileChange(PurePosixPath(path), *modes)


BASE_FIX = "give a commit of the board's repository as --base, or a folder as --base-folder"


def run_git(folder: Path, *arguments: str, fix: str = BASE_FIX) -> str:
    """Return what a command of git prints. Raises UsageError with its message; asks nothing."""
    git = shutil.which("git")
    if git is None:
        raise UsageError(
            "there is no git on PATH", fix="install git, or give a folder as --base-folder"
        )
    settings = [
        word
        for setting in ("fsmonitor=false", "autocrlf=false", f"hooksPath={os.devnull}")
        for word in ("-c", f"core.{setting}")
    ]
    done = subprocess.run(
        [git, "-C", str(folder), *settings, *arguments],
        capture_output=True,
        check=False,
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
    )
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"git {arguments[0]} fails in {folder}: {message[-1] if message else 'no message'}",
            fix=fix,
        )
    return os.fsdecode(done.stdout)


def compare_folders(board: Path, base: Path) -> TreeChanges:
    """Compare a board with a folder file by file; .git at their top is left out.

    Raises UsageError if there is no such folder.
    """
    if not base.is_dir():
        raise UsageError(f"there is no folder {base}", fix="give the board as it was")
    before, after = list_modes(base), list_modes(board)
    changes = [
        FileChange(PurePosixPath(path), before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path) or not has_same_bytes(base / path, board / path)
    ]
    names = frozenset(path.name for path in base.iterdir())

    def read(name: str) -> str:
        return (base / name).read_text(encoding="utf8")

    return TreeChanges(board, PurePosixPath(), tuple(changes), names, read)


def list_modes(folder: Path) -> dict[str, str]:
    """Return the mode of every file, link and empty folder below `folder`.

    git stores no empty folder, but leaves one where a submodule was not fetched.
    """
    modes = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        is_leaf = path.is_symlink() or not path.is_dir() or not any(path.iterdir())
        if is_leaf and name.parts[0] != ".git":
            modes[name.as_posix()] = read_mode(path)
    return modes


def read_mode(path: Path) -> str:
    """Return the mode that git gives to a file; SUBMODULE for a folder."""
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return LINK
    if path.is_dir():
        return SUBMODULE
    return PROGRAM if path.stat().st_mode & 0o100 else FILE


def has_same_bytes(a: Path, b: Path) -> bool:
    """Return whether two plain files are equal, or two links."""
    if a.is_symlink():
        return b.is_symlink() and a.readlink() == b.readlink()
    return not a.is_file() or cmp(a, b, shallow=False)


def check_changes(comparison: TreeChanges) -> Iterator[Problem]:
    """Yield a Problem for every change that only a maintainer makes, and for several owners.

    A submitter adds entries, and replaces entries whose key signed the new state as well.
    """
    names = set()
    for change in comparison.changes:
        reason = explain_refusal(comparison, change)
        if reason is None:
            names.add(change.path.relative_to(comparison.board).parts[0])
        else:
            where = repr(str(change.path))[1:-1]  # git takes names with line breaks
            yield Problem.contrast("change", where[:300], reason, EXPECTED, FIX)
    owners: dict[str, str] = {}
    for name in sorted(names - (comparison.base_names - comparison.replaced.keys())):
        path = comparison.root / comparison.board / name / ENTRY_FILE
        try:
            file = read_entry_file(path)
        except ValidationFailed:  # the inspection of the board reports it, if it is an entry at all
            if not path.is_file():
                actual = f"no {ENTRY_FILE}"
                yield Problem.contrast("change", path.parent, actual, EXPECTED, FIX)
            continue
        owners[name] = file.key or (file.declaration.authors if file.declaration else "")
    if len(set(owners.values())) > 1:
        actual = "; ".join(f"{name} by {owner[:60]}" for name, owner in list(owners.items())[:5])
        fix = "one pull request per owner, with equal authors in all of its entries"
        yield Problem.contrast("owner", comparison.root, actual, "one owner", fix)


def read_replacement(path: Path, before: EntryFile) -> EntryFile | None:
    """Return an entry if the key of its state before signed it, and if it is newer than that.

    An older state has a valid signature as well.
    """
    try:
        after = read_entry_file(path)
        dates = [datetime.fromisoformat(file.submitted or "") for file in (before, after)]
        is_newer = dates[0] < dates[1]
    except (ValidationFailed, ValueError, TypeError):
        return None
    has_key = after.key is not None and after.key == before.key
    signed = has_key and is_signed(path, [str(after.key)], ENTRY_NAMESPACE)
    return after if is_newer and signed else None


def read_entry_file(path: Path) -> EntryFile:
    """Return the content of entry.json. Raises ValidationFailed."""
    return parse_entry(path, read_content(path, MAX_ENTRY))


def explain_refusal(comparison: TreeChanges, change: FileChange) -> str | None:
    """Return why a submitter may not make a change.

    Badges of a replaced entry stay, so that no failed one is lost, and so do entries that others
    are measured by.
    """
    inside = change.path.is_relative_to(comparison.board)
    parts = change.path.relative_to(comparison.board).parts if inside else ()
    if len(parts) < 2:
        return f"{change.words} outside of entry folders"
    if any(part.startswith(".") for part in parts):
        return f"{change.words} hidden file"
    if comparison.replaced.get(parts[0]) and parts[1] != BADGES:
        if parts[0] in {*comparison.file.controls, *comparison.file.pooled}:
            return f"{change.words} in {parts[0]!r}, which board.json names as a control or pooled"
        return None if change.after in {FILE, None} else change.words
    if is_signed_badge(comparison, change):
        return None
    if parts[0].casefold() in comparison.taken:
        return f"{change.words} in the existing entry {parts[0][:100]!r}"
    if change.words != "added":
        return change.words
    if len(parts) > MAX_DEPTH:
        return f"a path of {len(parts)} parts"
    size = (comparison.root / change.path).stat().st_size
    return None if size <= MAX_ADDED_FILE else f"a file of {size} bytes"


def is_signed_badge(comparison: TreeChanges, change: FileChange) -> bool:
    """Return whether a change adds a badge, or its signature, by a key that the base trusts.

    The inspection of the board checks that the badge fits the results of its entry.
    """
    file = comparison.root / change.path.with_name(change.path.name.removesuffix(".sig"))
    parts = change.path.relative_to(comparison.board).parts
    if change.words != "added" or len(parts) != 3 or parts[1] != BADGES:
        return False
    if parts[0] not in comparison.base_names or file.suffix != ".json":
        return False
    if any(read_mode(path) != FILE for path in (file, signature_path(file))):
        return False
    if file.stat().st_size > MAX_ADDED_FILE:
        return False
    try:
        read_record(file, Badge)
    except ValidationFailed:
        return False
    return is_signed(file, comparison.file.signers, BADGE_NAMESPACE)
