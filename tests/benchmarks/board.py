"""How a board grows: `python -m benchmarks.board`; processor time and peak memory by stage.

Entries of 32 columns of 600 episodes and 75 queries. Every stage runs in a fresh process, whose
products of matrices use one thread: `read` reads and checks all entries, `rank` ranks those that
were read, `build` does both and writes the page. Nothing is cached. Of n log n the exponent is 1.23
from 50 to 100 entries and 1.15 from 400 to 1000; the paired tests, in `rank`, may take n for each
tier.
"""

import gc
import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks.pairing import (
    Use,
    in_fresh_processes,
    make_growth_row,
    make_parser,
    processor_seconds,
)

from fsbench.cli.main import COLLECTION
from fsbench.core.process import peak_memory
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


def measure(stage: str, folder: Path, entries: int) -> Use:
    """Return the processor seconds of a stage on so many entries, and the peak of its process."""
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
        return Use(processor_seconds() - started, peak_memory())


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--entries", type=int, nargs="+", default=SIZES)
    parser.add_argument("--board", type=Path, help="kept, and filled up where entries are missing")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    sizes = sorted(options.entries)
    with TemporaryDirectory() as temporary:
        folder = options.board or Path(temporary)
        fill(folder, sizes[-1])
        for stage in STAGES:
            uses = [in_fresh_processes(measure, (stage, folder, n), 1)[0] for n in sizes]
            row = make_growth_row(stage, sizes, uses)
            print(", ".join(f"{column} {value}" for column, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
