"""The command line in this process."""

import pytest

from fsbench.cli.main import run


def call(*arguments: object) -> int:
    """Run a command of fsbench and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        run([str(argument) for argument in arguments])
    return int(stop.value.code or 0)
