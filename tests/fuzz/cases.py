"""How a fuzz test draws and counts: few cases in every run, two thousand where `slow` is asked for.

A case ends in one of two ways: an input is taken, or refused by an FsbenchError that names it and
says how to mend it. Any other exception fails the test, and so does a refusal of the wrong kind.
"""

from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fsbench.backbones import load_backbone
from fsbench.backbones.base import Backbone
from fsbench.core.errors import CheckpointError, FsbenchError

T = TypeVar("T")

QUICK, FULL = 30, 2000
SIZES = pytest.mark.parametrize(
    "size", [QUICK, pytest.param(FULL, marks=pytest.mark.slow)], ids=["quick", "full"]
)
ARCH = "fsbench/toy_resnet"
DAMAGES: dict[str, Callable[[bytes, int, bytes], bytes]] = {
    "as it is": lambda data, at, more: data,
    "cut": lambda data, at, more: data[:at],
    "without its start": lambda data, at, more: data[at + 1 :],
    "changed": lambda data, at, more: (
        data[:at] + bytes([data[at] ^ (1 + more[0] % 255)]) + data[at + 1 :]
    ),
    "less": lambda data, at, more: data[:at] + data[at + 1 :],
    "more": lambda data, at, more: data[:at] + more + data[at:],
    "zeros": lambda data, at, more: data[:at] + bytes(len(data) - at),
    "behind": lambda data, at, more: data + more,
    "other": lambda data, at, more: more,
}
"""What a transfer, a disk or a stranger may do to a file, at some position with some bytes."""
POSITIONS = st.integers(0, 2**20)
DAMAGE = st.sampled_from([*DAMAGES]), POSITIONS, st.binary(min_size=1, max_size=40)


def nest(leaves: SearchStrategy[Any], keys: SearchStrategy[str]) -> SearchStrategy[Any]:
    """Leaves, and short lists and mappings of them."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
        max_leaves=6,
    )


def damage(data: bytes, how: str, position: int, more: bytes) -> bytes:
    return DAMAGES[how](data, position % len(data), more)


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

    def load(self, path: Path) -> Backbone | None:
        """The backbone of a checkpoint; None where it is refused."""
        return self.attempt(lambda: load_backbone(str(path), arch=ARCH), CheckpointError, str(path))

    def explore(
        self,
        size: int,
        check: Callable[..., None],
        *strategies: SearchStrategy[Any],
        ends: Collection[str] = ("taken", "refused"),
    ) -> None:
        """Check `size` cases that are the same in every run; some end in each of these ways."""
        drawn = settings(
            max_examples=size,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        drawn(given(*strategies)(check))()
        assert sum(self.ended.values()) >= size, f"only {dict(self.ended)} of {size} cases"
        assert {*ends} <= {*self.ended}, self.ended
