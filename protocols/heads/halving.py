"""What to do where a forward pass does not fit into memory: half of it, by a stated rule.

Bits depend on how many episodes share a forward pass, so that number follows from the shapes alone
(design.md 5). Where so many do not fit, it is halved as often as need be; whoever computes with
halves says so in the result and mixes them with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fsbench.core.errors import FsbenchError

SMALLEST = 2
"""Episodes of the smallest forward pass: one alone has other bits."""

T = TypeVar("T")


class OutOfMemory(FsbenchError):
    """So many episodes did not fit. Those of SMALLEST cannot be halved any more."""

    def __init__(self, episodes: int, pixels: int, device: str) -> None:
        self.episodes = episodes
        super().__init__(
            f"{episodes} episodes of {pixels} px do not fit into the memory of {device}",
            fix="give a smaller --input-size, or --device cpu",
        )


def halved(episodes: int, halvings: int) -> int:
    """Episodes of a forward pass after so many halvings."""
    return max(SMALLEST, episodes >> halvings)


def in_halves(attempt: Callable[[int], T], say: Callable[[str], None], first: int = 0) -> T:
    """attempt(halvings) with as few halvings as memory allows, `first` or more; says each.

    Raises OutOfMemory when not even SMALLEST episodes fit.
    """
    halvings = first
    while True:
        try:
            return attempt(halvings)
        except OutOfMemory as error:
            if error.episodes <= SMALLEST:
                raise
            say(f"{error.message}: starting again with {halved(error.episodes, 1)}")
        halvings += 1
