"""A board as a git repository: the files that it needs, and branches that add entries to it.

The workflow of the base branch compares two commits: a pull request can change neither the workflow
nor what it installs, and nothing of it is run. Addresses are passed to git as they are, which asks
for no password; credentials are neither read nor printed.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from fsbench.core.errors import FsbenchError, UsageError, ValidationFailed
from fsbench.core.io import write_atomic, write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.results.names import safe_name
from fsbench.results.provenance import git_commit
from leaderboard.intake.submission import Submission
from leaderboard.official import BOARD_FILE, find_official_board
from leaderboard.record import BoardFile
from leaderboard.reports.render import escape_markdown, make_overview_table, render_table
from leaderboard.rules.changes import check_changes, compare_with_base, run_git
from leaderboard.rules.submission import submit_results
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
    for path, content in repository_files(file, source or find_source()).items():
        if not (folder / path).exists():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / path, content.encode())
    if BEGIN in (folder / README_FILE).read_text(encoding="utf8"):
        render_readme(folder)
    return file


def repository_files(file: BoardFile, source: str | None) -> dict[str, str]:
    """Return the files of a board's repository by path. source: what the workflows install."""
    install = json.dumps(source) if source else VARIABLE
    datasets = dict.fromkeys(column.name.task.dataset for column in file.columns or ())
    facts = {
        "source": install,
        "title": escape_markdown(file.title),
        "about": escape_markdown(file.about or ABOUT),
        "begin": BEGIN,
        "end": END,
        "install": f": `pip install {shlex.quote(source)}`" if source else "",
        "columns": f" on {', '.join(datasets)}" if datasets else "",
    }
    return {
        CHECK_FILE: read_template("check.yml") % facts,
        ".github/workflows/tables.yml": read_template("tables.yml") % facts,
        ".gitignore": ".lock\n.staging-*\n",
        ".gitattributes": "* -text\n",  # entries are compared byte by byte
        README_FILE: read_template(README_FILE) % facts,
        "CONTRIBUTING.md": read_template("CONTRIBUTING.md") % facts,
    }


def read_template(name: str) -> str:
    """Return a file of a board's repository, with places for facts as `%(name)s`."""
    return (TEMPLATES / name).read_text(encoding="utf8")


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
    board, path = Board.existing(folder), folder / README_FILE
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
    tables = [make_overview_table(view) for view in views]
    texts = [render_table(table.complete or table) for table in tables] or [NO_ENTRIES]
    filled = "\n\n".join([before + BEGIN, *texts, END + after])
    write_atomic(path, filled.encode())
    return path, filled != text


@dataclass(frozen=True)
class Proposal:
    """A branch that adds entries to a board's repository; commands: push and pull request."""

    folder: Path
    branch: str
    entries: tuple[Submission, ...]
    commands: tuple[str, ...]


def propose_entries(
    results: Path,
    to: str,
    declaration: Mapping[str, Any],
    *,
    file: Path | None = None,
    models: Sequence[str] = (),
    controls: Sequence[str] = (),
    replace: bool = False,
    sign_with: Path | None = None,
) -> Proposal:
    """Check results and commit their entries to a new branch of the board's repository `to`.

    to: a folder of a clone, or an address, which is cloned into the working directory. The branch
    starts at the default branch of origin; what is checked out in the clone stays as it is. Other
    arguments as for `submit_results`. Raises UsageError, ValidationFailed; nothing is left then.
    """
    with open_clone(to) as (board, base), TemporaryDirectory(prefix="fsbench-") as temporary:
        root = Path(run_git(board, "rev-parse", "--show-toplevel").rstrip("\n"))
        home = board.resolve().relative_to(root.resolve())
        tree = Path(temporary) / "tree"
        run_git(root, "worktree", "add", "-q", "--detach", str(tree), base)
        try:
            entries = submit_results(
                results,
                tree / home,
                declaration,
                file=file,
                models=models,
                controls=controls,
                replace=replace,
                sign_with=sign_with,
            )
            branch = commit_entries(tree, home, [entry.name for entry in entries], base)
        finally:
            run_git(root, "worktree", "remove", "--force", str(tree))
    return Proposal(board, branch, tuple(entries), tuple(list_commands(board, branch, base)))


@contextmanager
def open_clone(to: str) -> Iterator[tuple[Path, str]]:
    """Yield a board folder in a clone, and the commit that new branches start from.

    A clone that is made here is removed if the block fails.
    """
    folder, cloned = Path(to), False
    if not folder.is_dir() or is_bare(folder):
        folder, cloned = Path(Path(to.rstrip("/")).name.removesuffix(".git")), True
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
        if cloned:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def is_bare(folder: Path) -> bool:
    """Return whether a folder is a git repository without a working tree."""
    fix = "give a clone of the board's repository, or its address"
    return run_git(folder, "rev-parse", "--is-bare-repository", fix=fix).strip() == "true"


def find_base(clone: Path) -> str:
    """Return the default branch of origin as last fetched, else what is checked out."""
    fix = "commit the board first"
    for name in ("origin/HEAD", "HEAD"):
        with suppress(UsageError):
            return run_git(clone, "rev-parse", "--verify", "--quiet", name, fix=fix).strip()
    raise UsageError(f"{clone} has no commit", fix=fix)


def commit_entries(tree: Path, home: Path, names: Sequence[str], base: str) -> str:
    """Commit entries to a new branch of a working tree, and return its name.

    Raises ValidationFailed where the check of pull requests would refuse them.
    """
    branch, subject = f"submit-{names[0]}", f"Add {', '.join(names)}"
    fix = f"git branch -D {branch} removes an older branch; or choose another name"
    run_git(tree, "switch", "-q", "-c", branch, fix=fix)
    try:
        run_git(tree, "add", "-f", "--", *(str(home / name) for name in names))
        fix = "git config --global user.name NAME, and user.email ADDRESS"
        run_git(tree, "commit", "-q", "-m", subject, fix=fix)
        for words in (("checkout", "-q", "--", "."), ("clean", "-q", "-fd")):
            run_git(tree, *words)  # what only a maintainer records
        if problems := list(check_changes(compare_with_base(tree / home, base))):
            listed = "\n  ".join(map(str, problems))
            raise ValidationFailed(f"the board would refuse the pull request\n  {listed}")
    except FsbenchError:
        run_git(tree, "switch", "-q", "--detach", base)
        run_git(tree, "branch", "-q", "-D", branch)
        raise
    return branch


def list_commands(clone: Path, branch: str, base: str) -> Iterator[str]:
    """Yield the commands that publish a branch and open its pull request."""
    git = f"git -C {shlex.quote(str(clone))}"
    try:
        address = run_git(clone, "remote", "get-url", "origin").strip()
    except UsageError:  # the maintainer's own copy
        yield f"{git} merge --no-ff {shlex.quote(branch)}"
        return
    yield f"{git} push origin {shlex.quote(branch)}"
    public = to_public_address(address)
    parts = urlsplit(public or "")
    if parts.hostname == "github.com":
        repository = parts.path.strip("/").removesuffix(".git")
        yield f"gh pr create --repo {shlex.quote(repository)} --head {shlex.quote(branch)} --fill"
    else:
        shown = shlex.quote(public or address)
        yield f"{git} request-pull {base[:12]} {shown} {shlex.quote(branch)}"
