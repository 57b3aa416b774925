"""The size of the project, which may only fall, and imports without circles."""

import ast
import shutil
import subprocess

import pytest
from support.imports import PACKAGES, ROOT, circles, imported_names, subpackage_graph

# These numbers may only fall: a commit that removes lines or files lowers them.
CEILINGS = {"fsbench": 22_166, "pretrain": 7_489, "protocols": 3_919, "leaderboard": 7_482}
"""Most lines of Python of each package, scripts of studies included."""
TRACKED_FILES = 1_060
"""Most files under version control."""


def count_lines(package: str) -> int:
    paths = (ROOT / package).rglob("*.py")
    return sum(path.read_bytes().count(b"\n") for path in paths)


def tracked_files() -> list[str]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no git checkout: files under version control cannot be counted")
    done = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode().rstrip("\0").split("\0")


def test_every_package_has_a_ceiling() -> None:
    assert set(CEILINGS) == set(PACKAGES)


@pytest.mark.parametrize("package", CEILINGS)
def test_lines_stay_below_the_ceiling(package: str) -> None:
    lines = count_lines(package)
    assert lines <= CEILINGS[package], f"{package} has {lines} lines of Python: remove some"


def test_tracked_files_stay_below_the_ceiling() -> None:
    files = len(tracked_files())
    assert files <= TRACKED_FILES, f"{files} files are under version control: remove some"


def test_no_subpackages_import_one_another() -> None:
    assert circles(subpackage_graph()) == []


def test_imports_within_functions_count_and_those_for_types_do_not() -> None:
    code = ast.parse(
        "import pkg.top\n"
        "if TYPE_CHECKING:\n    import pkg.typed\nelse:\n    import pkg.other\n"
        "if typing.TYPE_CHECKING:\n    from pkg import also_typed\n"
        "def load():\n    from pkg import inner\n    from pkg.deep import name\n"
    )
    names = ("top", "typed", "other", "also_typed", "inner", "deep")
    existing = frozenset(f"pkg.{name}" for name in names)
    typed = {"pkg.typed", "pkg.also_typed"}
    assert imported_names(code, existing, typing=False) == existing - typed
    assert imported_names(code, existing, typing=True) == existing
