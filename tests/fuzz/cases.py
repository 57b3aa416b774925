"""How a fuzz test draws and counts: few cases in every run, two thousand where `slow` is asked for.

A case ends in one of two ways: what was given is taken, or refused by an FsbenchError that names it
and says how to mend it. Any other exception fails the test, and so does a refusal of the wrong
kind.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from fsbench.core.errors import FsbenchError

T = TypeVar("T")

QUICK, FULL = 30, 2000
SIZES = pytest.mark.parametrize(
    "size", [QUICK, pytest.param(FULL, marks=pytest.mark.slow)], ids=["quick", "full"]
)


class Tally:
    """Cases of one kind of input, by how they ended."""

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()

    def attempt(
        self, action: Callable[[], T], refusal: type[FsbenchError], named: str = ""
    ) -> T | None:
        """What the action gives; None where it is refused, by that error, about what is named."""
        try:
            value = action()
            self.ended["taken"] += 1
            return value
        except refusal as error:
            refused = error
        assert "fix: " in str(refused), refused
        assert named in refused.message, refused
        self.ended["refused"] += 1
        return None

    def explore(
        self, size: int, check: Callable[..., None], *strategies: SearchStrategy[Any]
    ) -> None:
        """Check `size` cases that are the same in every run, some taken and some refused."""
        drawn = settings(
            max_examples=size,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        drawn(given(*strategies)(check))()
        assert sum(self.ended.values()) >= size, f"only {dict(self.ended)} of {size} cases"
        assert min(self.ended["taken"], self.ended["refused"]) > 0, self.ended
