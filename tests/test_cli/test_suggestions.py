"""Commands that an output suggests: each runs as it is printed."""

import re
import shlex
from pathlib import Path

import pytest
from support.cli import CommandLine

CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
SMALL = ("--set", "width=2", "--set", "plan.epoch_images=64")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("pretrain", "toy/normal", *SMALL), "benchmark"),
        (("episodic", *CONTROL, "-t", "toy_tiles:5w1s/ridge", "--episodes", "2"), "show"),
        (("probe", *CONTROL, "-t", "toy_tiles:knn"), "show"),
    ],
)
def test_a_suggested_command_runs_as_it_is_printed(
    words: tuple[str, ...],
    command: str,
    tmp_path: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (suggested,) = re.findall(r"next: fsbench (.*)", cli(*words, "-o", "a folder").err)
    assert suggested.startswith(command)
    quick = ("--limit", "2") if command == "benchmark" else ()
    cli(*shlex.split(suggested), *quick)
