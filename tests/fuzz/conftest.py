"""The canary that no input may wake, and the count of cases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.cases import Tally


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    """A file that code hidden in an input would make."""
    path = tmp_path / "canary"
    yield path
    assert not path.exists(), "code from an input was run"


@pytest.fixture
def tally() -> Tally:
    """Counts the cases of a test."""
    return Tally()
