"""Commands in poor surroundings: outputs that take little, and a cache that cannot be written."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.cli import call
from support.reading import read

FSBENCH = [sys.executable, "-m", "fsbench"]
CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
TASK = ("-t", "toy_tiles:5w1s/ridge", "--episodes", "4")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("surroundings")
    assert call("episodic", *CONTROL, *TASK, "--cache", folder / "cache", "-o", folder / "r") == 0
    return folder / "r"


def run(words: Sequence[object], shell: str = '"$@"', **variables: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command, which a shell line calls as "$@"."""
    command = ["sh", "-c", shell, "sh", *FSBENCH, *map(str, words)]
    done = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("ascii", r"\d ± \d"), ("latin-1:strict", r"\?{5}\n"), ("cp437", r"─────\n")],
)
def test_any_encoding_takes_the_tables(encoding: str, text: str, results: Path) -> None:
    command = [*FSBENCH, "show", str(results)]
    variables = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, env=variables, capture_output=True, check=False)
    name = "utf8" if encoding == "ascii" else encoding.partition(":")[0]
    assert done.returncode == 0, done.stderr
    assert re.search(text, done.stdout.decode(name))


@pytest.mark.parametrize("shell", ['"$@" >&-', '"$@" 2>&-', '"$@" >&- 2>&-', '"$@" | true'])
def test_results_are_saved_where_nobody_takes_the_output(shell: str, tmp_path: Path) -> None:
    words = ["episodic", *CONTROL, *TASK, "-o", tmp_path / "r", "--cache", tmp_path / "cache"]
    assert run(words, shell)[0] == 0
    (result,) = read(tmp_path / "r")
    assert result.score.n == 4


@pytest.mark.parametrize("words", [["ls", "recipes"], ["--help"], ["ls", "recipes", "--json"]])
def test_a_reader_that_leaves_is_no_error(words: list[str]) -> None:
    _, output, errors = run(words, '("$@"; echo "exit $?" >&2) | head -1')
    assert len(output.splitlines()) == 1
    assert errors.splitlines()[-1] == "exit 0"


@pytest.mark.parametrize("variables", [{"COLUMNS": "40"}, {"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_poor_terminals_get_the_whole_result(variables: dict[str, str], results: Path) -> None:
    code, output, errors = run(["show", results], **variables)
    assert code == 0
    assert re.search(r"\d ± \d", output)
    assert "\x1b" not in output + errors


@pytest.mark.parametrize(
    ("shell", "variable", "path"),
    [
        *(('"$@"', "FSBENCH_CACHE", path) for path in ("file", "file/c", "/proc/none")),
        ('unset FSBENCH_CACHE XDG_CACHE_HOME; "$@"', "HOME", "file"),
    ],
)
def test_without_a_cache_that_can_be_written_work_goes_on(
    shell: str, variable: str, path: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    words = ["episodic", *CONTROL, *TASK, "-o", tmp_path / "r"]
    code, _, errors = run(words, shell, **{variable: str(tmp_path / path)})
    assert code == 0, errors
    notes = [line for line in errors.splitlines() if "cannot be written" in line]
    assert len(notes) == 1
    assert "--cache DIR or FSBENCH_CACHE" in notes[0]
    assert len(read(tmp_path / "r")) == 1
