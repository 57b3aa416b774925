"""`make stress`: every fault with fixed seeds, then one table. QUICK=1 for two of each.

    PYTHONPATH=tests python -m stress [--seeds 20] [--others 5] [--only TEXT]

Exit code 1 if anything was lost, wrong, torn or did not survive.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from stress import damage, interruptions, surroundings  # noqa: F401 - they add their kinds
from stress.trials import KINDS, Kind, Trials


def list_faults() -> Iterator[tuple[Kind, str]]:
    for kind in KINDS:
        yield from ((kind, job) for job in kind.jobs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="kills and damages of each job")
    parser.add_argument("--others", type=int, default=5, help="of every other fault")
    parser.add_argument("--only", default="", help="faults whose name contains this")
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder:
        trials = Trials(Path(folder))
        for kind, job in list_faults():
            if options.only in f"{kind.title} {job}":
                started = time.monotonic()
                seeds = options.seeds if kind.is_frequent else options.others
                rows.append(row := kind.inject(trials, job, range(seeds)))
                taken = f"{time.monotonic() - started:.0f} s"
                print(f"{row.fault} {job}: {row.survived}/{row.injected}, {taken}", flush=True)
                print(*row.said, sep="\n", end="\n" if row.said else "")
    line = "{:24}{:14}{:>10}{:>10}{:>6}{:>7}{:>14}"
    print(
        "\n" + line.format("fault", "job", "injected", "survived", "lost", "wrong", "half-written")
    )
    for r in rows:
        print(line.format(r.fault, r.job, r.injected, r.survived, r.lost, r.wrong, r.torn))
    return 0 if all(row.is_whole or not row.injected for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
