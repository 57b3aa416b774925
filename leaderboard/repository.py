"""A board as a git repository: the files that it needs, and branches that add entries to it.

The workflow of the base branch compares two commits: a pull request can change neither the workflow
nor what it installs, and nothing of it is run. Addresses are passed to git as they are, which asks
for no password; credentials are neither read nor printed.
"""

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_atomic, write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.results.names import safe_name
from leaderboard.git import run_git
from leaderboard.official import BOARD_FILE, find_official_board
from leaderboard.record import BoardFile
from leaderboard.render import md
from leaderboard.render.frame import make_frame
from leaderboard.rules.changes import CHANGE_RULES, compare_with_base
from leaderboard.store import Board
from leaderboard.tables import rank_board

TEMPLATES = Path(__file__).resolve().parent / "templates"
ABOUT = (
    "A leaderboard of frozen vision backbones, made with fsbench: every number is recomputed from "
    "stored outcomes, and every comparison is paired over the same episodes."
)
"""`about` of a free board, which opens the README and the page."""
BEGIN, END = "<!-- tables: fsbench leaderboard readme -->", "<!-- end -->"
NO_ENTRIES = "No entries yet."
README_FILE = "README.md"
BASE = "origin/HEAD"
"""The start of branches of entries: the default branch of origin, as last fetched."""
FILES = {
    README_FILE: "README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    ".github/workflows/check.yml": "check.yml",
    ".github/workflows/tables.yml": "tables.yml",
    ".gitignore": "gitignore",
    ".gitattributes": "gitattributes",
}
"""Files of a board's repository, and their templates with facts as `%(name)s`."""


def init_board(folder: Path, official: str | None = None, source: str | None = None) -> BoardFile:
    """Write board.json of an official board, or of a free board, with the files of a repository.

    official: its name, or that of a version; a free board is named like the folder; source: what
    the workflows install, by default what the repository variable FSBENCH names. Files that exist
    are left unchanged. Raises UnknownName, and UsageError if the folder is a board already; an
    official board must start without entries.
    """
    if (folder / BOARD_FILE).exists():
        raise UsageError(f"{folder} already has a {BOARD_FILE}", fix="give a new folder")
    if official and any(folder.glob("[!.]*/entry.json")):
        raise UsageError(
            f"{folder} already holds entries, which were not checked for an official board",
            fix="give a new folder and submit them to it",
        )
    free = BoardFile(name=safe_name(folder.resolve().name), about=ABOUT)
    file = free if official is None else find_official_board(official)
    write_record(folder / BOARD_FILE, file)
    datasets = dict.fromkeys(column.name.task.dataset for column in file.columns or ())
    facts = {
        "source": json.dumps(source) if source else "${{ vars.FSBENCH }}",
        "title": md.escape_markdown(file.title),
        "about": md.escape_markdown(file.about or ABOUT),
        "install": f": `pip install {shlex.quote(source)}`" if source else "",
        "columns": f" on {', '.join(datasets)}" if datasets else "",
    }
    for path, template in FILES.items():
        if not (folder / path).exists():
            text = (TEMPLATES / template).read_text(encoding="utf8") % facts
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / path, text.encode())
    if BEGIN in (folder / README_FILE).read_text(encoding="utf8"):
        render_readme(folder)
    return file


def render_readme(folder: Path, report: Reporter = SILENT) -> Path:
    """Write the tables of a board into its README; return the file.

    The history of the board is brought up to date. Raises UsageError for a README without the two
    marks between which the tables stand.
    """
    board, path = Board.open(folder), folder / README_FILE
    text = path.read_text(encoding="utf8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UsageError(
            f"{path} has no place for the tables", fix=f"add the lines {BEGIN} and {END} to it"
        )
    with board.lock():
        board.record_changes()
    views = [view for view in rank_board(folder, report) if view.ranking.entries]
    tables = md.make([make_frame(view) for view in views]).rstrip("\n") or NO_ENTRIES
    write_atomic(path, "\n\n".join([before + BEGIN, tables, END + after]).encode())
    return path


def propose_entries(to: str, submit: Callable[[Path], Sequence[str]]) -> tuple[Path, str]:
    """Commit entries to a branch of the board's repository `to`; return its clone and the branch.

    to: a board in a clone, or an address, which is cloned into the working directory; submit: adds
    entries to the board in a folder and returns their names. The branch starts at the default
    branch of origin; what is checked out in the clone stays as it is. Raises UsageError, and
    ValidationFailed where the check of pull requests would refuse it; nothing is left then.
    """
    with TemporaryDirectory(prefix="fsbench-") as temporary:
        board = find_clone(to, Path(temporary))
        root = Path(run_git(board, "rev-parse", "--show-toplevel").rstrip("\n"))
        tree = Path(temporary, ".tree")
        fix = "fetch it: git fetch origin && git remote set-head origin --auto"
        run_git(root, "worktree", "add", "-q", "--detach", str(tree), BASE, fix=fix)
        try:
            copy = tree / board.resolve().relative_to(root.resolve())
            names = submit(copy)
            branch = f"submit-{names[0]}"
            run_git(copy, "add", "-f", "--", *names)
            fix = "git config --global user.name NAME, and user.email ADDRESS"
            run_git(copy, "commit", "-q", "-m", f"Add {', '.join(names)}", fix=fix)
            run_git(tree, "checkout", "-q", "--", ".")  # what only a maintainer records
            run_git(tree, "clean", "-q", "-fd")
            if problems := list(CHANGE_RULES.find_problems(copy, compare_with_base(copy, BASE))):
                listed = "\n  ".join(map(str, problems))
                raise ValidationFailed(f"the board would refuse the pull request\n  {listed}")
            fix = f"git branch -D {branch} removes an older branch; or choose another name"
            run_git(tree, "branch", branch, "HEAD", fix=fix)
        finally:
            run_git(root, "worktree", "remove", "--force", str(tree))
        if board.parent == Path(temporary):
            board = Path(shutil.move(board, board.name))
    return board, branch


def find_clone(to: str, temporary: Path) -> Path:
    """Return the board in a clone; an address is cloned into a temporary folder."""
    if (Path(to) / BOARD_FILE).is_file():
        return Path(to)
    name = Path(to).name.removesuffix(".git")
    if Path(name).exists():
        fix = f"give --to {name} if it is a clone of the board, or change the folder"
        raise UsageError(f"{name} exists, so {to} cannot be cloned there", fix=fix)
    fix = "give the folder of a clone, or an address that git can read"
    run_git(Path(), "clone", "-q", "--", to, str(temporary / name), fix=fix)
    if not (temporary / name / BOARD_FILE).is_file():
        raise UsageError(f"{to} has no {BOARD_FILE}", fix="give the repository or clone of a board")
    return temporary / name
