"""Run pieces of a block in parallel, and halve them when memory is too small.

Training steps of small heads are too short for several threads: waiting at the end of every product
costs more than it gains, and a hundred times more on a busy machine. So each piece runs on one
thread, which also makes its bits independent of --threads.

Bits depend on how many episodes share a forward pass, so this number follows from the shapes alone.
Where that many do not fit into memory, the number is halved as often as needed; the result records
the halvings and is never mixed with results of other halvings.
"""

import gc
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import torch

from fsbench.core.errors import FsbenchError

P = TypeVar("P")
R = TypeVar("R")


def run_side_by_side(work: Callable[[P], R], pieces: Sequence[P], device: str) -> list[R]:
    """Return work(piece) of every piece, in order; on a CPU, torch.get_num_threads() at a time."""
    threads = torch.get_num_threads()

    def work_alone(piece: P) -> R:
        torch.set_num_threads(1)
        return work(piece)

    workers = start_threads(os.getpid(), threads if device == "cpu" else 1)
    started = [workers.submit(work_alone, piece) for piece in pieces]
    try:
        return [piece.result() for piece in started]
    finally:
        for piece in started:
            piece.cancel()
        wait(started)
        torch.set_num_threads(threads)  # new threads take the number that was set last


@cache
def start_threads(process: int, number: int) -> ThreadPoolExecutor:
    """Return so many workers, which wait for pieces until the process ends.

    New threads for every block would cost as much as ten episodes at 1 shot. process: the one that
    starts them; a fork of it has none of its threads.
    """
    return ThreadPoolExecutor(number)


SMALLEST = 2
"""Smallest number of episodes per forward pass: a single one has other bits."""

T = TypeVar("T")


class OutOfMemory(FsbenchError):
    """A forward pass of `episodes` episodes does not fit into memory."""

    def __init__(self, episodes: int, pixels: int, device: str) -> None:
        self.episodes = episodes
        super().__init__(
            f"{episodes} episodes of {pixels} px do not fit into the memory of {device}",
            fix="give a smaller --input-size, or --device cpu",
        )


def halve_episodes(episodes: int, halvings: int) -> int:
    """Return the episodes per forward pass after `halvings` halvings, each of them rounded up."""
    return max(SMALLEST, -(-episodes >> halvings))


def retry_with_halvings(
    attempt: Callable[[int], T], say: Callable[[str], None], first: int = 0
) -> T:
    """Return attempt(halvings) for the fewest halvings (at least `first`) that memory allows.

    say: receives one line per halving. Raise OutOfMemory when not even SMALLEST episodes fit.
    """
    halvings = first
    while True:
        try:
            return attempt(halvings)
        except OutOfMemory as error:
            if error.episodes <= SMALLEST:
                raise
            say(f"{error.message}: starting again with {halve_episodes(error.episodes, 1)}")
        gc.collect()  # its networks may be in cycles
        halvings += 1
