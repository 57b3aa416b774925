"""A submission between two git repositories, from template to merged entry, by the commands."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support import fakes
from support.cli import call
from support.repositories import GIT, commit, git, start

FILLED = {
    **{"authors": "A. Author", "link": "https://example.org", "license": "MIT"},
    **{"targets_seen": "none", "statement": "One run."},
}
SOURCE = "fsbench @ git+https://example.org/lab/fsbench@0123456"


@pytest.fixture(autouse=True)
def _person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, under a name that git does not read from this machine."""
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """Return a bare repository that a maintainer pushed a new board to."""
    board, bare = tmp_path / "mine", tmp_path / "lab" / "board.git"
    assert call("leaderboard", "init", "--board", board, "--install-from", SOURCE) == 0
    start(board)
    git(board.parent, "clone", "-q", "--bare", str(board), str(bare))
    return bare


@pytest.fixture
def results(tmp_path: Path) -> Path:
    facts = fakes.facts("seal", recipe="toy/seal", pretraining_data=("toy_source",))
    fakes.write(tmp_path / "results", name="seal", backbone=facts)
    return tmp_path / "results"


@pytest.fixture
def declared(results: Path) -> Path:
    """Return the results with a declaration that was filled in."""
    assert call("submit", results, "--init") == 0
    fill(results / "declaration.yaml")
    return results


def fill(file: Path) -> None:
    text = file.read_text()
    for key, value in FILLED.items():
        text = text.replace(f"\n{key}:\n", f"\n{key}: {value}\n")
    file.write_text(text)


def test_from_template_to_merged_entry(
    origin: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("submit", results, "--init") == 0
    assert call("submit", results, "--to", origin) == 2
    lacks = f"{results}/declaration.yaml lacks authors, link, license, targets_seen, statement\n"
    assert lacks in capsys.readouterr().err
    assert not Path("board").exists()
    fill(results / "declaration.yaml")
    assert call("submit", results, "--to", origin) == 0
    command = capsys.readouterr().out
    assert command == "git -C board push origin submit-seal\n"
    subprocess.run(shlex.split(command), check=True, capture_output=True)

    for name, branch in (("base", "main"), ("proposed", "submit-seal")):
        git(tmp_path, "clone", "-q", "-b", branch, str(origin), name)
    base, proposed = tmp_path / "base", tmp_path / "proposed"
    assert call("leaderboard", "check", "--board", proposed, "--base", "origin/main") == 0
    assert capsys.readouterr().out.startswith("ok: 1 entry, 1 result")
    git(base, "merge", "-q", "--no-ff", "origin/submit-seal")
    assert "No entries yet." in (base / "README.md").read_text()
    assert call("leaderboard", "readme", "--board", base) == 0
    page = (base / "README.md").read_text()
    assert re.search(r"^\| 1 \| seal \| \d", page, re.MULTILINE)
    notes = ("is the only ranked entry", "One pretraining seed per row", "| tier |")
    assert sorted(notes, key=page.index) == list(notes)
    assert "No entries yet." not in page
    assert f"rendered {base / 'README.md'}\n" in capsys.readouterr().out
    assert call("leaderboard", "readme", "--board", base) == 0
    assert (base / "README.md").read_text() == page
    changed = git(base, "status", "--short").split()
    assert changed == ["M", "README.md", "M", "board.json", "??", "history.jsonl"]


def test_a_clone_gets_a_branch_and_is_left_as_it_was(
    origin: Path, declared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = Path("clone")
    git(Path(), "clone", "-q", str(origin), "clone")
    (clone / "notes.txt").write_text("mine")
    git(clone, "switch", "-q", "-c", "other")
    git(clone, "commit", "-q", "--allow-empty", "-m", "unrelated work")
    before = git(clone, "status", "--short", "--branch")
    assert call("submit", declared, "--to", "clone") == 0
    assert git(clone, "status", "--short", "--branch") == before
    names = git(clone, "diff", "--name-only", "origin/main", "submit-seal").split()
    assert [name.partition("/")[0] for name in names] == ["seal", "seal"]
    assert git(clone, "log", "--format=%s", "submit-seal").split("\n") == ["Add seal", "change", ""]
    capsys.readouterr()
    assert call("submit", declared, "--to", "clone") == 2
    assert "git branch -D submit-seal" in capsys.readouterr().err
    assert git(clone, "worktree", "list").count("\n") == 1


def test_what_cannot_be_proposed_leaves_nothing(
    origin: Path, declared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    git(plain, "init", "-q", "--template=")
    forged = shutil.copytree(declared, tmp_path / "forged")
    for file in forged.rglob("entry.json"):
        file.write_text(file.read_text().replace('"n": 40', '"n": 41'))
    cases: tuple[tuple[int, Path, tuple[object, ...], str], ...] = (
        (2, declared, ("--to", tmp_path / "nowhere"), "give the folder of a clone, or an address"),
        (2, declared, ("--to", plain), "has no board.json"),
        (2, declared, ("--to", origin, "--dry-run"), "one place for the entries"),
        (2, declared, ("--to", origin, "--board", "x"), "one place for the entries"),
        (2, declared, (), "one place for the entries"),
        (5, forged, ("--to", origin), "nothing was written"),
    )
    for code, folder, options, text in cases:
        assert call("submit", folder, *options) == code, options
        assert text in capsys.readouterr().err
        assert not list(Path().iterdir()), options
    assert call("submit", declared, "--to", origin) == 0
    assert call("submit", declared, "--to", origin) == 2
    assert "give --to board if it is a clone" in capsys.readouterr().err


def test_an_entry_of_another_owner_is_not_replaced(
    origin: Path, declared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = tmp_path / "merged"
    git(tmp_path, "clone", "-q", str(origin), "merged")
    assert call("submit", declared, "--board", merged) == 0  # as a maintainer
    commit(merged)
    git(merged, "push", "-q", "origin", "main")
    capsys.readouterr()
    assert call("submit", declared, "--to", origin) == 5
    assert "choose another name in the declaration" in capsys.readouterr().err
    file = declared / "declaration.yaml"
    file.write_text(file.read_text().replace("A. Author", "M. Mallory"))
    assert call("submit", declared, "--to", origin, "--replace") == 5
    assert "the board would refuse the pull request" in capsys.readouterr().err
    assert not Path("board").exists()


def test_a_template_says_what_the_results_say(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("submit", results, "--init") == 0
    text = (results / "declaration.yaml").read_text()
    values = yaml.safe_load(text)
    assert re.findall(r"^# .*\n(\w+):", text, re.MULTILINE) == list(values)
    assert (values.pop("name"), values.pop("pretraining_data")) == ("seal", ["toy_source"])
    assert set(values.values()) == {None}
    assert call("submit", results, "--init") == 2
    assert "declaration.yaml exists" in capsys.readouterr().err

    file = tmp_path / "two" / "declaration.yaml"
    trained = fakes.facts("trained", pretraining_data=("folder-blobs", "toy_source"))
    for facts, name in ((fakes.facts("hub"), "hub"), (trained, "two")):
        fakes.write(tmp_path / "two", name=name, backbone=facts)
        file.unlink(missing_ok=True)
        assert call("submit", tmp_path / "two", "--init") == 0
        values = yaml.safe_load(file.read_text())
        assert (values["name"], values["pretraining_data"]) == (name, None)


def test_results_lie_in_results_unless_said_otherwise(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("submit", "--init") == 2
    assert "results does not exist" in capsys.readouterr().err
    shutil.copytree(results, "results")
    assert call("submit", "--init") == 0
    assert capsys.readouterr().out == "wrote results/declaration.yaml\n"


def test_init_writes_a_whole_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "b"
    board.mkdir()
    (board / ".gitignore").write_text("mine\n")
    assert call("leaderboard", "init", "--board", board, "--official", "cdfsl") == 0
    assert (board / ".gitignore").read_text() == "mine\n"
    files = {p.relative_to(board).as_posix() for p in board.rglob("*") if p.is_file()}
    assert files - {".lock"} == {
        *(".github/workflows/check.yml", ".github/workflows/tables.yml", "board.json"),
        *(".gitignore", ".gitattributes", "README.md", "CONTRIBUTING.md"),
    }
    assert "FSBENCH: ${{ vars.FSBENCH }}" in (board / ".github/workflows/check.yml").read_text()
    page = (board / "README.md").read_text()
    assert page.startswith("# cdfsl-2\n\nCross-domain few-shot learning")
    assert "No entries yet." in page
    assert "on chestx, isic, eurosat, cropdisease;" in (board / "CONTRIBUTING.md").read_text()
    assert call("leaderboard", "check", "--board", board) == 0
    (board / "README.md").write_text("mine")
    assert call("leaderboard", "readme", "--board", board) == 2
    assert "has no place for the tables" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["check", "tables"])
def test_workflows_install_from_the_address_of_the_repository(name: str, origin: Path) -> None:
    text = git(origin, "show", f"main:.github/workflows/{name}.yml")
    workflow = yaml.safe_load(text)
    assert workflow["env"]["FSBENCH"] == SOURCE
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == 'pip install "$FSBENCH"'
    assert "index" not in text
    assert workflow["permissions"] == {"contents": "read" if name == "check" else "write"}
