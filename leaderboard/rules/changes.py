"""Changes of a board against a base: what a pull request of a submitter may and may not do.

A submitter adds whole entry folders of one owner, or replaces an entry that the owner signed and
signs again. A signer of the base's board.json also adds signed badges to existing entries. Every
other change is a maintainer's: deleted and changed files, other badges of existing entries,
board.json, workflows, links, submodules, hidden files.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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
from leaderboard.signatures import ENTRY_NAMESPACE, is_signed, signature_path
from leaderboard.trust import is_trusted

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
    """All changes of a tree below `root`, and the names in the board folder of the base.

    board: path of the board below `root`; signed: changed entries of the base that their owner
    signed, by name; file: the base's board.json, which names the keys that sign badges and the
    entries that gains are over.
    """

    root: Path
    board: PurePosixPath
    changes: tuple[FileChange, ...]
    base_names: frozenset[str]
    signed: Mapping[str, EntryFile]
    file: BoardFile


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
    base_names = frozenset(names.split("\0"))

    def read(name: str) -> str:
        return run_git(root, "show", f"{before}:{home / name}")

    signed = read_signed_entries(changes, home, base_names, read)
    return TreeChanges(root, home, changes, base_names, signed, read_base_file(read))


def find_commit(folder: Path, name: str) -> str:
    """Return the commit of a revision. Raises UsageError, also for an empty one."""
    return run_git(folder, "rev-parse", "--verify", "--end-of-options", name + "^{commit}").strip()


def read_base_file(read: Callable[[str], str]) -> BoardFile:
    """Return the base's board.json; one that trusts nobody if it has no valid one."""
    try:
        return BoardFile.model_validate_json(read(BOARD_FILE))
    except (OSError, ValueError, UsageError):
        return BoardFile(name="board")


def read_signed_entries(
    changes: Sequence[FileChange],
    home: PurePosixPath,
    base_names: frozenset[str],
    read: Callable[[str], str],
) -> dict[str, EntryFile]:
    """Return the changed entries of the base that name a key. read: path on the board -> text."""
    paths = [c.path.relative_to(home) for c in changes if c.path.is_relative_to(home)]
    signed = {}
    for name in sorted({path.parts[0] for path in paths if len(path.parts) > 1} & base_names):
        try:
            file = EntryFile.model_validate_json(read(f"{name}/{ENTRY_FILE}"))
        except (OSError, ValueError, UsageError):  # no entry, or none that fsbench wrote
            continue
        if file.key:
            signed[name] = file
    return signed


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
    names, home = frozenset(path.name for path in base.iterdir()), PurePosixPath()

    def read(name: str) -> str:
        return (base / name).read_text(encoding="utf8")

    signed = read_signed_entries(changes, home, names, read)
    return TreeChanges(board, home, tuple(changes), names, signed, read_base_file(read))


def list_modes(folder: Path) -> dict[str, str]:
    """Return the mode of every file, link and empty folder below `folder`.

    git stores no empty folder, but leaves one where a submodule was not fetched.
    """
    modes = {}
    for home, names, leaves in os.walk(folder):
        if Path(home) == folder and ".git" in (*names, *leaves):
            names[:] = [name for name in names if name != ".git"]
            leaves = [leaf for leaf in leaves if leaf != ".git"]
        links = [name for name in names if (Path(home) / name).is_symlink()]
        for path in [Path(home) / name for name in (*leaves, *links)] or [Path(home)]:
            if path != Path(home) or not names:
                modes[path.relative_to(folder).as_posix()] = read_mode(path)
    modes.pop(".", None)
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
    if not a.is_file():
        return True
    return a.stat().st_size == b.stat().st_size and a.read_bytes() == b.read_bytes()


def check_changes(comparison: TreeChanges) -> Iterator[Problem]:
    """Yield a Problem for every change that only a maintainer makes, and for several owners.

    A submitter adds entries, and replaces entries whose key signed the new state as well.
    """
    replaced = {
        name: read_replacement(comparison.root / comparison.board / name / ENTRY_FILE, file)
        for name, file in comparison.signed.items()
    }
    taken = {name.casefold() for name in comparison.base_names}
    added: dict[str, list[FileChange]] = {}
    for change in comparison.changes:
        reason = explain_refusal(comparison, change, taken, replaced)
        if reason is None:
            name = change.path.relative_to(comparison.board).parts[0]
            if name not in comparison.base_names or name in replaced:  # else a signed badge
                added.setdefault(name, []).append(change)
        else:
            where = repr(str(change.path))[1:-1]  # git takes names with line breaks
            yield Problem.contrast("change", where[:300], reason, EXPECTED, FIX)
    owners: dict[str, str] = {}
    for name in added:
        path = comparison.root / comparison.board / name / ENTRY_FILE
        try:
            file = read_entry_file(path)
        except ValidationFailed:  # the inspection of the board reports it, if it is an entry at all
            if not path.is_file():
                yield Problem.contrast(
                    "change", str(path.parent), f"no {ENTRY_FILE}", EXPECTED, FIX
                )
            continue
        owners[name] = file.key or (file.declaration.authors if file.declaration else "")
    if len(set(owners.values())) > 1:
        actual = "; ".join(f"{name} by {owner[:60]}" for name, owner in sorted(owners.items())[:5])
        fix = "one pull request per owner, with equal authors in all of its entries"
        yield Problem.contrast("owner", str(comparison.root), actual, "one owner", fix)


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


def explain_refusal(
    comparison: TreeChanges,
    change: FileChange,
    taken: set[str],
    replaced: Mapping[str, EntryFile | None],
) -> str | None:
    """Return why a submitter may not make a change.

    replaced: entries of the base that name a key, with their new state if it signed that. Their
    badges stay, so that no failed one is lost, and so do entries that others are measured by.
    """
    inside = change.path.is_relative_to(comparison.board)
    parts = change.path.relative_to(comparison.board).parts if inside else ()
    if len(parts) < 2:
        return f"{change.words} outside of entry folders"
    if any(part.startswith(".") for part in parts):
        return f"{change.words} hidden file"
    if replaced.get(parts[0]) and parts[1] != BADGES:
        if parts[0] in {*comparison.file.controls, *comparison.file.pooled}:
            return f"{change.words} in {parts[0]!r}, which board.json names as a control or pooled"
        return None if change.after in {FILE, None} else change.words
    if is_signed_badge(comparison, change):
        return None
    if parts[0].casefold() in taken:
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
    return is_trusted(file, comparison.file.signers)
