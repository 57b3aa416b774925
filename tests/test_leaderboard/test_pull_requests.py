"""Hostile pull requests to a repository of entries, acted out in git: each refused with its reason.

All start from one repository of two entries. Honest ones pass.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.badges import add_badge, allow_signer, make_badge, make_key, needs_ssh_keygen
from support.cli import call
from support.fakes import DECLARATION
from support.forged import edit as edit_entry
from support.forged import flipped, forge

import fsbench
from fsbench.core.errors import ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Declaration
from fsbench.results.entry import read_entry
from leaderboard.repository import init_board
from leaderboard.signatures import ENTRY_NAMESPACE, read_public_key, sign_file
from leaderboard.tables import BoardTable, rank_board

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
    fsbench.submit(results, board, declared(name, authors))


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


def check(board: Path, *options: str, committed: bool = True) -> int:
    """Commit what the pull request changes, and check it."""
    if committed and "--base" in options and (board / ".git").is_dir():
        commit(board)
    return call("leaderboard", "check", "--board", str(board), *options)


def commit(board: Path) -> None:
    git(board, "add", "-A")
    git(board, "commit", "-q", "--allow-empty", "-m", "proposal")


def outcomes(board: Path, name: str) -> Path:
    return next((board / name).glob("outcomes-*"))


def edit(file: Path, **changes: object) -> None:
    """Change top-level fields of a JSON file; `__` leads into an object."""

    def change(data: dict[str, Any]) -> None:
        for key, value in changes.items():
            *outer, last = key.split("__")
            place = data
            for part in outer:
                place = place[part]
            place[last] = value

    if file.name == "entry.json":
        edit_entry(file.parent, change)
    else:
        data = json.loads(file.read_text())
        change(data)
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
                          lambda b: outcomes(b, "bob").unlink()),
    "rename an entry": ("deleted in the existing entry 'alice'",
                        lambda b: (b / "alice").rename(b / "alicia")),
    "lower another's outcomes": ("changed in the existing entry 'alice'", lower_outcomes),
    "take a name over": ("changed in the existing entry 'alice'", take_over),
    "take a name in capitals": ("in the existing entry 'ALICE'",
                                lambda b: (b / "carol").rename(b / "ALICE")),
    "edit another's statement": ("changed in the existing entry 'bob'",
                                 lambda b: edit(b / "bob/entry.json", submitted="2020-01-01")),
    "add a result to another's": ("added in the existing entry 'bob'",
                                  write("bob/outcomes-x.arrow.zst")),
    "add a badge to another's": ("added in the existing entry 'bob'",
                                 write("bob/badges/2026-x.json", "{}")),
    "make another's file executable": ("executable", lambda b: (b / "bob/entry.json").chmod(0o755)),
    "replace by a link": ("a link", lambda b: (
        (b / "bob/entry.json").unlink(), (b / "bob/entry.json").symlink_to("../alice/entry.json"))),
    "empty the columns": ("board.json: changed outside of entry folders",
                          lambda b: edit(b / "board.json", columns=[])),
    "make the board official": ("board.json: changed outside",
                                lambda b: edit(b / "board.json", official=True)),
    "rename the board": ("board.json: changed outside",
                         lambda b: edit(b / "board.json", name="mine")),
    "delete board.json": ("board.json: deleted outside",
                          lambda b: (b / "board.json").unlink()),
    "a workflow": (".github/workflows/evil.yml: added hidden file",
                   write(".github/workflows/evil.yml", "on: push")),
    "change the workflow": ("check.yml: changed hidden file",
                            lambda b: write(".github/workflows/check.yml", "on: push")(b)),
    "delete the workflow": ("check.yml: deleted hidden file",
                            lambda b: (b / ".github/workflows/check.yml").unlink()),
    "an action": (".github/actions/x/action.yml: added hidden file",
                  write(".github/actions/x/action.yml")),
    "owners of the code": (".github/CODEOWNERS: added hidden file",
                           write(".github/CODEOWNERS", "* @me")),
    "constraints": ("constraints.txt: added", write("constraints.txt", "fsbench @ evil")),
    "a README": ("README.md: changed", write("README.md", "Best: carol")),
    "a large README": ("at most 4194304", write("README.md", bytes(2**23))),
    "a licence": ("LICENSE: added", write("LICENSE")),
    "git attributes": (".gitattributes: changed", write(".gitattributes", "* filter=evil")),
    "git attributes of an entry": ("carol/.gitattributes: added hidden file",
                                   write("carol/.gitattributes", "* -diff")),
    "git modules": (".gitmodules: added", write(".gitmodules")),
    "ignored files": (".gitignore: changed", write(".gitignore", "*")),
    "a hidden file": (".env: added", write(".env")),
    "a hidden file, one state": (".env: no entry", write(".env")),
    "a hidden folder": (".evil/x: added hidden file", write(".evil/x")),
    "a hidden entry": (".carol/entry.json: added hidden file",
                       lambda b: (b / "carol").rename(b / ".carol")),
    "a hidden file in an entry": ("carol/.cache: added hidden file", write("carol/.cache")),
    "a module": ("conftest.py: added", write("conftest.py", "import os")),
    "a start file": ("sitecustomize.py: added", write("sitecustomize.py")),
    "settings of pip": ("pip.conf: added", write("pip.conf")),
    "a script in an entry": ("only its two files", write("carol/setup.py")),
    "a page in an entry": ("only its two files", write("carol/index.html", "<script>")),
    "a program in an entry": ("an executable file",
                              lambda b: (b / "carol/entry.json").chmod(0o755)),
    "a link in an entry": ("carol/x.json: a link", link("carol/x.json", "/etc/passwd")),
    "a link as a result": ("a link", lambda b: (
        (file := outcomes(b, "carol")).unlink(), file.symlink_to(outcomes(b, "bob")))),
    "a link as an entry": ("carla: a link", link("carla", "bob")),
    "a link to the root": ("all: a link", link("all", "/")),
    "a link in a circle": ("carol/loop: a link", link("carol/loop", "..")),
    "a broken link": ("carol/gone: a link", link("carol/gone", "nowhere")),
    "a submodule": ("carol/sub: a submodule", submodule),
    "a folder without an entry": ("notes: no entry", write("notes/a.txt")),
    "a large file": ("a file of 33554432 bytes", write("carol/x.bin", bytes(2**25))),
    "a deep path": ("only its two files", write("carol/" + "d/" * 20 + "x")),
    "a name with a line break": ("x\\n[ok]: added outside", write("x\n[ok]")),
    "a name in other bytes": ("added outside", lambda b: Path(
        os.fsdecode(os.fsencode(b) + b"/\xff")).write_text("x")),
    "no outcomes": ("cannot be read", lambda b: outcomes(b, "carol").unlink()),
    "the owner's own history": ("history.jsonl: changed outside", write("history.jsonl", "")),
    "own verdicts": ("verifications.jsonl: added outside", write("verifications.jsonl", "")),
    "outcomes of another": ("other content than entry.json states", lambda b: shutil.copy(
        outcomes(b, "bob"), outcomes(b, "carol"))),
    "entry.json is no JSON": ("is no valid entry", write("carol/entry.json", "{")),
    "entry.json is a folder": ("carol: no entry", lambda b: (
        (b / "carol/entry.json").unlink(), write("carol/entry.json/x")(b))),
}  # fmt: skip


def drop(file: Path, *keys: str) -> None:
    data = json.loads(file.read_text())
    file.write_text(json.dumps({key: data[key] for key in data if key not in keys}))


def entry(**changes: object) -> Edit:
    """Change fields of entry.json."""
    return lambda board: edit(board / "carol" / "entry.json", **changes)


PARTS = {"backbone": "models", "dataset": "datasets", "spec": "specs", "provenance": "environments"}


def cell(**changes: object) -> Edit:
    """Change fields of the result and its parts, and nothing else."""

    def change(content: dict[str, Any]) -> None:
        for key, value in changes.items():
            part, _, rest = key.partition("__")
            line = content["results"][0]
            place = content[PARTS[part]][0] if part in PARTS else line
            *outer, last = (rest if part in PARTS else key).split("__")
            place = line if last in line else place
            for name in outer:
                place = place[name]
            place[last] = value

    return lambda board: edit_entry(board / "carol", change)


def records(change: Callable[[EpisodeRecords], EpisodeRecords]) -> Edit:
    """Change the records and make every hash fit again."""
    return lambda board: forge(board / "carol", "5w", change)


def renamed(name: str) -> Edit:
    def rename(board: Path) -> None:
        (board / "carol").rename(board / name)
        edit(board / name / "entry.json", declaration__name=name)

    return rename


def collapsed_but_right(old: EpisodeRecords) -> EpisodeRecords:
    return replace(old, collapsed=np.ones_like(old.collapsed))


def never_finite_but_right(old: EpisodeRecords) -> EpisodeRecords:
    return replace(old, finite=np.zeros_like(old.finite))


def dense(right: int, total: int = 29) -> Callable[[EpisodeRecords], EpisodeRecords]:
    """Dense queries of which so many are right in every class; all images but the support."""

    def change(old: EpisodeRecords) -> EpisodeRecords:
        totals = np.full(old.correct.shape[:2], total)
        return replace(old, dense_correct=np.full_like(totals, right), dense_total=totals)

    return change


def other_counts(board: Path) -> None:
    """Bob's images by their fingerprint, spread otherwise over the classes."""
    data = fakes.dataset().model_copy(update={"class_counts": (20, 40, 30, 30, 30, 30)})
    shutil.rmtree(board / "carol")
    results = board.parent / "results"
    fakes.write(results, name="carol", data=data)
    write_apart(results, board, "carol", "C. Carol")


def write_apart(results: Path, board: Path, name: str, authors: str) -> None:
    """Add an entry that was made on another board."""
    fsbench.submit(results, board.parent / "apart", declared(name, authors))
    shutil.copytree(board.parent / "apart" / name, board / name)


def bob_as_carol(board: Path) -> None:
    theirs = read_entry(board / "bob").cells[0].records
    forge(board / "carol", "5w", lambda _: theirs)  # type: ignore[arg-type, return-value]


def unreadable_records(board: Path) -> None:
    """Outcomes that are no Arrow file, under a digest that fits."""
    outcomes(board, "carol").unlink()
    digest = hashlib.sha256(b"x").hexdigest()
    (board / "carol" / f"outcomes-{digest[:12]}.arrow.zst").write_bytes(b"x")
    edit(board / "carol" / "entry.json", outcomes=digest)


def repeat_key(path: Path) -> None:
    path.write_text(path.read_text().replace("{", '{\n "submitted": "2026-01-01",', 1))


TEXT, NAME = "text is too long or has invisible", "a name that no file of a board"
"""What is demanded of texts and of names of entries."""
DATE = "submitted: Value error, "

CONTENTS: dict[str, tuple[str, Edit]] = {
    "submitted: no date": (DATE, entry(submitted="yesterday")),
    "submitted: in the future": ("no date in the future",
                                 entry(submitted="2999-01-01T00:00:00+00:00")),
    "submitted: without a zone": (DATE,
                                  entry(submitted="2026-01-01T00:00:00")),
    "submitted: a script": (DATE,
                            entry(submitted="<script>alert(1)</script>")),
    "submitted: the last year": (DATE, entry(submitted="9999-12-31T23:59:59-23:59")),
    "fsbench: a version to come": ("fsbench 9.1.0, expected at most", entry(fsbench="9.1.0")),
    "evaluated by a version to come": ("fsbench 0.1.1, expected at most",
                                       cell(provenance__fsbench="0.1.1")),
    "started in the future": ("no date in the future",
                              cell(provenance__started="2999-01-01T00:00:00+00:00")),
    "started: no date": ("started: Value error, ", cell(provenance__started="never")),
    "fsbench: no version": ("fsbench: String should match", entry(fsbench="best")),
    "fsbench: a formula": ("fsbench: String should match", entry(fsbench="=1+1")),
    "torch: no version": ("torch: String should", cell(provenance__packages__torch="newest")),
    "python: no version": ("python: String should match", cell(provenance__python="3.12\u200b.0")),
    "a direction mark": (TEXT, entry(declaration__statement="good \u202e dab")),
    "a character that shows nothing": (TEXT, entry(declaration__authors="C. Caro\u3164l")),
    "a selector of variants": (TEXT, entry(declaration__authors="C. Carol\ufe0f")),
    "a selector of many variants": (TEXT, entry(declaration__authors="C. Carol\U000e0101")),
    "braille without a dot": (TEXT, entry(declaration__statement="a\u2800")),
    "a space at the end": (TEXT, entry(declaration__authors="C. Carol ")),
    "a space at the start": (TEXT, entry(declaration__authors=" C. Carol")),
    "a control character of C1": (TEXT, entry(declaration__authors="C.\u009b2J Carol")),
    "a control character of C0": ("declaration.authors", entry(declaration__authors="C.\x1b[2J")),
    "a zero-width name": (TEXT, entry(declaration__authors="C. Carol\u200b")),
    "a private character": (TEXT, entry(declaration__license="\ue000")),
    "marks upon marks": (TEXT, entry(declaration__statement="a" + "\u0301" * 40)),
    "a long statement": ("at most 2000", entry(declaration__statement="x" * 5000)),
    "a direction mark in the version": ("fsbench: String should match", entry(fsbench="1.0\u202e")),
    "a class name with a line separator": (TEXT,
                                           cell(dataset__class_names=[*"uvwxy", "z\u2028"])),
    "an empty author": ("declaration.authors", entry(declaration__authors="")),
    "an unknown field": ("unknown key 'rank'", entry(rank=1)),
    "a device of Windows": (NAME, renamed("con")),
    "a device with a suffix": (NAME, renamed("LPT1.pth")),
    "a name of a page": (NAME, renamed("index.html")),
    "a name of a record": (NAME, renamed("Entry.json")),
    "a name of a folder": (NAME, renamed("badges")),
    "a name in other letters": ("use letters, digits and", renamed("c\u0430rol")),
    "seconds that overflow": ("results.0.seconds", cell(provenance__seconds=1.7e308)),
    "seconds of 1000 years": ("results.0.seconds", cell(provenance__seconds=3e10)),
    "a count of 4,000 digits": ("models.0.n_parameters", cell(backbone__n_parameters=10**4000)),
    "steps of 4,000 digits": ("models.0.steps", cell(backbone__steps=10**4000)),
    "a batch of one": ("environments.0.batch_size", cell(provenance__batch_size=1)),
    "a batch of 10^9": ("environments.0.batch_size", cell(provenance__batch_size=10**9)),
    "threads": ("environments.0.threads", cell(provenance__threads=10**9)),
    "halvings": ("environments.0.halvings", cell(provenance__halvings=10**6)),
    "epochs of a head": ("specs.0.episodic.head.epochs", cell(spec__head__epochs=10**9)),
    "draws that take hours": ("more than 20000000 images",
                              cell(dataset__class_counts=[15_000_000] * 6)),
    "more images than there are": ("datasets.0.class_counts",
                                   cell(dataset__class_counts=[10**29] * 6)),
    "another mean": ("the file says 99.00 ± ", cell(score__mean=0.99)),
    "a mean above one": ("results.0.score.mean", cell(score__mean=99.0)),
    "other records": ("cannot be read", entry(outcomes="0" * 64)),
    "another manifest": ("0000, expected ", cell(manifest_hash="0" * 64)),
    "another column": ("is named 'folder-blobs:5w5s", cell(
        column="folder-blobs:5w5s/linear@ibm 32px n_query=5")),
    "a hidden training set": ("trained on folder-blobs, expected it declared",
                              cell(backbone__pretraining_data=["folder-blobs"])),
    "code as a backbone": ("a reference that needs no code",
                           cell(backbone__ref="py:os:system", backbone__source="py")),
    "a flag left out": ("the flags are none, its data need custom", cell(flags=[])),
    "dense right below right": ("fewer dense queries are right or wrong", records(dense(0))),
    "dense wrong below wrong": ("fewer dense queries are right or wrong", records(dense(29))),
    "dense totals": ("all images but the support", records(dense(20, 500))),
    "collapsed, yet right": ("not right for exactly one class", records(collapsed_but_right)),
    "never finite, yet right": ("no logits are finite, but", records(never_finite_but_right)),
    "equal images, other counts": ("equal fingerprints with other class counts", other_counts),
    "records that are none": ("cannot be read", unreadable_records),
    "JSON without end": ("is no valid entry", write("carol/entry.json", "[" * 100_000)),
    "a key twice": ("not as fsbench writes it", lambda b: repeat_key(b / "carol/entry.json")),
    "a badge that is none": ("is not a valid Badge",
                             write("carol/badges/20260101-00000000.json", "{}")),
    "another name inside": ("name the folder after it", entry(declaration__name="dora")),
    "controls that are not there": ("controls", entry(controls=[1])),
    "controls alone": ("no network but controls", entry(controls=[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CHANGES, *CONTENTS])
def test_a_hostile_pull_request_is_refused(
    name: str, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, spoil = (CHANGES | CONTENTS)[name]
    spoil(board)
    if name != "a submodule":
        commit(board)
    assert check(board, "--base", "main") == 5
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        *("delete an entry", "lower another's outcomes", "take a name in capitals"),
        *("make another's file executable", "replace by a link", "a link in a circle"),
        *("git attributes", "ignored files", "a hidden file in an entry", "change the workflow"),
        *("a large file", "a name with a line break", "a name in other bytes"),
    ],
)
def test_a_hostile_folder_is_refused(
    name: str, base: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, spoil = CHANGES[name]
    spoil(board)
    assert check(board, "--base-folder", str(base / "board")) == 5
    assert words in capsys.readouterr().err


def test_attributes_hide_no_change_of_a_folder(
    base: Path, board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As those of a repository, they would make ends of lines equal."""
    before = Path(shutil.copytree(base / "board", tmp_path / "before"))
    for folder in (before, board):
        (folder / ".gitattributes").write_text("* text eol=lf")
    file = board / "README.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert check(board, "--base-folder", str(before)) == 5
    assert "README.md: changed outside" in capsys.readouterr().err


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
@pytest.mark.parametrize("state", ["commit", "folder"])
def test_an_honest_pull_request_passes(
    name: str, state: str, base: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (board.parent / "base").symlink_to(base)
    options, make = HONEST[name]
    make(board)
    compared = ("--base", "main") if state == "commit" else ("--base-folder", str(base / "board"))
    assert check(board, *compared, *options) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("ok: ")
    assert ("allowed for a maintainer" in shown.err) == bool(options)


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_no_file_of_a_pull_request_passes_for_the_base(
    kind: str, board: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    assert check(board, "--base", "release/1") == 5
    assert "alice/entry.json: deleted in the existing entry" in capsys.readouterr().err


def test_what_is_not_committed_is_no_pull_request(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(board)
    for change in (write("setup.py"), lambda b: (b / "alice" / "entry.json").write_text("{}")):
        change(board)
        assert check(board, "--base", "main", committed=False) == 2
        assert "not committed" in capsys.readouterr().err
        git(board, "checkout", "-q", "--", ".")
        git(board, "clean", "-qfd")


def test_a_pull_request_has_one_owner(
    base: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(base, board, "dave")
    for compared in (("--base", "main"), ("--base-folder", str(base / "board"))):
        assert check(board, *compared) == 5
        shown = capsys.readouterr().err
        assert "carol by C. Carol; dave by D. Dave, expected one owner" in shown


def test_a_base_that_is_none(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for compared in ("nowhere", "--output=x", "main:board.json", "", " ", str(board)):
        assert check(board, f"--base={compared}") == 2
        assert "as --base" in capsys.readouterr().err
    assert check(board, "--base-folder", str(tmp_path / "none")) == 2
    assert check(board, "--base=main", f"--base-folder={board}") == 2
    capsys.readouterr()
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
    git(board, "branch", "base")
    add(base, board, "carol")
    commit(tmp_path / "whole")
    assert check(board, "--base", "base") == 0
    write("setup.py")(tmp_path / "whole")
    commit(tmp_path / "whole")
    assert check(board, "--base", "base") == 5
    assert "setup.py: added outside of entry folders" in capsys.readouterr().err


def near_copy(board: Path) -> None:
    """Bob's outcomes but for one bit, under the weights of carol."""
    bob_as_carol(board)
    forge(board / "carol", "5w", flipped(1))


def other_outcomes_of_equal_weights(board: Path) -> None:
    shutil.rmtree(board / "carol")
    results = board.parent / "results"
    fakes.write(results, accuracy=0.9, name="carol", backbone=fakes.facts("bob"))
    write_apart(results, board, "carol", "C. Carol")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (near_copy, "suspicious: near copy of"),
        (other_outcomes_of_equal_weights, "suspicious: other outcomes than the same weights in"),
    ],
)
def test_what_is_suspicious_is_shown_until_it_is_cleared(
    make: Edit, words: str, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suspicions(board) == {}
    make(board)
    expected = {"bob": f"{words} carol", "carol": f"{words} bob"}
    assert suspicions(board) == expected
    assert check(board, "--base", "main") == 0
    assert f"carol: {words} bob" in capsys.readouterr().err
    edit(board / "board.json", cleared=[["carol", "bob"]])
    assert suspicions(board) == {}
    assert check(board) == 0
    assert "suspicious" not in capsys.readouterr().err


def suspicions(board: Path) -> dict[str, str]:
    """Return what the tables of a board show."""
    flags = [(name, flag) for table in rank_board(board) for name, flag in iterate_flags(table)]
    return {name: flag for name, flag in flags if flag.startswith("suspicious")}


def iterate_flags(table: BoardTable) -> Iterator[tuple[str, str]]:
    return ((name, flag) for name, row in table.lines.items() for flag in row.notes)


@pytest.fixture
def signed(base: Path, tmp_path: Path) -> Path:
    """Return a repository whose entry alice is signed and has a badge; beside it lie two keys."""
    board = Path(shutil.copytree(base / "board", tmp_path / "signed"))
    for key in ("alice", "mallory"):
        make_key(tmp_path, key)
    sign(board, "alice", old=True)
    add_badge(board, "alice")
    commit(board)
    return board


def sign(board: Path, key: str, accuracy: float = 0.6, *, old: bool = False) -> None:
    """Submit alice's results again, signed."""
    results = board.parent / f"results-{accuracy}"
    fakes.write(results, accuracy, name="alice")
    path = board.parent / key
    fsbench.submit(results, board, declared("alice", "A. Alice"), replace=True, sign_with=path)
    if old:
        resign(board, path, submitted="2026-01-01T00:00:00+00:00")
    else:
        git(board, "checkout", "-q", "--", "board.json", "history.jsonl")


def resign(board: Path, signer: Path, **changes: object) -> None:
    edit(board / "alice" / "entry.json", **changes)
    sign_file(board / "alice" / "entry.json", signer, ENTRY_NAMESPACE)


def replace_by(signer: str, **changes: object) -> Edit:
    """Replace alice by better results that another key signs, or that state another key."""

    def make(board: Path) -> None:
        sign(board, "alice", 0.9)
        resign(board, board.parent / signer, **changes)

    return make


def own_key(board: Path) -> None:
    key = board.parent / "mallory"
    replace_by("mallory", key=read_public_key(key))(board)


def roll_back(board: Path) -> None:
    """Alice's key did sign this state, some time ago."""
    older = board.parent / "older"
    shutil.copytree(board / "alice", older)
    sign(board, "alice", 0.9)
    commit(board)
    git(board, "branch", "-f", "main")
    shutil.rmtree(board / "alice")
    shutil.copytree(older, board / "alice")


def drop_badge(board: Path) -> None:
    """Equal results are submitted again, to be rid of a badge."""
    sign(board, "alice")
    shutil.rmtree(board / "alice" / "badges")


def replace_control(board: Path) -> None:
    """Worse results of a control give all others a gain."""
    edit(board / "board.json", controls=["alice"])
    commit(board)
    git(board, "branch", "-f", "main")
    sign(board, "alice", 0.3)


NEWER = "2026-02-02T00:00:00+00:00"
SIGNED: dict[str, tuple[str, Edit]] = {
    "another key signs": ("none of its key", replace_by("mallory")),
    "another key signs as its own": ("changed in the existing entry 'alice'", own_key),
    "the signature is deleted": (
        "none of its key", lambda b: (b / "alice" / "entry.json.sig").unlink()),
    "the key is deleted": ("changed in the existing entry 'alice'",
                           lambda b: drop(b / "alice" / "entry.json", "key")),
    "edited after signing": ("none of its key",
                             lambda b: edit(b / "alice" / "entry.json", submitted=NEWER)),
    "an older state": ("changed in the existing entry 'alice'", roll_back),
    "the entry is deleted": ("deleted in the existing entry", lambda b: shutil.rmtree(b / "alice")),
    "a badge is changed": ("changed in the existing entry 'alice'", lambda b: edit(
        next((b / "alice" / "badges").glob("*.json")), date="2026-01-01T00:00:00+00:00")),
    "a badge is deleted": ("deleted in the existing entry 'alice'", drop_badge),
    "a control is replaced": ("in 'alice', which board.json names as a control", replace_control),
    "a link beside a signature": ("a link", lambda b: (
        sign(b, "alice", 0.9), (b / "alice" / "x").symlink_to("/"))),
}  # fmt: skip


@needs_ssh_keygen
@pytest.mark.parametrize("name", SIGNED)
def test_a_signed_entry_is_its_owners(
    name: str, signed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, spoil = SIGNED[name]
    git(signed, "switch", "-q", "-c", "proposal")
    spoil(signed)
    commit(signed)
    assert check(signed, "--base", "main") == 5
    shown = capsys.readouterr().err
    assert words in shown
    assert "in the existing entry 'alice'" in shown or words == "a link" or "control" in name


@pytest.fixture
def trusting(base: Path, tmp_path: Path) -> Path:
    """Return a repository whose board.json lists the signer `judge`; mallory is none."""
    board = Path(shutil.copytree(base / "board", tmp_path / "trusting"))
    for key in ("judge", "mallory"):
        make_key(tmp_path, key)
    allow_signer(board, tmp_path / "judge")
    commit(board)
    git(board, "switch", "-q", "-c", "proposal")
    return board


def badge_of(board: Path, signer: str | None = "judge", name: str = "bob", **more: Any) -> Path:
    key = board.parent / signer if signer else None
    return add_badge(board, name, make_badge(board, name, **more), key)


@needs_ssh_keygen
@pytest.mark.parametrize("more", [{}, {"flipped": 1}], ids=["verified", "failed"])
def test_a_signer_of_the_board_adds_a_badge(
    more: dict[str, Any], trusting: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shutil.copytree(trusting, trusting.parent / "before")
    badge_of(trusting, **more)
    add(base, trusting, "carol")
    commit(trusting)
    for compared in (("--base", "main"), ("--base-folder", str(before))):
        assert check(trusting, *compared) == 0, capsys.readouterr().err


def moved(name: str) -> Edit:
    """Move a signed badge and its signature inside the entry."""

    def make(board: Path) -> None:
        path = badge_of(board)
        (board / "bob" / name).parent.mkdir(exist_ok=True, parents=True)
        path.with_name(f"{path.name}.sig").rename(board / "bob" / f"{name}.sig")
        path.rename(board / "bob" / name)

    return make


def trust_mallory(board: Path) -> None:
    badge_of(board, "mallory")
    allow_signer(board, board.parent / "mallory")


def edit_signed(board: Path) -> None:
    edit(badge_of(board), seed=7)


def copy_of_alice(board: Path) -> None:
    path = badge_of(board, name="alice")
    (board / "bob" / "badges").mkdir()
    for file in (path, path.with_name(f"{path.name}.sig")):
        file.rename(board / "bob" / "badges" / file.name)


def linked(board: Path) -> None:
    path = badge_of(board)
    target = path.rename(board.parent / path.name)
    path.symlink_to(target)


def beside(name: str) -> Edit:
    def make(board: Path) -> None:
        badge_of(board)
        (board / "bob" / "badges" / name).write_text("x")

    return make


def for_entries(board: Path) -> None:
    """The judge's signature, but one that was asked for another purpose."""
    path = badge_of(board, None)
    sign_file(path, board.parent / "judge", ENTRY_NAMESPACE)


BADGES: dict[str, tuple[str, Edit]] = {
    "unsigned": ("added in the existing entry 'bob'", lambda b: badge_of(b, None)),
    "signed by a stranger": ("added in the existing entry 'bob'",
                             lambda b: badge_of(b, "mallory")),
    "signed by a key that the same request allows": (
        "added in the existing entry 'bob'", trust_mallory),
    "edited after signing": ("added in the existing entry 'bob'", edit_signed),
    "of another entry": ("a badge of 'alice', expected of 'bob'", copy_of_alice),
    "signed for entries": ("added in the existing entry 'bob'", for_entries),
    "a signature without its badge": ("added in the existing entry 'bob'",
                                      lambda b: badge_of(b).unlink()),
    "a link to a badge": ("a link", linked),
    "a folder deeper": ("added in the existing entry 'bob'", moved("badges/x/y.json")),
    "beside the badges": ("added in the existing entry 'bob'", moved("y.json")),
    "another file beside it": ("added in the existing entry 'bob'", beside("x.txt")),
    "another signature beside it": ("added in the existing entry 'bob'", beside("x.json.sig")),
    "in other letters": ("in the existing entry",
                         lambda b: badge_of(b).parent.parent.rename(b / "BOB")),
    "a date to come": ("a date that has passed",
                       lambda b: badge_of(b, date="2099-01-01T00:00:00+00:00")),
    "with a deletion": ("deleted in the existing entry 'alice'", lambda b: (
        badge_of(b), outcomes(b, "alice").unlink())),
}  # fmt: skip


@needs_ssh_keygen
@pytest.mark.parametrize("name", BADGES)
def test_other_badges_are_refused(
    name: str, trusting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, spoil = BADGES[name]
    spoil(trusting)
    commit(trusting)
    assert check(trusting, "--base", "main") == 5
    assert words in capsys.readouterr().err


@needs_ssh_keygen
def test_the_key_of_an_entry_replaces_it(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(shutil.copytree(signed, tmp_path / "before"))
    sign(signed, "alice", 0.9)
    for compared in (("--base", "HEAD~"), ("--base-folder", str(before))):
        assert check(signed, *compared) == 0, capsys.readouterr().err
    for key in ("mallory", None):
        with pytest.raises(ValidationFailed, match="'alice' is signed by another key"):
            fsbench.submit(
                tmp_path / "results-0.9",
                signed,
                declared("alice", "A. Alice"),
                replace=True,
                sign_with=tmp_path / key if key else None,
            )
    assert check(signed, "--base", "HEAD~", committed=False) == 0


@pytest.mark.parametrize("name", ["=1+1", "+1", "@sum", "=cmd@x"])
def test_names_that_a_spreadsheet_would_run_are_escaped(
    name: str, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed(name)(board)
    assert check(board, "--base", "main") == 0
    call("report", "--board", str(board), "--format", "csv")
    call("leaderboard", "methods", "--board", str(board), "--format", "csv")
    fields = [field for line in capsys.readouterr().out.splitlines() for field in line.split(",")]
    assert f"'{name}" in fields
    assert name not in fields
