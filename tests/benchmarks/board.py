"""How a board grows: `python -m benchmarks.board`; processor time and peak memory by stage.

Entries of 32 columns of 600 episodes and 75 queries. Every stage runs in a fresh process, whose
products of matrices use one thread: `read` reads and checks all entries, `rank` ranks those that
were read, `build` does both and writes the page. Nothing is cached. Beside the seconds of a stage
stand the exponent of their growth since the size before (n log n is 1.23 from 50 to 100 entries,
1.15 from 400 to 1000; the paired tests, in `rank`, may take n for each tier) and the largest
resident memory of the process in MiB.
"""

import gc
import os
from functools import partial
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


def fill(folder: Path, entries: int) -> None:
    """Add what is missing to so many entries."""
    from support.site import write_board

    names = [f"entry-{i:04}" for i in range(entries)]
    write_board(folder, [name for name in names if not (folder / name).exists()])


def measure(stage: str, folder: Path, entries: int) -> tuple[float, float]:
    """Return the processor seconds of a stage on so many entries, and the peak in MiB."""
    gc.set_threshold(COLLECTION)  # as a command does
    board = Board.open(folder)
    names = board.names()[:entries]
    with patch.object(Board, "names", lambda self: names), TemporaryDirectory() as site:
        work = {
            "read": board.entries,
            "rank": partial(rank_tracks, board.file, board.entries() if stage == "rank" else ()),
            "build": partial(page.build_site, folder, Path(site)),
        }[stage]
        started = processor_seconds()
        work()
        return processor_seconds() - started, peak_resident_memory() / MEBIBYTE


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=SIZES)
    parser.add_argument("--board", type=Path, help="kept, and filled up where entries are missing")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    print(f"{'entries':>7}" + "".join(f"{stage:>7} s growth   MiB" for stage in STAGES))
    times: dict[str, dict[int, float]] = {stage: {} for stage in STAGES}
    with TemporaryDirectory() as temporary:
        folder = options.board or Path(temporary)
        for size in sorted(options.entries):
            fill(folder, size)
            row = f"{size:7}"
            for stage, by_size in times.items():
                ((by_size[size], peak),) = in_fresh_processes(measure, (stage, folder, size), 1)
                last = [*by_size][-2:]
                growth = (
                    fit_exponent(last, [by_size[n] for n in last]) if last[1:] else float("nan")
                )
                row += f"{by_size[size]:9.2f} {growth:6.2f} {peak:5.0f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
