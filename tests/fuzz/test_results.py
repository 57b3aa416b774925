"""Result files of others: the very figures that their records hold, or a refusal by name."""

from pathlib import Path

import pytest
from fuzz.cases import DAMAGE, SIZES, Tally, damage
from support import fakes

from fsbench.core.errors import ValidationFailed
from fsbench.results.entry import Entry
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_verified


@pytest.fixture
def result(tmp_path: Path) -> Path:
    fakes.write(tmp_path / "r")
    return next((tmp_path / "r").rglob("entry.json")).parent


def figures(entry: Entry) -> tuple[object, ...]:
    """What a table shows and a ranking compares.

    A spec of other episodes is refused where these are drawn again: when it is submitted.
    """
    (loaded,) = entry.loaded
    result = loaded.result
    mean = round(result.score.mean, 12)  # a last digit may be lost
    return mean, result.score.n, result.column, digest_records(loaded.records), result.flags


@SIZES
@pytest.mark.parametrize("name", ["entry.json", "outcomes-*"])
def test_damaged_results(size: int, name: str, result: Path, tally: Tally) -> None:
    """No byte of either file changes a figure unseen."""
    first = read_verified(result)
    file = next(result.glob(name))
    whole = file.read_bytes()

    def check(how: str, position: int, more: bytes) -> None:
        file.write_bytes(damage(whole, how, position, more))
        outcome = tally.attempt(lambda: read_verified(result), ValidationFailed, result.name)
        assert outcome is None or figures(outcome) == figures(first)

    tally.explore(size, check, *DAMAGE)
