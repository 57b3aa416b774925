"""The public names: imported on first use, documented, with examples that run."""

import doctest
import importlib
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.fakes import DECLARATION

import fsbench
from fsbench.api.submit import submit
from fsbench.results.entry import write_entry
from leaderboard.store import Board

ROOT = Path(__file__).resolve().parents[2]
PILOT = ROOT / "leaderboard" / "studies" / "pilot" / "entries"
EXAMPLES = [
    "",
    *(f"api.{name}" for name in ("compare", "episodes", "evaluate", "leaderboard", "listing")),
    *(f"api.{name}" for name in ("pretrain", "results", "submit")),
    "backbones.base",
]


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'numpy', 'pandas', 'pydantic'}"
    check = f"import fsbench, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_submodules_are_not_shadowed_by_public_names() -> None:
    for path in (ROOT / "fsbench").iterdir():
        assert path.name.removesuffix(".py") not in fsbench.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'fsbench' has no attribute 'nothing'"):
        _ = fsbench.nothing


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_of_docstrings_run(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with results of two committed entries, and their board with one of them."""
    name = f"fsbench.{module}".rstrip(".")
    for method in ("seal", "normal"):
        network = Board.open(PILOT).entry(f"pilot-{method}").seeds[0]
        folder = tmp_path / "results" / method / f"pilot-{method}-s0" / network.facts.identity[:12]
        write_entry(folder, [(cell.result, cell.records) for cell in network.loaded])
    if module == "api.leaderboard":
        (tmp_path / "board").mkdir()
        shutil.copy(PILOT / "board.json", tmp_path / "board")  # short results count there
        submit(tmp_path / "results" / "seal", tmp_path / "board", DECLARATION)
    monkeypatch.chdir(tmp_path)
    tested = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testmod(tested, optionflags=flags)
    assert done.attempted > 0
    assert done.failed == 0


def test_public_objects_have_a_docstring_with_an_example() -> None:
    for name in set(fsbench.__all__) - {"__version__"}:
        value = getattr(fsbench, name)
        text = inspect.getdoc(value) or ""
        methods = [inspect.getdoc(m) or "" for _, m in inspect.getmembers(value, callable)]
        assert any(">>> " in part for part in [text, *methods]), name
