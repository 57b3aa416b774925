"""Independent pieces of a block side by side: one core each, instead of all cores on each.

Training steps of small heads are too short to share: threads that meet at the end of every product
cost more than they give, and a hundred times more on a busy machine. One thread a piece also makes
the bits of a piece independent of --threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

P = TypeVar("P")
R = TypeVar("R")


def side_by_side(
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
