"""Pull requests to a repository of entries, acted out in git: hostile ones are refused by reason.

All start from one repository of two entries. Honest ones pass.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import fakes
from support.badges import add_badge, make_key, needs_ssh_keygen
from support.cli import CommandLine
from support.fakes import DECLARATION
from support.forged import edit, flipped, forge, put
from support.repositories import check, commit, git, propose, start

import fsbench
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import Declaration
from fsbench.results.entry import read_entry
from leaderboard.repository import init_board
from leaderboard.signatures import ENTRY_NAMESPACE, read_public_key, sign_file
from leaderboard.tables import rank_board

Edit = Callable[[Path], object]


def declared(name: str, authors: str) -> Declaration:
    return DECLARATION.model_copy(update={"name": name, "authors": authors})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of two entries, beside a folder `new` of entries to add."""
    root = tmp_path_factory.mktemp("base")
    init_board(root / "board")
    entries = {"alice": "board", "bob": "board", "carol": "new", "carol-2": "new", "dave": "new"}
    for name, board in entries.items():
        fakes.write(root / f"r-{name}", name=name)
        fsbench.submit(root / f"r-{name}", root / board, declared(name, name.partition("-")[0]))
    start(root / "board")
    return root


@pytest.fixture
def board(base: Path, tmp_path: Path) -> Path:
    """Return a clone with the branch of a pull request that adds the entry carol."""
    board = propose(base / "board", tmp_path / "board")
    add(base, board, "carol")
    return board


@pytest.fixture(params=["commit", "folder"])
def compared(request: pytest.FixtureRequest, base: Path) -> tuple[str, str]:
    """Options that name the base in both ways."""
    folder = "--base-folder", str(base / "board")
    return folder if request.param == "folder" else ("--base", "main")


def add(base: Path, board: Path, name: str) -> None:
    shutil.copytree(base / "new" / name, board / name)


def outcomes(board: Path, name: str) -> Path:
    return next((board / name).glob("outcomes-*"))


def write(path: str, content: str | bytes = "x") -> Edit:
    def make(board: Path) -> None:
        file = board / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def link(path: str, target: str) -> Edit:
    def make(board: Path) -> None:
        (board / path).unlink(missing_ok=True)
        (board / path).symlink_to(target)

    return make


def remove(path: str) -> Edit:
    def make(board: Path) -> None:
        (shutil.rmtree if (board / path).is_dir() else os.unlink)(board / path)

    return make


OUTSIDE, HIDDEN = "added outside of entry folders", "added hidden file"
WRITTEN = {
    **dict.fromkeys(("constraints.txt", "LICENSE", "x\n[ok]", "verifications.jsonl"), OUTSIDE),
    **dict.fromkeys(("conftest.py", "sitecustomize.py", "pip.conf"), OUTSIDE),
    **dict.fromkeys((".gitmodules", ".env", "\udcff"), OUTSIDE),
    **dict.fromkeys((".github/workflows/evil.yml", ".github/CODEOWNERS", ".evil/x"), HIDDEN),
    **dict.fromkeys((".github/actions/x/action.yml", "carol/.gitattributes"), HIDDEN),
    **dict.fromkeys(("carol/.cache", ".carol/entry.json"), HIDDEN),
    **dict.fromkeys(("README.md", "history.jsonl"), "changed outside of entry folders"),
    **dict.fromkeys((".gitattributes", ".gitignore"), "changed outside of entry folders"),
    ".github/workflows/check.yml": "changed hidden file",
    **dict.fromkeys(
        ("bob/outcomes-x.arrow.zst", "bob/badges/2026-x.json", "bob/badges/2026-x.json.sig"),
        "added in the existing entry 'bob'",
    ),
    "notes/a.txt": "no entry",
}
"""Path -> why no submitter adds or changes this file."""


def test_other_files_are_refused_and_all_are_listed(
    board: Path, compared: tuple[str, str], cli: CommandLine
) -> None:
    for path in WRITTEN:
        write(path, "")(board)
    shown = check(cli, board, *compared, code=5).err
    for path, reason in WRITTEN.items():
        name = path.partition("/")[0] if reason == "no entry" else repr(path)[1:-1]
        assert f"{name}: {reason}" in shown


def take_over(board: Path) -> None:
    """An entry of another owner under the name of alice, complete and sound."""
    shutil.rmtree(board / "alice")
    (board / "carol").rename(board / "alice")
    put("declaration.name", "alice")(board / "alice")


def edit_board(board: Path, **changes: object) -> None:
    content = json.loads((board / "board.json").read_text())
    (board / "board.json").write_text(json.dumps(content | changes))


def add_submodule(board: Path) -> None:
    head = git(board, "rev-parse", "HEAD").strip()
    git(board, "clone", "-q", ".", "carol/sub")
    git(board, "update-index", "--add", "--cacheinfo", f"160000,{head},carol/sub")


CHANGES: dict[str, tuple[str, Edit]] = {
    "delete an entry": ("deleted in the existing entry 'alice'", remove("alice")),
    "delete one result": (
        "deleted in the existing entry 'bob'", lambda b: outcomes(b, "bob").unlink()),
    "lower another's outcomes": ("changed in the existing entry 'alice'",
                                 lambda b: forge(b / "alice", "5w", flipped(5))),
    "take a name over": ("changed in the existing entry 'alice'", take_over),
    "take a name in capitals": ("in the existing entry 'ALICE'",
                                lambda b: (b / "carol").rename(b / "ALICE")),
    "make another's file executable": ("executable", lambda b: (b / "bob/entry.json").chmod(0o755)),
    "replace by a link": ("a link", link("bob/entry.json", "../alice/entry.json")),
    "delete board.json": ("board.json: deleted outside", remove("board.json")),
    "delete the workflow": ("check.yml: deleted hidden file",
                            remove(".github/workflows/check.yml")),
    "a program in an entry": ("an executable file",
                              lambda b: (b / "carol/entry.json").chmod(0o755)),
    "a broken link": ("carol/gone: a link", link("carol/gone", "nowhere")),
    "a link as a result": ("a link", lambda b: link(
        f"carol/{outcomes(b, 'carol').name}", str(outcomes(b, "bob")))(b)),
    "a link as an entry": ("carla: a link", link("carla", "bob")),
    "a link in a circle": ("carol/loop: a link", link("carol/loop", "..")),
    "a submodule": ("carol/sub: a submodule", add_submodule),
    "a large file": ("a file of 33554432 bytes", write("carol/x.bin", bytes(2**25))),
    "entry.json is a folder": ("carol: no entry", lambda b: (
        remove("carol/entry.json")(b), write("carol/entry.json/x")(b))),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_change_is_refused(name: str, board: Path, cli: CommandLine) -> None:
    text, spoil = CHANGES[name]
    spoil(board)
    assert text in check(cli, board, "--base", "main", code=5).err


def test_attributes_hide_no_change_of_a_folder(
    base: Path, board: Path, tmp_path: Path, cli: CommandLine
) -> None:
    """As those of a repository, they would make ends of lines equal."""
    before = Path(shutil.copytree(base / "board", tmp_path / "before"))
    for folder in (before, board):
        (folder / ".gitattributes").write_text("* text eol=lf")
    file = board / "README.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    shown = check(cli, board, "--base-folder", str(before), code=5).err
    assert "README.md: changed outside" in shown


HONEST: dict[str, tuple[bool, Callable[[Path, Path], object]]] = {
    "one entry": (False, lambda base, b: None),
    "two entries of one owner": (False, lambda base, b: add(base, b, "carol-2")),
    "nothing": (False, lambda base, b: shutil.rmtree(b / "carol")),
    "a maintainer's README": (True, lambda base, b: write("README.md", "A board.")(b)),
    "a maintainer removes an entry": (True, lambda base, b: shutil.rmtree(b / "bob")),
    "a maintainer's workflow": (True, lambda base, b: write(".github/workflows/x.yml", "on: x")(b)),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_pull_request_passes(
    name: str, compared: tuple[str, str], base: Path, board: Path, cli: CommandLine
) -> None:
    is_maintainers, make = HONEST[name]
    make(base, board)
    shown = check(cli, board, *compared, *["--allow-maintainer"][:is_maintainers])
    assert shown.out.startswith("ok: ")
    assert ("allowed for a maintainer" in shown.err) == is_maintainers


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_no_file_of_a_pull_request_passes_for_the_base(
    kind: str, board: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    """A folder called like the revision was compared in its place: the board with itself."""
    git(board, "branch", "release/1", "main")
    monkeypatch.chdir(board)
    shutil.rmtree(board / "alice")
    home = board / "release" / "1"
    home.parent.mkdir()
    if kind == "folder":
        shutil.copytree(board, home, ignore=shutil.ignore_patterns(".git", "release"))
    elif kind == "link":
        home.symlink_to("..")
    else:
        home.write_text("x")
    shown = check(cli, board, "--base", "release/1", code=5).err
    assert "alice/entry.json: deleted in the existing entry" in shown


@pytest.mark.parametrize("change", [write("setup.py"), write("alice/entry.json", "{}")])
def test_what_is_not_committed_is_no_pull_request(
    change: Edit, board: Path, cli: CommandLine
) -> None:
    commit(board)
    change(board)
    shown = cli("leaderboard", "check", "--board", board, "--base", "main", code=2).err
    assert "not committed" in shown


def test_a_pull_request_has_one_owner(
    base: Path, board: Path, compared: tuple[str, str], cli: CommandLine
) -> None:
    add(base, board, "dave")
    shown = check(cli, board, *compared, code=5).err
    assert "carol by carol; dave by dave, expected one owner" in shown


def test_a_base_that_is_none(board: Path, tmp_path: Path, cli: CommandLine) -> None:
    for base in ("nowhere", "--output=x", "main:board.json", "", " ", str(board)):
        assert "as --base" in check(cli, board, f"--base={base}", code=2).err
    check(cli, board, "--base-folder", str(tmp_path / "none"), code=2)
    check(cli, board, "--base=main", f"--base-folder={board}", code=2)
    assert "without --base" in check(cli, board, "--allow-maintainer", code=2).err
    alone = Path(shutil.copytree(board / "carol", tmp_path / "alone" / "carol")).parent
    assert "not a git repository" in check(cli, alone, "--base", "main", code=2).err


def test_a_board_inside_a_repository(base: Path, tmp_path: Path, cli: CommandLine) -> None:
    """The rest of the repository is a maintainer's too."""
    root = tmp_path / "whole"
    board = Path(shutil.copytree(base / "board", root / "boards" / "mine"))
    shutil.rmtree(board / ".git")
    start(root)
    git(root, "branch", "base")
    add(base, board, "carol")
    commit(root)
    check(cli, board, "--base", "base")
    write("setup.py")(root)
    commit(root)
    shown = check(cli, board, "--base", "base", code=5).err
    assert "setup.py: added outside of entry folders" in shown


def copy_nearly(board: Path) -> None:
    """Bob's outcomes but for one bit, under the weights of carol."""
    theirs = read_entry(board / "bob").loaded[0].records
    forge(board / "carol", "5w", lambda _: flipped(1)(theirs))  # type: ignore[arg-type]


def test_what_is_suspicious_is_shown_until_it_is_cleared(board: Path, cli: CommandLine) -> None:
    text = "suspicious: near copy of"
    assert list_suspicions(board) == {}
    copy_nearly(board)
    assert list_suspicions(board) == {"bob": f"{text} carol", "carol": f"{text} bob"}
    assert f"carol: {text} bob" in check(cli, board, "--base", "main").err
    edit_board(board, cleared=[["carol", "bob"]])
    assert list_suspicions(board) == {}
    assert "suspicious" not in check(cli, board).err


def list_suspicions(board: Path) -> dict[str, str]:
    """Return what the tables of a board show."""
    return {
        name: flag
        for table in rank_board(board)
        for name, row in table.lines.items()
        for flag in row.notes
        if flag.startswith("suspicious")
    }


# --- entries that are signed ---------------------------------------------------------------------


@pytest.fixture
def signed(base: Path, tmp_path: Path) -> Path:
    """Return a repository whose entry alice is signed and has a badge; beside it lie two keys."""
    board = Path(shutil.copytree(base / "board", tmp_path / "signed"))
    for key in ("alice", "mallory"):
        make_key(tmp_path, key)
    submit_signed(board)
    resign(board, tmp_path / "alice", submitted="2026-01-01T00:00:00+00:00")
    add_badge(board, "alice")
    commit(board)
    git(board, "switch", "-q", "-c", "proposal")
    return board


def submit_signed(board: Path, accuracy: float = 0.6) -> None:
    """Submit alice's results again, signed; the maintainer's files stay as they are."""
    results = board.parent / f"results-{accuracy}"
    fakes.write(results, accuracy, name="alice")
    key = board.parent / "alice"
    fsbench.submit(results, board, declared("alice", "alice"), replace=True, sign_with=key)
    git(board, "checkout", "-q", "--", "board.json", "history.jsonl")


def resign(board: Path, signer: Path, **changes: object) -> None:
    edit(board / "alice", lambda content: content.update(changes))
    sign_file(board / "alice" / "entry.json", signer, ENTRY_NAMESPACE)


def replace_by_mallory(board: Path) -> None:
    submit_signed(board, 0.9)
    resign(board, board.parent / "mallory")


def take_with_another_key(board: Path) -> None:
    submit_signed(board, 0.9)
    key = board.parent / "mallory"
    resign(board, key, key=read_public_key(key))


def settle(board: Path) -> None:
    """Make the present state the base."""
    commit(board)
    git(board, "branch", "-f", "main")


def roll_back(board: Path) -> None:
    """Alice's key did sign this state, some time ago."""
    older = shutil.copytree(board / "alice", board.parent / "older")
    submit_signed(board, 0.9)
    settle(board)
    shutil.rmtree(board / "alice")
    shutil.copytree(older, board / "alice")


def drop_badge(board: Path) -> None:
    """Equal results are submitted again, to be rid of a badge."""
    submit_signed(board)
    shutil.rmtree(board / "alice" / "badges")


def edit_badge(board: Path) -> None:
    file = next((board / "alice" / "badges").glob("*.json"))
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 7'))


def replace_control(board: Path) -> None:
    """Worse results of a control give all others a gain."""
    edit_board(board, controls=["alice"])
    settle(board)
    submit_signed(board, 0.3)


def add_link(board: Path) -> None:
    submit_signed(board, 0.9)
    (board / "alice" / "x").symlink_to("/")


CHANGED = "changed in the existing entry 'alice'"
SIGNED: dict[str, tuple[str, Edit]] = {
    "another key signs": ("none of its key", replace_by_mallory),
    "another key signs as its own": (CHANGED, take_with_another_key),
    "the signature is deleted": ("none of its key", remove("alice/entry.json.sig")),
    "the key is deleted": (CHANGED, lambda b: edit(b / "alice", lambda c: c.pop("key"))),
    "edited after signing": (
        "none of its key", lambda b: put("submitted", "2026-02-02T00:00:00+00:00")(b / "alice")),
    "an older state": (CHANGED, roll_back),
    "the entry is deleted": ("deleted in the existing entry 'alice'", remove("alice")),
    "a badge is changed": (CHANGED, edit_badge),
    "a badge is deleted": ("deleted in the existing entry 'alice'", drop_badge),
    "a control is replaced": ("in 'alice', which board.json names as a control", replace_control),
    "a link beside a signature": ("alice/x: a link", add_link),
}  # fmt: skip


@needs_ssh_keygen
@pytest.mark.parametrize("name", SIGNED)
def test_a_signed_entry_is_its_owners(name: str, signed: Path, cli: CommandLine) -> None:
    text, spoil = SIGNED[name]
    spoil(signed)
    shown = check(cli, signed, "--base", "main", code=5).err
    assert text in shown
    assert "in the existing entry 'alice'" in shown or name.startswith(("a link", "a control"))


@needs_ssh_keygen
def test_the_key_of_an_entry_replaces_it(signed: Path, tmp_path: Path, cli: CommandLine) -> None:
    before = Path(shutil.copytree(signed, tmp_path / "before"))
    settle(signed)
    submit_signed(signed, 0.9)
    for compared in (("--base", "main"), ("--base-folder", str(before))):
        check(cli, signed, *compared)
    results, name = tmp_path / "results-0.9", declared("alice", "alice")
    for key in (tmp_path / "mallory", None):
        with pytest.raises(ValidationFailed, match="'alice' is signed by another key"):
            fsbench.submit(results, signed, name, replace=True, sign_with=key)
