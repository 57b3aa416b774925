"""A board as a git repository: the files that it needs, and branches that add entries to it.

The workflow of the base branch compares two commits: a pull request can change neither the workflow
nor what it installs, and nothing of it is run. Addresses are passed to git as they are, which asks
for no password; credentials are neither read nor printed.
"""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_atomic, write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.results.names import safe_name
from fsbench.results.provenance import git_commit
from leaderboard.git import run_git
from leaderboard.official import BOARD_FILE, find_official_board
from leaderboard.record import BoardFile
from leaderboard.render.md import escape_markdown, render_table
from leaderboard.render.terminal import make_board_table
from leaderboard.rules.changes import check_changes, compare_with_base
from leaderboard.store import Board
from leaderboard.tables import rank_board

TEMPLATES = Path(__file__).resolve().parent / "templates"
VARIABLE = "${{ vars.FSBENCH }}"
"""The repository variable that names what pip installs, where no address is known."""
ABOUT = (
    "A leaderboard of frozen vision backbones, made with fsbench: every number is recomputed from "
    "stored outcomes, and every comparison is paired over the same episodes."
)
"""Template of `about`, which opens the README and the page."""
BEGIN, END = "<!-- tables: fsbench leaderboard readme -->", "<!-- end -->"
NO_ENTRIES = "No entries yet."
README_FILE, CHECK_FILE = "README.md", ".github/workflows/check.yml"
FILES = {
    README_FILE: "README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    CHECK_FILE: "check.yml",
    ".github/workflows/tables.yml": "tables.yml",
    ".gitignore": "gitignore",
    ".gitattributes": "gitattributes",
}
"""Files of a board's repository, and their templates with facts as `%(name)s`."""


def init_board(
    folder: Path, name: str | None = None, version: int | None = None, source: str | None = None
) -> BoardFile:
    """Write board.json of an official board, or of a free board, with the files of a repository.

    source: what the workflows install, by default this fsbench by its address, if that is known;
    a free board is named like the folder. Files that exist are left unchanged. Raises UnknownName,
    and UsageError if the folder is a board already; an official board must start without entries.
    """
    if version is not None and name is None:
        raise UsageError("a version of no board", fix="give --official NAME as well")
    if (folder / BOARD_FILE).exists():
        raise UsageError(f"{folder} already has a {BOARD_FILE}", fix="give a new folder")
    if name and any(folder.glob("[!.]*/entry.json")):
        raise UsageError(
            f"{folder} already holds entries, which were not checked for an official board",
            fix="give a new folder and submit them to it",
        )
    free = BoardFile(name=safe_name(folder.resolve().name), about=ABOUT)
    file = free if name is None else find_official_board(name, version)
    write_record(folder / BOARD_FILE, file)
    install_from = source or find_source()
    datasets = dict.fromkeys(column.name.task.dataset for column in file.columns or ())
    facts = {
        "source": json.dumps(install_from) if install_from else VARIABLE,
        "title": escape_markdown(file.title),
        "about": escape_markdown(file.about or ABOUT),
        "install": f": `pip install {shlex.quote(install_from)}`" if install_from else "",
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


def find_source() -> str | None:
    """Return fsbench's address with the commit of this installation; None without a public one."""
    address, commit = None, git_commit()
    if commit is not None:
        with suppress(UsageError):  # a checkout without origin
            address = run_git(Path(__file__).parent, "remote", "get-url", "origin").strip()
    else:
        with suppress(metadata.PackageNotFoundError):
            installed = metadata.distribution("fsbench").read_text("direct_url.json")
            direct = json.loads(installed or "{}")
            address, commit = direct.get("url"), direct.get("vcs_info", {}).get("commit_id")
    public = address and to_public_address(address)
    return f"fsbench @ git+{public}@{commit.removesuffix('-dirty')}" if public and commit else None


def to_public_address(address: str) -> str | None:
    """Return an address without user and password, ssh as https; None for a local path."""
    scp = re.fullmatch(r"(?:[\w.-]+@)?([\w.-]+\.[a-z]+):(?!//)(.+)", address)
    parts = urlsplit(f"https://{scp[1]}/{scp[2]}" if scp else address)
    if parts.scheme not in {"http", "https", "ssh", "git"} or not parts.hostname:
        return None
    port = f":{parts.port}" if parts.port and parts.scheme.startswith("http") else ""
    scheme = "http" if parts.scheme == "http" else "https"
    return urlunsplit((scheme, parts.hostname + port, parts.path, "", ""))


def render_readme(folder: Path, report: Reporter = SILENT) -> tuple[Path, bool]:
    """Write the tables of a board into its README; return the file, and whether it changed.

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
        board.settle()
    views = [view for view in rank_board(folder, report) if view.ranking.entries]
    tables = [make_board_table(view) for view in views]
    texts = [render_table(table.complete or table) for table in tables] or [NO_ENTRIES]
    filled = "\n\n".join([before + BEGIN, *texts, END + after])
    write_atomic(path, filled.encode())
    return path, filled != text


@dataclass(frozen=True)
class Proposal:
    """A branch that adds entries `names`; commands: that push it and open the pull request."""

    folder: Path
    branch: str
    names: tuple[str, ...]
    commands: tuple[str, ...]


def propose_entries(to: str, submit: Callable[[Path], Sequence[str]]) -> Proposal:
    """Commit entries to a new branch of the board's repository `to`, as a pull request needs it.

    to: a folder of a clone, or an address, which is cloned into the working directory; submit: adds
    entries to the board in a folder and returns their names. The branch starts at the default
    branch of origin; what is checked out in the clone stays as it is. Raises UsageError, and
    ValidationFailed where the check of pull requests would refuse it; nothing is left then.
    """
    with open_clone(to) as (board, base), TemporaryDirectory(prefix="fsbench-") as temporary:
        root = Path(run_git(board, "rev-parse", "--show-toplevel").rstrip("\n"))
        home, tree = board.resolve().relative_to(root.resolve()), Path(temporary) / "tree"
        run_git(root, "worktree", "add", "-q", "--detach", str(tree), base)
        try:
            names = submit(tree / home)
            branch = f"submit-{names[0]}"
            run_git(tree, "add", "-f", "--", *(str(home / name) for name in names))
            fix = "git config --global user.name NAME, and user.email ADDRESS"
            run_git(tree, "commit", "-q", "-m", f"Add {', '.join(names)}", fix=fix)
            for words in (("checkout", "-q", "--", "."), ("clean", "-q", "-fd")):
                run_git(tree, *words)  # what only a maintainer records
            if problems := list(check_changes(compare_with_base(tree / home, base))):
                listed = "\n  ".join(map(str, problems))
                raise ValidationFailed(f"the board would refuse the pull request\n  {listed}")
            fix = f"git branch -D {branch} removes an older branch; or choose another name"
            run_git(tree, "branch", branch, "HEAD", fix=fix)
        finally:
            run_git(root, "worktree", "remove", "--force", str(tree))
    return Proposal(board, branch, tuple(names), tuple(list_commands(board, branch, base)))


@contextmanager
def open_clone(to: str) -> Iterator[tuple[Path, str]]:
    """Yield a board folder in a clone, and the commit that new branches start from.

    A clone that is made here is removed if the block fails.
    """
    folder, is_new = Path(to), True
    if folder.is_dir():
        fix = "give a clone of the board's repository, or its address"
        answer = run_git(folder, "rev-parse", "--is-bare-repository", fix=fix)
        is_new = answer.strip() == "true"
    if is_new:
        folder = Path(folder.name.removesuffix(".git"))
        if folder.exists():
            raise UsageError(
                f"{folder} exists, so {to} cannot be cloned there",
                fix=f"give --to {folder} if it is a clone of the board, or change the folder",
            )
        fix = "give the folder of a clone, or an address that git can read"
        run_git(Path(), "clone", "-q", "--", to, str(folder), fix=fix)
    try:
        if not (folder / BOARD_FILE).is_file():
            raise UsageError(
                f"{to} has no {BOARD_FILE}", fix="give the repository, or the clone, of a board"
            )
        yield folder, find_base(folder)
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def find_base(clone: Path) -> str:
    """Return the default branch of origin as last fetched, else what is checked out."""
    with suppress(UsageError):
        return run_git(clone, "rev-parse", "--verify", "origin/HEAD").strip()
    return run_git(clone, "rev-parse", "--verify", "HEAD", fix="commit the board first").strip()


def list_commands(clone: Path, branch: str, base: str) -> Iterator[str]:
    """Yield the commands that publish a branch and open its pull request."""
    git, quoted = f"git -C {shlex.quote(str(clone))}", shlex.quote(branch)
    try:
        address = run_git(clone, "remote", "get-url", "origin").strip()
    except UsageError:  # the maintainer's own copy
        yield f"{git} merge --no-ff {quoted}"
        return
    yield f"{git} push origin {quoted}"
    public = to_public_address(address)
    parts = urlsplit(public or "")
    if parts.hostname == "github.com":
        repository = shlex.quote(parts.path.strip("/").removesuffix(".git"))
        yield f"gh pr create --repo {repository} --head {quoted} --fill"
    else:
        yield f"{git} request-pull {base[:12]} {shlex.quote(public or address)} {quoted}"
