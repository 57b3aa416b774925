"""The command line in this process."""

import json
from typing import Any

import pytest

from fsbench.cli.main import run


def call(*arguments: object) -> int:
    """Run a command of fsbench and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        run([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


class CommandLine:
    """Runs commands and returns what each one printed. capture: of the test."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture

    def __call__(self, *arguments: object, code: int = 0) -> "pytest.CaptureResult[str]":
        """Run a command, which must end with this exit code and without a traceback."""
        self.capture.readouterr()
        ended = call(*arguments)
        shown = self.capture.readouterr()
        assert ended == code, shown.err
        assert "Traceback" not in shown.err
        return shown

    def json(self, *arguments: object) -> Any:
        """Return what a command prints with --json."""
        return json.loads(self(*arguments, "--json").out)
