"""A submission between two git repositories, from template to merged entry, by the commands."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support import fakes
from support.cli import call

FILLED = {
    **{"authors": "A. Author", "link": "https://example.org", "license": "MIT"},
    **{"targets_seen": "none", "statement": "One run."},
}
SOURCE = "fsbench @ git+https://example.org/lab/fsbench@0123456"


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, under a name that git does not read from this machine."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "x")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "x@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """Return a bare repository that a maintainer pushed a new board to."""
    board, bare = tmp_path / "mine", tmp_path / "lab" / "board.git"
    assert call("leaderboard", "init", "--board", board, "--install-from", SOURCE) == 0
    git(board, "init", "-q", "-b", "main", "--template=")
    git(board, "add", "-A")
    git(board, "commit", "-q", "-m", "Start")
    git(board.parent, "clone", "-q", "--bare", str(board), str(bare))
    return bare


@pytest.fixture
def results(tmp_path: Path) -> Path:
    data = fakes.facts("seal", recipe="toy/seal", pretraining_data=("toy_source",))
    fakes.write(tmp_path / "results", name="seal", backbone=data)
    return tmp_path / "results"


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
    shown = capsys.readouterr()
    assert "branch submit-seal of board adds seal" in shown.err
    assert shown.out == "git -C board push origin submit-seal\n"
    subprocess.run(shlex.split(shown.out), check=True, capture_output=True)

    for name, branch in (("base", "main"), ("proposed", "submit-seal")):
        git(tmp_path, "clone", "-q", "-b", branch, str(origin), name)
    base, proposed = tmp_path / "base", tmp_path / "proposed"
    for compared in (("--base-folder", base), ("--base", "origin/main")):
        assert call("leaderboard", "check", "--board", proposed, *compared) == 0
        assert capsys.readouterr().out.startswith("ok: 1 entry, 1 result")
    git(base, "merge", "-q", "--no-ff", "origin/submit-seal")
    assert call("leaderboard", "check", "--board", base, "--base", "HEAD^1") == 0
    assert "No entries yet." in (base / "README.md").read_text()
    assert call("leaderboard", "readme", "--board", base) == 0
    page = (base / "README.md").read_text()
    assert re.search(r"^\| 1 \| seal \| \d", page, re.MULTILINE)
    assert page.index("is the only ranked entry") < page.index("One pretraining seed per row")
    assert page.index("One pretraining seed per row") < page.index("| tier |")
    assert "No entries yet." not in page
    assert f"rendered {base / 'README.md'}\n" in capsys.readouterr().out
    assert call("leaderboard", "readme", "--board", base) == 0
    assert (base / "README.md").read_text() == page
    changed = git(base, "status", "--short").split()
    assert changed == ["M", "README.md", "M", "board.json", "??", "history.jsonl"]


def test_a_clone_gets_a_branch_and_is_left_as_it_was(
    origin: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(Path(), "clone", "-q", str(origin), "clone")
    Path("clone/notes.txt").write_text("mine")
    git(Path("clone"), "switch", "-q", "-c", "other")
    git(Path("clone"), "commit", "-q", "--allow-empty", "-m", "unrelated work")
    assert call("submit", results, "--init") == 0
    fill(results / "declaration.yaml")
    before = git(Path("clone"), "status", "--short", "--branch")
    assert call("submit", results, "--to", "clone") == 0
    assert git(Path("clone"), "status", "--short", "--branch") == before
    names = git(Path("clone"), "diff", "--name-only", "origin/main", "submit-seal").split()
    assert len(names) == 2
    assert git(Path("clone"), "log", "--format=%s", "submit-seal").split("\n") == [
        "Add seal", "Start", "",
    ]  # fmt: skip
    assert all(name.startswith("seal/") for name in names)
    capsys.readouterr()
    assert call("submit", results, "--to", "clone") == 2
    assert "git branch -D submit-seal" in capsys.readouterr().err
    assert git(Path("clone"), "worktree", "list").count("\n") == 1


def test_what_cannot_be_proposed_leaves_nothing(
    origin: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    git(plain, "init", "-q", "--template=")
    assert call("submit", results, "--init") == 0
    fill(results / "declaration.yaml")
    forged = shutil.copytree(results, tmp_path / "forged")
    for file in forged.rglob("entry.json"):
        file.write_text(file.read_text().replace('"n": 40', '"n": 41'))
    cases: tuple[tuple[int, Path, tuple[object, ...], str], ...] = (
        (2, results, ("--to", tmp_path / "nowhere"), "give the folder of a clone, or an address"),
        (2, results, ("--to", plain), "has no board.json"),
        (2, results, ("--to", tmp_path), "give the folder of a clone, or an address"),
        (2, results, ("--to", origin, "--dry-run"), "one place for the entries"),
        (2, results, ("--to", origin, "--board", "x"), "one place for the entries"),
        (2, results, (), "one place for the entries"),
        (5, forged, ("--to", origin), "nothing was written"),
    )
    for code, folder, options, text in cases:
        assert call("submit", folder, *options) == code, options
        assert text in capsys.readouterr().err
        assert not list(Path().iterdir()), options
    assert call("submit", results, "--to", origin) == 0
    assert call("submit", results, "--to", origin) == 2
    assert "give --to board if it is a clone" in capsys.readouterr().err


def test_an_entry_of_another_owner_is_not_replaced(
    origin: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("submit", results, "--init") == 0
    fill(results / "declaration.yaml")
    git(tmp_path, "clone", "-q", str(origin), "merged")
    assert call("submit", results, "--board", tmp_path / "merged") == 0  # as a maintainer
    git(tmp_path / "merged", "add", "-A")
    git(tmp_path / "merged", "commit", "-q", "-m", "merged")
    git(tmp_path / "merged", "push", "-q", "origin", "main")
    capsys.readouterr()
    assert call("submit", results, "--to", origin) == 5
    assert "choose another name in the declaration" in capsys.readouterr().err
    (results / "declaration.yaml").write_text(
        (results / "declaration.yaml").read_text().replace("A. Author", "M. Mallory")
    )
    assert call("submit", results, "--to", origin, "--replace") == 5
    assert "the board would refuse the pull request" in capsys.readouterr().err
    assert not Path("board").exists()


def test_a_template_says_what_the_results_say(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("submit", results, "--init") == 0
    text = (results / "declaration.yaml").read_text()
    values = yaml.safe_load(text)
    assert values.pop("name") == "seal"
    assert values.pop("pretraining_data") == ["toy_source"]
    assert set(values.values()) == {None}
    assert re.findall(r"^# .*\n(\w+):", text, re.MULTILINE) == list(yaml.safe_load(text))
    assert call("submit", results, "--init") == 2
    assert "declaration.yaml exists" in capsys.readouterr().err

    fakes.write(tmp_path / "two", name="hub", backbone=fakes.facts("hub"))
    assert call("submit", tmp_path / "two", "--init") == 0
    values = yaml.safe_load((tmp_path / "two" / "declaration.yaml").read_text())
    assert (values["name"], values["pretraining_data"]) == ("hub", None)
    with_data = fakes.facts("seen", pretraining_data=("folder-blobs", "toy_source"))
    fakes.write(tmp_path / "two", name="seen", backbone=with_data)
    (tmp_path / "two" / "declaration.yaml").unlink()
    assert call("submit", tmp_path / "two", "--init") == 0
    values = yaml.safe_load((tmp_path / "two" / "declaration.yaml").read_text())
    assert (values["name"], values["pretraining_data"]) == ("two", None)


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
    (board / "sub").mkdir(parents=True)
    (board / ".gitignore").write_text("mine\n")
    assert call("leaderboard", "init", "--board", board, "--official", "cdfsl") == 0
    assert (board / ".gitignore").read_text() == "mine\n"
    files = {p.relative_to(board).as_posix() for p in board.rglob("*") if p.is_file()}
    workflows = {".github/workflows/check.yml", ".github/workflows/tables.yml"}
    assert files - {".lock"} == workflows | {
        *(".gitignore", ".gitattributes", "README.md", "CONTRIBUTING.md", "board.json"),
    }
    assert "FSBENCH: ${{ vars.FSBENCH }}" in (board / ".github/workflows/check.yml").read_text()
    page = (board / "README.md").read_text()
    assert page.startswith("# cdfsl-2\n\nCross-domain few-shot learning")
    assert "No entries yet." in page
    assert "on chestx, isic, eurosat, cropdisease;" in (board / "CONTRIBUTING.md").read_text()
    (board / "sub").rmdir()
    capsys.readouterr()
    assert call("leaderboard", "check", "--board", board) == 0
    (board / "README.md").write_text("mine")
    assert call("leaderboard", "readme", "--board", board) == 2
    assert "has no place for the tables" in capsys.readouterr().err


def test_workflows_install_from_the_address_of_the_repository(origin: Path) -> None:
    for name in ("check", "tables"):
        text = git(origin, "show", f"main:.github/workflows/{name}.yml")
        workflow = yaml.safe_load(text)
        assert workflow["env"]["FSBENCH"] == SOURCE
        (job,) = workflow["jobs"].values()
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands[0] == 'pip install "$FSBENCH"'
        assert "index" not in text
    assert yaml.safe_load(git(origin, "show", "main:.github/workflows/check.yml"))[
        "permissions"
    ] == {"contents": "read"}
