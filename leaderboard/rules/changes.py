"""Changes of a board against a base: what a pull request of a submitter may and may not do.

A submitter adds whole entry folders of one owner, or replaces an entry that the owner signed and
signs again. Every other change is a maintainer's: deleted and changed files, badges of existing
entries, board.json, workflows, links, submodules, hidden files. What an entry contains is left to
the inspection of the board.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.results.entry import ENTRY_FILE, MAX_ENTRY, EntryFile, parse_entry, read_content
from fsbench.results.names import BADGES
from fsbench.results.verification import RuleList
from leaderboard.git import run_git
from leaderboard.official import BOARD_FILE
from leaderboard.record import BoardFile
from leaderboard.signatures import ENTRY_NAMESPACE, is_signed

SPECIAL_MODES = {"100755": "an executable file", "120000": "a link", "160000": "a submodule"}
"""Modes of git that no file of a board has."""
KINDS = {"A": "added", "D": "deleted"}
"""Status of git -> kind of change."""
UNCHANGED = "* -text -filter -ident -working-tree-encoding\n"
"""Attributes with which git stores every file as it is."""
MAX_ADDED_FILE = 16 * 2**20
"""Bytes of one file of a new entry; 90 results of 600 episodes take 1 MB."""
CHANGE_RULES = RuleList()
FIX = "leave it out and rebase on the base, or ask a maintainer, who checks with --allow-maintainer"


class FileChange(NamedTuple):
    """A file that differs from the base; kind: added, changed, deleted or a special file."""

    path: PurePosixPath
    kind: str


@dataclass(frozen=True)
class TreeChanges:
    """All changes of a tree below `root`, and the board of the base.

    board: path of the board below `root`; file: the base's board.json; base_names: names in the
    board folder of the base; replaced: entries of the base whose key signed a newer state.
    """

    root: Path
    board: PurePosixPath
    changes: tuple[FileChange, ...]
    file: BoardFile
    base_names: frozenset[str]
    replaced: frozenset[str]

    @cached_property
    def changed_names(self) -> frozenset[str]:
        """Names in the board folder that changes are in, or of."""
        inside = (c.path for c in self.changes if c.path.is_relative_to(self.board))
        return frozenset(path.relative_to(self.board).parts[0] for path in inside)

    @cached_property
    def folded_names(self) -> frozenset[str]:
        """The base's names in lower case, which some file systems take for the same."""
        return frozenset(name.casefold() for name in self.base_names)


def compare_with_base(board: Path, base: str) -> TreeChanges:
    """Compare the commit that is checked out with a revision of its repository.

    base: a name of a commit and nothing else, so that no file of a pull request can take its place.
    Raises UsageError for another base, and where files are not committed.
    """
    root = Path(run_git(board, "rev-parse", "--show-toplevel").rstrip("\n"))
    parse = partial(run_git, board, "rev-parse", "--verify", "--end-of-options")
    before, after = (parse(f"{name}^{{commit}}").strip() for name in (base, "HEAD"))
    if run_git(root, "status", "--porcelain", "-z", "--untracked-files=all"):
        fix = "commit them: what is compared is what git has"
        raise UsageError(f"{root} has changes that are not committed", fix=fix)
    home = board.resolve().relative_to(root.resolve())
    return compare_trees(root, PurePosixPath(home), before, after)


def compare_folders(board: Path, base: Path) -> TreeChanges:
    """Compare two folders as git would store them, but for their own repositories.

    Git stores neither pipes nor empty folders. Raises UsageError if there is no such folder.
    """
    with TemporaryDirectory(prefix="fsbench-") as temporary:
        git_dir = Path(temporary, ".git")
        run_git(base, "init", "-q", "--template=", git_dir=git_dir)
        (git_dir / "info").mkdir()
        (git_dir / "info" / "attributes").write_text(UNCHANGED, encoding="utf8")
        before, after = (store_folder(folder, git_dir) for folder in (base, board))
        return compare_trees(board, PurePosixPath(), before, after, git_dir)


def store_folder(folder: Path, git_dir: Path) -> str:
    """Store all files of a folder in a repository; return the name of the tree."""
    run_git(folder, "read-tree", "--empty", git_dir=git_dir)
    run_git(folder, "add", "--all", "--force", ".", git_dir=git_dir)
    return run_git(folder, "write-tree", git_dir=git_dir).strip()


def compare_trees(
    root: Path, board: PurePosixPath, before: str, after: str, git_dir: Path | None = None
) -> TreeChanges:
    """Compare two trees of a repository, of which the second one lies in `root`.

    A base without a valid board.json is a board that trusts nobody.
    """
    git = partial(run_git, root, git_dir=git_dir)
    tree = before if board == PurePosixPath() else f"{before}:{board}"
    names = frozenset(git("ls-tree", "-z", "--name-only", "--full-tree", tree).split("\0"))
    options = ("-r", "--raw", "-z", "--no-renames", "--no-abbrev")
    fields = git("diff-tree", *options, before, after).split("\0")
    changes = []
    for facts, changed in zip(fields[:-1:2], fields[1::2], strict=True):
        _, mode, *_, status = facts.split()
        kind = SPECIAL_MODES.get(mode) or KINDS.get(status, "changed")
        changes.append(FileChange(PurePosixPath(changed), kind))
    try:
        file = BoardFile.model_validate_json(git("show", f"{before}:{board / BOARD_FILE}"))
    except (ValueError, UsageError):
        file = BoardFile(name="board")
    trees = TreeChanges(root, board, tuple(sorted(changes)), file, names, frozenset())
    replaced = set()
    for name in trees.changed_names & names:
        path = board / name / ENTRY_FILE
        with suppress(UsageError):  # it was no entry
            if is_signed_again(git("show", f"{before}:{path}"), root / path):
                replaced.add(name)
    return replace(trees, replaced=frozenset(replaced))


def is_signed_again(before: str, path: Path) -> bool:
    """Return whether the key of an entry signed its new state, and whether that is newer.

    An older state has a valid signature as well. before: content of entry.json; path: of the new
    one.
    """
    try:
        old, new = EntryFile.model_validate_json(before), read_entry_file(path)
        dates = [datetime.fromisoformat(file.submitted or "") for file in (old, new)]
    except (ValidationFailed, ValueError):  # not written by fsbench
        return False
    is_newer = dates[0] < dates[1]
    return is_newer and old.key is not None and is_signed(path, [old.key], ENTRY_NAMESPACE)


@CHANGE_RULES.add("change", FIX)
def check_files(comparison: TreeChanges) -> Iterator[str]:
    """Check that a submitter adds entries, or replaces those whose key signed the new state."""
    for change in comparison.changes:
        if reason := explain_refusal(comparison, change):
            path = repr(str(change.path))[1:-1]  # git takes names with line breaks
            yield f"{path[:300]}: {reason}, expected new entry folders of one owner"


@CHANGE_RULES.add("owner", "one pull request per owner, with equal authors in all of its entries")
def check_owner(comparison: TreeChanges) -> Iterator[str]:
    """Check that new and replaced entries are of one owner: a key, or else authors."""
    owners: dict[str, str] = {}
    others = comparison.base_names - comparison.replaced
    for name in sorted(comparison.changed_names - others):
        with suppress(ValidationFailed):  # the inspection of the board reports it
            file = read_entry_file(comparison.root / comparison.board / name / ENTRY_FILE)
            owners[name] = file.key or (file.declaration.authors if file.declaration else "")
    if len(set(owners.values())) > 1:
        listed = "; ".join(f"{name} by {owner[:60]}" for name, owner in list(owners.items())[:5])
        yield f"{listed}, expected one owner"


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
        return f"{change.kind} outside of entry folders"
    if any(part.startswith(".") for part in parts):
        return f"{change.kind} hidden file"
    if parts[0] in comparison.replaced and parts[1] != BADGES:
        if parts[0] in {*comparison.file.controls, *comparison.file.pooled}:
            return f"{change.kind} in {parts[0]!r}, which board.json names as a control or pooled"
        return change.kind if change.kind in SPECIAL_MODES.values() else None
    if parts[0].casefold() in comparison.folded_names:
        return f"{change.kind} in the existing entry {parts[0][:100]!r}"
    if change.kind != "added":
        return change.kind
    size = (comparison.root / change.path).stat().st_size
    return None if size <= MAX_ADDED_FILE else f"a file of {size} bytes"
