"""Hostile pull requests to a repository of entries, acted out in git: each refused with its reason.

All start from one repository of two entries. Honest ones pass.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import fakes
from support.fakes import DECLARATION
from support.forged import flipped, forge

from fsbench.cli.main import run
from fsbench.core.schema import Declaration
from leaderboard.board.official import init_board
from leaderboard.submission.checks import submit_results

Edit = Callable[[Path], object]
GIT = {
    **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER")
       for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": os.environ["PATH"],
}  # fmt: skip


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=GIT).stdout


def declared(name: str, authors: str) -> Declaration:
    return DECLARATION.model_copy(update={"name": name, "authors": authors})


def submit(results: Path, board: Path, name: str, authors: str) -> None:
    fakes.write(results, name=name)
    submit_results(results, board, declared(name, authors))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository of two entries, beside a folder `new` of entries to add."""
    root = tmp_path_factory.mktemp("base")
    init_board(root / "board")
    for name, authors in (("alice", "A. Alice"), ("bob", "B. Bob")):
        submit(root / f"r-{name}", root / "board", name, authors)
    for name, authors in (("carol", "C. Carol"), ("carol-2", "C. Carol"), ("dave", "D. Dave")):
        submit(root / f"r-{name}", root / "new", name, authors)
    git(root / "board", "init", "-q", "-b", "main", "--template=")
    git(root / "board", "add", "-A")
    git(root / "board", "commit", "-q", "-m", "base")
    return root


@pytest.fixture
def board(base: Path, tmp_path: Path) -> Path:
    """Return a clone with the branch of a pull request that adds the entry carol."""
    board = Path(shutil.copytree(base / "board", tmp_path / "board"))
    git(board, "switch", "-q", "-c", "proposal")
    add(base, board, "carol")
    return board


def add(base: Path, board: Path, name: str) -> None:
    shutil.copytree(base / "new" / name, board / name)


def check(board: Path, *options: str) -> int:
    with pytest.raises(SystemExit) as stop:
        run(["leaderboard", "check", "--board", str(board), *options])
    return int(stop.value.code or 0)


def commit(board: Path) -> None:
    git(board, "add", "-A")
    git(board, "commit", "-q", "--allow-empty", "-m", "proposal")


def result(board: Path, name: str) -> Path:
    return next((board / name).rglob("5w*.json"))


def edit(file: Path, **changes: object) -> None:
    """Change top-level fields of a JSON file; `__` leads into an object."""
    data = json.loads(file.read_text())
    for key, value in changes.items():
        *outer, last = key.split("__")
        place = data
        for part in outer:
            place = place[part]
        place[last] = value
    file.write_text(json.dumps(data))


def write(path: str, content: str | bytes = "x") -> Edit:
    def make(board: Path) -> None:
        file = board / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def link(path: str, target: str) -> Edit:
    return lambda board: (board / path).symlink_to(target)


def lower_outcomes(board: Path) -> None:
    forge(board / "alice", "5w", flipped(5))


def drop_chain(board: Path) -> None:
    lower_outcomes(board)
    data = json.loads((board / "alice" / "entry.json").read_text())
    data.pop("chain")
    (board / "alice" / "entry.json").write_text(json.dumps(data))


def take_over(board: Path) -> None:
    """An own entry under the name of another's, complete and sound."""
    shutil.rmtree(board / "alice")
    (board / "carol").rename(board / "alice")
    edit(board / "alice" / "entry.json", declaration__name="alice")


def submodule(board: Path) -> None:
    head = git(board, "rev-parse", "HEAD").strip()
    git(board, "update-index", "--add", "--cacheinfo", f"160000,{head},carol/sub")
    (board / "carol" / "sub").mkdir()


CHANGES: dict[str, tuple[str, Edit]] = {
    "delete an entry": ("deleted in the existing entry 'alice'",
                        lambda b: shutil.rmtree(b / "alice")),
    "delete one result": ("deleted in the existing entry 'bob'",
                          lambda b: result(b, "bob").with_suffix(".parquet").unlink()),
    "rename an entry": ("deleted in the existing entry 'alice'",
                        lambda b: (b / "alice").rename(b / "alicia")),
    "lower another's outcomes": ("changed in the existing entry 'alice'", lower_outcomes),
    "lower and drop the chain": ("changed in the existing entry 'alice'", drop_chain),
    "take a name over": ("changed in the existing entry 'alice'", take_over),
    "take a name in capitals": ("in the existing entry 'ALICE'",
                                lambda b: (b / "carol").rename(b / "ALICE")),
    "edit another's statement": ("changed in the existing entry 'bob'",
                                 lambda b: edit(b / "bob/entry.json", submitted="2020-01-01")),
    "add a result to another's": ("added in the existing entry 'bob'",
                                  write("bob/m/w/d/5w9s.json", "{}")),
    "add a badge to another's": ("added in the existing entry 'bob'",
                                 write("bob/badges/2026-x.json", "{}")),
    "make another's file executable": ("executable", lambda b: (b / "bob/entry.json").chmod(0o755)),
    "replace by a link": ("a link", lambda b: (
        (b / "bob/entry.json").unlink(), (b / "bob/entry.json").symlink_to("../alice/entry.json"))),
    "empty the columns": ("board.json: found changed outside of entry folders",
                          lambda b: edit(b / "board.json", columns=[])),
    "make the board official": ("board.json: found changed outside",
                                lambda b: edit(b / "board.json", official=True)),
    "rename the board": ("board.json: found changed outside",
                         lambda b: edit(b / "board.json", name="mine")),
    "delete board.json": ("board.json: found deleted outside",
                          lambda b: (b / "board.json").unlink()),
    "a workflow": (".github/workflows/evil.yml: found added hidden file",
                   write(".github/workflows/evil.yml", "on: push")),
    "change the workflow": ("check.yml: found changed hidden file",
                            lambda b: write(".github/workflows/check.yml", "on: push")(b)),
    "delete the workflow": ("check.yml: found deleted hidden file",
                            lambda b: (b / ".github/workflows/check.yml").unlink()),
    "an action": (".github/actions/x/action.yml: found added hidden file",
                  write(".github/actions/x/action.yml")),
    "owners of the code": (".github/CODEOWNERS: found added hidden file",
                           write(".github/CODEOWNERS", "* @me")),
    "constraints": ("constraints.txt: found added", write("constraints.txt", "fsbench @ evil")),
    "a README": ("README.md: found added", write("README.md", "Best: carol")),
    "a large README": ("at most 4194304", write("README.md", bytes(2**23))),
    "a licence": ("LICENSE: found added", write("LICENSE")),
    "git attributes": (".gitattributes: found changed", write(".gitattributes", "* filter=evil")),
    "git attributes of an entry": ("carol/.gitattributes: found added hidden file",
                                   write("carol/.gitattributes", "* -diff")),
    "git modules": (".gitmodules: found added", write(".gitmodules")),
    "ignored files": (".gitignore: found changed", write(".gitignore", "*")),
    "a hidden file": (".env: found added", write(".env")),
    "a hidden file, one state": (".env: found no entry", write(".env")),
    "a hidden folder": (".evil/x: found added hidden file", write(".evil/x")),
    "a hidden entry": (".carol/entry.json: found added hidden file",
                       lambda b: (b / "carol").rename(b / ".carol")),
    "a staging folder": ("[unfinished]", write(".staging-x/new/y/entry.json")),
    "a hidden file in an entry": ("carol/.cache: found added hidden file", write("carol/.cache")),
    "a module": ("conftest.py: found added", write("conftest.py", "import os")),
    "a start file": ("sitecustomize.py: found added", write("sitecustomize.py")),
    "settings of pip": ("pip.conf: found added", write("pip.conf")),
    "a script in an entry": ("[stray]", write("carol/setup.py")),
    "a page in an entry": ("[stray]", write("carol/index.html", "<script>")),
    "a program in an entry": ("an executable file",
                              lambda b: (b / "carol/entry.json").chmod(0o755)),
    "a link in an entry": ("carol/x.json: found a link", link("carol/x.json", "/etc/passwd")),
    "a link as a result": ("found a link", lambda b: (
        (file := result(b, "carol")).unlink(), file.symlink_to(result(b, "bob")))),
    "a link as an entry": ("carla: found a link", link("carla", "bob")),
    "a link to the root": ("all: found a link", link("all", "/")),
    "a link in a circle": ("carol/loop: found a link", link("carol/loop", "..")),
    "a broken link": ("carol/gone: found a link", link("carol/gone", "nowhere")),
    "a submodule": ("carol/sub: found a submodule", submodule),
    "a folder without an entry": ("no entry.json", write("notes/a.txt")),
    "a large file": ("a file of 8388608 bytes", write("carol/x.bin", bytes(2**23))),
    "a deep path": ("a path of", write("carol/" + "d/" * 20 + "x")),
    "a name with a line break": ("x\\n[ok]: found added outside", write("x\n[ok]")),
    "a name in other bytes": ("found added outside", lambda b: Path(
        os.fsdecode(os.fsencode(b) + b"/\xff")).write_text("x")),
    "no chain": ("a new entry without hash chain", lambda b: drop(b / "carol/entry.json", "chain")),
    "entry.json is no JSON": ("no readable JSON", write("carol/entry.json", "{")),
    "entry.json is a folder": ("[stray]", lambda b: (
        (b / "carol/entry.json").unlink(), write("carol/entry.json/x")(b))),
    "another name inside": ("name the folder after it",
                            lambda b: edit(b / "carol/entry.json", declaration__name="dora")),
}  # fmt: skip


def drop(file: Path, *keys: str) -> None:
    data = json.loads(file.read_text())
    file.write_text(json.dumps({key: data[key] for key in data if key not in keys}))


@pytest.mark.parametrize("name", CHANGES)
def test_a_hostile_pull_request_is_refused(
    name: str, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, spoil = CHANGES[name]
    spoil(board)
    if name != "a submodule":
        commit(board)
    assert check(board, "--base", "main") == 5
    assert words in capsys.readouterr().err


HONEST: dict[str, tuple[tuple[str, ...], Edit]] = {
    "one entry": ((), lambda b: None),
    "two entries of one owner": ((), lambda b: add(b.parent / "base", b, "carol-2")),
    "nothing": ((), lambda b: shutil.rmtree(b / "carol")),
    "a maintainer's README": (("--allow-maintainer",), write("README.md", "A board.")),
    "a maintainer removes an entry": (("--allow-maintainer",), lambda b: shutil.rmtree(b / "bob")),
    "a maintainer's workflow": (
        ("--allow-maintainer",),
        write(".github/workflows/x.yml", "on: push"),
    ),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("state", ["commit", "working tree", "folder"])
def test_an_honest_pull_request_passes(
    name: str, state: str, base: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (board.parent / "base").symlink_to(base)
    options, make = HONEST[name]
    make(board)
    if state == "commit":
        commit(board)
    compared = "main" if state != "folder" else str(base / "board")
    assert check(board, "--base", compared, *options) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("ok: ")
    assert ("allowed for a maintainer" in shown.err) == bool(options)


def test_a_pull_request_has_one_owner(
    base: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(base, board, "dave")
    for compared in ("main", str(base / "board")):
        assert check(board, "--base", compared) == 5
        assert "[owner]" in (shown := capsys.readouterr().err)
        assert "carol by C. Carol; dave by D. Dave, expected one owner" in shown


def test_a_base_that_is_none(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for compared in ("nowhere", "--output=x", "main:board.json"):
        assert check(board, f"--base={compared}") == 2
        assert "as --base" in capsys.readouterr().err
    assert check(board, "--allow-maintainer") == 2
    assert "without --base" in capsys.readouterr().err
    alone = Path(shutil.copytree(board / "carol", tmp_path / "alone" / "carol")).parent
    assert check(alone, "--base", "main") == 2
    assert "not a git repository" in capsys.readouterr().err


def test_a_board_inside_a_repository(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest of the repository is a maintainer's too."""
    board = Path(shutil.copytree(base / "board", tmp_path / "whole" / "boards" / "mine"))
    shutil.rmtree(board / ".git")
    git(tmp_path / "whole", "init", "-q", "-b", "main", "--template=")
    commit(tmp_path / "whole")
    add(base, board, "carol")
    assert check(board, "--base", "main") == 0
    write("setup.py")(tmp_path / "whole")
    assert check(board, "--base", "main") == 5
    assert "setup.py: found added outside of entry folders" in capsys.readouterr().err
