"""How the C library keeps freed memory: a choice of the process, made by the `fsbench` command.

glibc may give the blocks of large activations back to the system as soon as a layer frees them, and
then has to ask for them again, page by page, for the next layer. Where its heap ends decides, so
that a network may be slower by a third in one process than in the next
(`tests/benchmarks/allocator.py`).
"""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""
KEPT, LARGEST = 256 * 2**20, 64 * 2**20
"""Bytes kept free at the end of the heap, and of the largest block that comes from it."""


def keep_freed_memory() -> bool:
    """Let this process reuse freed memory; False where the C library has no such choice."""
    try:
        choose = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return False
    return bool(choose(MMAP_THRESHOLD, LARGEST) and choose(TRIM_THRESHOLD, KEPT))
