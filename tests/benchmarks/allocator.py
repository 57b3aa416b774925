"""What keeping freed memory brings to extraction: `python -m benchmarks.allocator`.

Fresh processes, with the choice of fsbench/core/process.py and without it in turns, each extract
the same features; the table shows for both the median and the range of images a second, and the
page faults an image.
"""

import argparse
import resource
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from benchmarks.features import ROWS, Case
from benchmarks.pairing import seconds

from fsbench.core.process import keep_freed_memory


class Pace(NamedTuple):
    """Of one process: images a second, page faults an image."""

    images: float
    faults: float


def pace(number: int, keep: bool, threads: int) -> Pace:
    """Of three extractions after one, in this process."""
    if keep:
        keep_freed_memory()
    torch.set_num_threads(threads)
    with TemporaryDirectory() as folder:
        case = Case(ROWS[number], "cpu", Path(folder))
        case.ours()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        taken = median(seconds(case.ours) for _ in range(3))
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return Pace(case.images / taken, faults / (3 * case.images))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--processes", type=int, default=7, help="of each kind")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1], help="of features.py")
    options = parser.parse_args()
    for number in options.rows:
        turns = [
            (number, keep, options.threads) for _ in range(options.processes) for keep in (0, 1)
        ]
        with get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
            paces = fresh.starmap(pace, turns, chunksize=1)
        for name, part in (("default", paces[::2]), ("kept", paces[1::2])):
            rates = sorted(process.images for process in part)
            faults = median(process.faults for process in part)
            text = f"{ROWS[number].ref:>22} {ROWS[number].side:4} {name:>8} {median(rates):9.1f}"
            text += f" images/s ({rates[0]:.1f} to {rates[-1]:.1f}), {faults:.1f} faults an image"
            print(text, flush=True)
        gain = median(p.images for p in paces[1::2]) / median(p.images for p in paces[::2])
        print(f"{ROWS[number].ref:>22} {ROWS[number].side:4} kept against default: {gain:.2f}x")


if __name__ == "__main__":
    main()
