"""How a board grows: `python -m benchmarks.board`; time against entries, and peak memory.

Entries of 32 columns of 600 episodes and 75 queries. For every size two processes, whose products
of matrices use one thread: one reads the board and checks all of it, then ranks it; the other does
both and writes the page. Nothing is cached. Columns are seconds of processor time (and of the
clock), then the largest resident memory of each process. `growth` is the exponent of the processor
time between two sizes: n log n is 1.23 from 50 to 100 entries, 1.15 from 400 to 1000; the paired
tests, in `rank`, may take n for each tier.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks.pairing import fit_exponent

from fsbench.core.process import peak_resident_memory
from leaderboard.site import page
from leaderboard.store import Board
from leaderboard.tables import rank_tracks

SIZES = (50, 100, 200, 400, 1000)
STAGES = {"show": ("read", "rank"), "build": ("build",)}
Seconds = dict[str, tuple[float, float]]
"""Stage -> seconds of the processor, seconds of the clock."""


def make(folder: Path, entries: int) -> None:
    """Add what is missing to so many entries."""
    from support import board as fakes_board

    names = [f"entry-{i:04}" for i in range(entries)]
    fakes_board.board(folder, [name for name in names if not (folder / name).exists()])


@contextmanager
def timed(seconds: Seconds, stage: str) -> Iterator[None]:
    busy, clock = busy_seconds(), time.perf_counter()
    yield
    seconds[stage] = (busy_seconds() - busy, time.perf_counter() - clock)


def busy_seconds() -> float:
    """Processor time of this process and of those it started that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def show(folder: Path, seconds: Seconds) -> None:
    board = Board.open(folder)
    with timed(seconds, "read"):
        entries = board.entries()
    with timed(seconds, "rank"):
        rank_tracks(board.file, entries)


def build(folder: Path, seconds: Seconds) -> None:
    with TemporaryDirectory(prefix="fsbench-") as site, timed(seconds, "build"):
        written = page.build_site(folder, Path(site))
        print(f"{written.stat().st_size / 1e6:.1f} MB of page", file=sys.stderr)


def run(stage: str, folder: Path, entries: int) -> None:
    """One stage over the first so many entries; what it took goes to stdout as JSON."""
    names, seconds = Board.open(folder).names()[:entries], dict[str, tuple[float, float]]()
    with patch.object(Board, "names", lambda self: names):
        {"show": show, "build": build}[stage](folder, seconds)
    print(json.dumps({"seconds": seconds, "peak": peak_resident_memory() / 2**20}))


def measure(folder: Path, entries: int) -> tuple[Seconds, list[float]]:
    """Seconds of every stage, peak MiB of each process."""
    seconds: Seconds = {}
    peaks: list[float] = []
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for stage in STAGES:
        command = [sys.executable, __file__, "--entries", str(entries), "--board", str(folder)]
        ended = subprocess.run([*command, "--stage", stage], env=env, stdout=-1, check=True)
        report = json.loads(ended.stdout)
        seconds |= report["seconds"]
        peaks.append(report["peak"])
    return seconds, peaks


def table(folder: Path, sizes: list[int]) -> None:
    stages = [stage for group in STAGES.values() for stage in group]
    print(f"{'entries':>7}" + "".join(f"{stage:>18} growth" for stage in stages) + "   peak MiB")
    before: tuple[int, Seconds] | None = None
    for size in sorted(sizes):
        make(folder, size)
        seconds, peaks = measure(folder, size)
        row = f"{size:7}"
        for stage in stages:
            busy, clock = seconds[stage]
            row += f"{busy:9.2f} ({clock:6.1f}) {growth(before, size, stage, busy):>6}"
        print(f"{row}   {', '.join(f'{peak:.0f}' for peak in peaks)}", flush=True)
        before = size, seconds


def growth(before: tuple[int, Seconds] | None, size: int, stage: str, busy: float) -> str:
    """The exponent k of time ~ n^k since the size before."""
    if before is None:
        return "-"
    return f"{fit_exponent((before[0], size), (before[1][stage][0], busy)):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--entries", type=int, nargs="+", default=SIZES)
    parser.add_argument("--board", type=Path, help="kept, and filled up where entries are missing")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        run(options.stage, options.board, options.entries[0])
        return
    with TemporaryDirectory(prefix="fsbench-") as folder:
        table(options.board or Path(folder), options.entries)


if __name__ == "__main__":
    main()
