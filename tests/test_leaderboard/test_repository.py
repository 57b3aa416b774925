"""A submission between two git repositories, from template to merged entry, by the commands."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support import fakes
from support.cli import CommandLine, call
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
    """Return the results with a declaration."""
    fakes.declare(results, name="seal")
    return results


def test_from_template_to_merged_entry(
    origin: Path, results: Path, tmp_path: Path, cli: CommandLine
) -> None:
    cli("submit", results, "--init")
    lacks = f"{results}/declaration.yaml lacks authors, link, license, targets_seen, statement\n"
    assert lacks in cli("submit", results, "--to", origin, code=2).err
    assert not Path("board").exists()
    file = results / "declaration.yaml"
    text = file.read_text()
    for key, value in FILLED.items():
        text = text.replace(f"\n{key}:\n", f"\n{key}: {value}\n")
    file.write_text(text)
    command = cli("submit", results, "--to", origin).out
    assert command == "git -C board push origin submit-seal\n"
    subprocess.run(shlex.split(command), check=True, capture_output=True)

    for name, branch in (("base", "main"), ("proposed", "submit-seal")):
        git(tmp_path, "clone", "-q", "-b", branch, str(origin), name)
    base, proposed = tmp_path / "base", tmp_path / "proposed"
    checked = cli("leaderboard", "check", "--board", proposed, "--base", "origin/main").out
    assert checked.startswith("ok: 1 entry, 1 result")
    git(base, "merge", "-q", "--no-ff", "origin/submit-seal")
    assert "No entries yet." in (base / "README.md").read_text()
    pages = set()
    for _ in range(2):
        shown = cli("leaderboard", "readme", "--board", base).out
        assert f"rendered {base / 'README.md'}\n" in shown
        pages.add((base / "README.md").read_text())
    (page,) = pages
    assert re.search(r"^\| 1 \| seal \| \d", page, re.MULTILINE)
    notes = ("is the only ranked entry", "One pretraining seed per row", "| tier |")
    assert sorted(notes, key=page.index) == list(notes)
    assert "No entries yet." not in page
    changed = git(base, "status", "--short").split()
    assert changed == ["M", "README.md", "M", "board.json", "??", "history.jsonl"]


def test_a_clone_gets_a_branch_and_is_left_as_it_was(
    origin: Path, declared: Path, cli: CommandLine
) -> None:
    clone = Path("clone")
    git(Path(), "clone", "-q", str(origin), "clone")
    (clone / "notes.txt").write_text("mine")
    git(clone, "switch", "-q", "-c", "other")
    git(clone, "commit", "-q", "--allow-empty", "-m", "unrelated work")
    before = git(clone, "status", "--short", "--branch")
    cli("submit", declared, "--to", "clone")
    assert git(clone, "status", "--short", "--branch") == before
    names = git(clone, "diff", "--name-only", "origin/main", "submit-seal").split()
    assert [name.partition("/")[0] for name in names] == ["seal", "seal"]
    assert git(clone, "log", "--format=%s", "submit-seal").split("\n") == ["Add seal", "change", ""]
    assert "git branch -D submit-seal" in cli("submit", declared, "--to", "clone", code=2).err
    assert git(clone, "worktree", "list").count("\n") == 1


def test_what_cannot_be_proposed_leaves_nothing(
    origin: Path, declared: Path, tmp_path: Path, cli: CommandLine
) -> None:
    git(tmp_path, "init", "-q", "--template=", "plain")
    forged = shutil.copytree(declared, tmp_path / "forged")
    for file in forged.rglob("entry.json"):
        file.write_text(file.read_text().replace('"n":40', '"n":41'))
    cases: tuple[tuple[int, Path, tuple[object, ...], str], ...] = (
        (2, declared, ("--to", tmp_path / "nowhere"), "give the folder of a clone, or an address"),
        (2, declared, ("--to", tmp_path / "plain"), "has no board.json"),
        (2, declared, ("--to", origin, "--dry-run"), "one place for the entries"),
        (2, declared, ("--to", origin, "--board", "x"), "one place for the entries"),
        (2, declared, (), "one place for the entries"),
        (5, forged, ("--to", origin), "nothing was written"),
    )
    for code, folder, options, text in cases:
        assert text in cli("submit", folder, *options, code=code).err
        assert not list(Path().iterdir()), options
    cli("submit", declared, "--to", origin)
    again = cli("submit", declared, "--to", origin, code=2).err
    assert "give --to board if it is a clone" in again


def test_an_entry_of_another_owner_is_not_replaced(
    origin: Path, declared: Path, tmp_path: Path, cli: CommandLine
) -> None:
    merged = tmp_path / "merged"
    git(tmp_path, "clone", "-q", str(origin), "merged")
    cli("submit", declared, "--board", merged)  # as a maintainer
    commit(merged)
    git(merged, "push", "-q", "origin", "main")
    shown = cli("submit", declared, "--to", origin, code=5).err
    assert "choose another name in the declaration" in shown
    file = declared / "declaration.yaml"
    file.write_text(file.read_text().replace("A. Author", "M. Mallory"))
    shown = cli("submit", declared, "--to", origin, "--replace", code=5).err
    assert "the board would refuse the pull request" in shown
    assert not Path("board").exists()


def test_a_template_says_what_the_results_say(
    tmp_path: Path, results: Path, cli: CommandLine
) -> None:
    """Without a folder the results lie in `results`."""
    assert "results does not exist" in cli("submit", "--init", code=2).err
    shutil.copytree(results, "results")
    assert cli("submit", "--init").out == "wrote results/declaration.yaml\n"
    text = Path("results/declaration.yaml").read_text()
    values = yaml.safe_load(text)
    assert re.findall(r"^# .*\n(\w+):", text, re.MULTILINE) == list(values)
    assert (values.pop("name"), values.pop("pretraining_data")) == ("seal", ["toy_source"])
    assert set(values.values()) == {None}
    assert "declaration.yaml exists" in cli("submit", "--init", code=2).err

    file = tmp_path / "two" / "declaration.yaml"
    trained = fakes.facts("trained", pretraining_data=("folder-blobs", "toy_source"))
    for facts, name in ((fakes.facts("hub"), "hub"), (trained, "two")):
        fakes.write(tmp_path / "two", name=name, backbone=facts)
        file.unlink(missing_ok=True)
        cli("submit", tmp_path / "two", "--init")
        values = yaml.safe_load(file.read_text())
        assert (values["name"], values["pretraining_data"]) == (name, None)


def test_init_writes_a_whole_repository(tmp_path: Path, cli: CommandLine) -> None:
    board = tmp_path / "b"
    board.mkdir()
    (board / ".gitignore").write_text("mine\n")
    cli("leaderboard", "init", "--board", board, "--official", "cdfsl")
    files = {p.relative_to(board).as_posix(): p for p in board.rglob("*") if p.is_file()}
    texts = {name: path.read_text() for name, path in files.items() if name != ".lock"}
    assert texts.keys() == {
        *(".github/workflows/check.yml", ".github/workflows/tables.yml", "board.json"),
        *(".gitignore", ".gitattributes", "README.md", "CONTRIBUTING.md"),
    }
    for name, text in (
        (".gitignore", "mine\n"),
        (".github/workflows/check.yml", "FSBENCH: ${{ vars.FSBENCH }}"),
        ("README.md", "# cdfsl-2\n\nCross-domain few-shot learning"),
        ("README.md", "No entries yet."),
        ("CONTRIBUTING.md", "on chestx, isic, eurosat, cropdisease;"),
    ):
        assert text in texts[name]
    cli("leaderboard", "check", "--board", board)
    (board / "README.md").write_text("mine")
    shown = cli("leaderboard", "readme", "--board", board, code=2).err
    assert "has no place for the tables" in shown


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
