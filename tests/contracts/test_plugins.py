"""Plug-ins: files that another package adds through entry points, used by the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support.cases import read_cases

CODE = read_cases("code")["plugins"]
FILES = {(group, name): text for key, text in CODE.items() for group, name in [key.split()]}
METHOD = FILES["fsbench.methods", "two_step"]
HEAD = FILES["fsbench.heads", "nearest_median"]
CALLS = """
import json, sys
from fsbench.cli.main import run
for arguments in json.loads(sys.argv[1]):
    try:
        run(arguments)
    except SystemExit as stop:
        if stop.code:
            raise
    print(end="\\0")
"""


def install(folder: Path, name: str, files: dict[tuple[str, str], str]) -> Path:
    """Write a package with its metadata as pip would; the folder goes to sys.path."""
    package, metadata = folder / name, folder / f"{name}-1.2.dist-info"
    for place in (package, metadata):
        place.mkdir(parents=True)
    (package / "__init__.py").touch()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = []
    for (group, entry), text in files.items():
        (package / f"{entry}.py").write_text(text)
        lines.append(f"[{group}]\n{entry} = {name}.{entry}\n")
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


def call(folder: Path, *commands: list[str], code: int = 0) -> tuple[str, str]:
    """Run commands of fsbench in one process that finds the package in `folder`.

    It must end with this code; return what it prints.
    """
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(commands)],
        env={**os.environ, "PYTHONPATH": path, "FSBENCH_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def list_all(folder: Path, *kinds: str) -> list[list[dict[str, Any]]]:
    """Return what `fsbench ls KIND --json` prints of each kind."""
    printed, _ = call(folder, *(["ls", kind, "--json"] for kind in kinds))
    return [json.loads(text) for text in printed.split("\0")[:-1]]


def read(folder: Path, pattern: str) -> dict[str, Any]:
    (path,) = folder.glob(pattern)
    record: dict[str, Any] = json.loads(path.read_text())
    return record


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all five plug-ins were used once."""
    somebody = install(tmp_path_factory.mktemp("site"), "somebody", FILES)
    call(
        somebody,
        ["pretrain", "toy/two_step", "-o", "runs"],
        ["episodic", "-m", "echo:x", "-t", "toy_rings:2w1s/nearest_median", "--episodes", "4",
         "--input-size", "native", "-o", "out"],
        ["episodic", "-m", "fsbench/toy_resnet", "--random-init", "0", "-t",
         "toy_tiles:2w1s/ridge", "--episodes", "4", "--input-size", "native", "-o", "plain"],
        ["analyze", "--what", "count_parameters", "-m", "echo:x", "-o", "out"],
    )  # fmt: skip
    return somebody


def test_listings_results_runs_and_findings_name_the_package(used: Path) -> None:
    kinds = [group.removeprefix("fsbench.").replace("sources", "backbones") for group, _ in FILES]
    for what, (_, name), rows in zip(kinds, FILES, list_all(used, *kinds), strict=True):
        origins = {next(iter(row.values())): row["from"] for row in rows}
        assert origins.pop("echo:NAME" if what == "backbones" else name) == "somebody 1.2"
        assert set(origins.values()) == {"fsbench"}
    entry = read(used / "out", "*/*/entry.json")
    assert [made["plugins"] for made in entry["environments"]] == [{"somebody": "1.2"}]
    assert "custom" in entry["results"][0]["flags"]
    assert read(used / "runs", "*/run.json")["plugins"] == {"somebody": "1.2"}
    finding = read(used / "out", "*/*/analyses/*.json")
    assert finding["provenance"]["plugins"] == {"somebody": "1.2"}
    assert "plugins" not in read(used / "plain", "*/*/entry.json")["environments"][0]


def test_a_board_refuses_a_head_of_a_plugin_and_checks_others_as_ever(used: Path) -> None:
    for name in ("out", "plain"):
        fakes.declare(used / name, pretraining_data=())
    printed = call(used, ["submit", "out", "--board", "board"], code=5)
    assert "expected a head of fsbench" in "".join(printed)
    call(used, ["submit", "plain", "--board", "board"])
    call(used, ["leaderboard", "show", "--board", "board"])


def test_a_name_of_the_suite_cannot_be_taken(tmp_path: Path) -> None:
    folder = install(tmp_path, "taker", {("fsbench.heads", "ridge"): HEAD})
    _, errors = call(folder, ["ls", "heads"], code=2)
    assert "'ridge' is defined by fsbench and by taker 1.2" in errors


def test_a_broken_plugin_is_listed_with_its_error_beside_the_others(tmp_path: Path) -> None:
    files = {
        ("fsbench.heads", "broken"): "import nothing_like_it",
        ("fsbench.analyses", "a"): "",
        ("fsbench.methods", "raising"): "\n1 / 0",
        ("fsbench.methods", "two_step"): METHOD.replace("RANK: ClassVar", "# RANK: ClassVar"),
    }
    folder = install(tmp_path, "careless", files)
    raised = "ZeroDivisionError: division by zero (raising.py, line 2)"
    expected = {
        "broken": "careless 1.2 cannot be imported: No module named 'nothing_like_it'",
        "a": "a.py is no analysis: it defines no SOURCE",
        "raising": f"careless 1.2 cannot be imported: {raised}",
        "two_step": "two_step.py: class TwoStep lacks RANK",
    }
    rows = {}
    for listed in list_all(folder, "methods", "heads", "analyses"):
        rows |= {name: does for name, _, does, *_ in map(dict.values, listed)}
    assert {name for name, text in rows.items() if "cannot be used" in text} == expected.keys()
    assert all(text in rows[name] for name, text in expected.items())
    assert {"seal", "ridge", "hessian"} < rows.keys()
    _, errors = call(folder, ["pretrain", "toy/two_step"], code=1)
    assert "add the line `RANK: ClassVar = ActingOrder.STEP" in errors
    small = ["width=2", "plan.rounds=1", "plan.epoch_images=64"]
    settings = [word for text in small for word in ("--set", text)]
    call(folder, ["pretrain", "toy/normal", *settings, "-o", str(folder)], ["ls", "protocols"])
