"""Run pieces of a block in parallel, and halve them when memory is too small.

Training steps of small heads are too short for several threads: waiting at the end of every product
costs more than it gains, and a hundred times more on a busy machine. So each piece runs on one
thread, which also makes its bits independent of --threads.

Bits depend on how many episodes share a forward pass, so this number follows from the shapes alone.
Where that many do not fit into memory, the number is halved as often as needed; the result records
the halvings and is never mixed with results of other halvings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from fsbench.core.errors import FsbenchError

P = TypeVar("P")
R = TypeVar("R")


def run_side_by_side(
    work: Callable[[P], R], pieces: Sequence[P], device: str, shared: bool = False
) -> list[R]:
    """work(piece) for every piece, in order; on a CPU as many at a time as torch has threads.

    shared: with fewer pieces than threads, each gets an equal share of them instead of one; its
    bits then depend on --threads, as those of features do.
    """
    threads = torch.get_num_threads()
    workers = threads if device == "cpu" else 1
    each = max(1, threads // len(pieces)) if shared else 1
    try:
        with ThreadPoolExecutor(
            workers, initializer=torch.set_num_threads, initargs=(each,)
        ) as pool:
            return list(pool.map(work, pieces))
    finally:
        torch.set_num_threads(threads)


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


def halve(episodes: int, halvings: int) -> int:
    """Episodes of a forward pass after so many halvings."""
    return max(SMALLEST, episodes >> halvings)


def retry_with_halvings(
    attempt: Callable[[int], T], say: Callable[[str], None], first: int = 0
) -> T:
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
            say(f"{error.message}: starting again with {halve(error.episodes, 1)}")
        halvings += 1
