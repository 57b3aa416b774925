"""How a board grows: `python -m benchmarks.board`; time against entries, and peak memory.

Entries of 32 columns of 600 episodes and 75 queries. For every size two processes, whose products
of matrices use one thread: one reads the board and checks all of it, then ranks it; the other does
both and writes the page. Nothing is cached. Columns are seconds of processor time (and of the
clock), then the largest resident memory of each process. `growth` is the exponent of the processor
time between two sizes: n log n is 1.23 from 50 to 100 entries, 1.15 from 400 to 1000; the paired
tests, in `rank`, may take n for each tier.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks.pairing import (
    MEBIBYTE,
    fit_exponent,
    in_fresh_processes,
    make_parser,
    processor_seconds,
)

from fsbench.cli.main import COLLECTION
from fsbench.core.process import peak_resident_memory
from leaderboard.site import page
from leaderboard.store import Board
from leaderboard.tables import rank_tracks

SIZES = (50, 100, 200, 400, 1000)
STAGES = ("read", "rank", "build")
Seconds = dict[str, tuple[float, float]]
"""Stage -> seconds of the processor, seconds of the clock."""


def make(folder: Path, entries: int) -> None:
    """Add what is missing to so many entries."""
    from support.site import write_board

    names = [f"entry-{i:04}" for i in range(entries)]
    write_board(folder, [name for name in names if not (folder / name).exists()])


@contextmanager
def timed(seconds: Seconds, stage: str) -> Iterator[None]:
    busy, clock = processor_seconds(), time.perf_counter()
    yield
    seconds[stage] = (processor_seconds() - busy, time.perf_counter() - clock)


def show(folder: Path, seconds: Seconds) -> None:
    board = Board.open(folder)
    with timed(seconds, "read"):
        entries = board.entries()
    with timed(seconds, "rank"):
        rank_tracks(board.file, entries)


def build(folder: Path, seconds: Seconds) -> None:
    with TemporaryDirectory(prefix="fsbench-") as site, timed(seconds, "build"):
        page.build_site(folder, Path(site))


def measure(
    work: Callable[[Path, Seconds], None], folder: Path, entries: int
) -> tuple[Seconds, float]:
    """Return the seconds of the stages of some work on so many entries, and the peak in MiB."""
    gc.set_threshold(COLLECTION)  # as a command does
    names, seconds = Board.open(folder).names()[:entries], Seconds()
    with patch.object(Board, "names", lambda self: names):
        work(folder, seconds)
    return seconds, peak_resident_memory() / MEBIBYTE


def print_table(folder: Path, sizes: list[int]) -> None:
    print(f"{'entries':>7}" + "".join(f"{stage:>18} growth" for stage in STAGES) + "   peak MiB")
    history: list[tuple[int, Seconds]] = []
    for size in sorted(sizes):
        make(folder, size)
        taken = [in_fresh_processes(measure, (work, folder, size), 1)[0] for work in (show, build)]
        history.append((size, taken[0][0] | taken[1][0]))
        row = f"{size:7}"
        for stage in STAGES:
            busy, clock = history[-1][1][stage]
            row += f"{busy:9.2f} ({clock:6.1f}) {format_growth(history, stage):>6}"
        print(f"{row}   {', '.join(f'{peak:.0f}' for _, peak in taken)}", flush=True)


def format_growth(history: list[tuple[int, Seconds]], stage: str) -> str:
    """Return the exponent k of time ~ n^k between the last two sizes."""
    if len(history) < 2:
        return "-"
    sizes, times = zip(*((size, seconds[stage][0]) for size, seconds in history[-2:]), strict=True)
    return f"{fit_exponent(sizes, times):.2f}"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=SIZES)
    parser.add_argument("--board", type=Path, help="kept, and filled up where entries are missing")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with TemporaryDirectory(prefix="fsbench-") as folder:
        print_table(options.board or Path(folder), options.entries)


if __name__ == "__main__":
    main()
