"""`make stress`: every fault with fixed seeds, then one table. QUICK=1 for two of each.

    PYTHONPATH=tests python -m stress [--seeds 20] [--others 5] [--only TEXT]

Exit code 1 if anything was lost, wrong, torn or did not survive.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from stress import damage, interruptions, surroundings
from stress.jobs import JOBS
from stress.tally import Row, table
from stress.trial import Kind, Trials

KINDS: tuple[tuple[str, Kind, tuple[str, ...], bool], ...] = (
    ("kill", interruptions.kills, tuple(JOBS), True),
    ("signal", interruptions.signals, ("pretrain", "features", "episodes"), False),
    ("full", interruptions.full_disks, tuple(JOBS), False),
    ("cache", damage.caches, ("decode", "features", "episodes"), True),
    ("unfinished", damage.unfinished, ("pretrain", "features", "episodes"), True),
    ("two", surroundings.together, tuple(JOBS), False),
    ("unwritable", surroundings.unwritable, ("pretrain", "episodes", "build"), False),
    ("tmpfs", surroundings.full_file_system, tuple(surroundings.SMALL), True),
)
"""Name, fault, jobs, and whether it is injected as often as kills are."""


def plan(trials: Trials, seeds: int, others: int) -> Iterator[tuple[str, Callable[[], Row]]]:
    """(name, what makes its row) of every kind of fault."""
    many, some = range(seeds), range(others)
    for fault, inject, jobs, is_frequent in KINDS:
        for job in jobs:
            yield f"{fault} {job}", partial(inject, trials, job, many if is_frequent else some)
    yield "changed", lambda: surroundings.changed_images(trials, some)
    yield "diverging", lambda: surroundings.diverging(trials, some)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="kills and damages of each job")
    parser.add_argument("--others", type=int, default=5, help="of every other fault")
    parser.add_argument("--only", default="", help="faults whose name contains this")
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder:
        trials = Trials(Path(folder))
        for name, make in plan(trials, options.seeds, options.others):
            if options.only in name:
                started = time.monotonic()
                rows.append(make())
                seconds = time.monotonic() - started
                print(
                    f"{name}: {rows[-1].survived}/{rows[-1].injected}, {seconds:.0f} s", flush=True
                )
                print(*rows[-1].said, sep="\n", end="\n" if rows[-1].said else "")
    print(f"\n{table(rows)}")
    return 0 if all(row.whole or not row.injected for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
