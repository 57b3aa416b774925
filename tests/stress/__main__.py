"""`make stress`: every fault with fixed seeds, then one table. QUICK=1 for two of each.

    PYTHONPATH=tests python -m stress [--seeds 20] [--others 5] [--only TEXT]

Exit code 1 if anything was lost, wrong, torn or did not survive.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from stress import damage, interruptions, surroundings
from stress.jobs import JOBS
from stress.tally import Row, table
from stress.trial import Trials

EVALUATING = ("features", "episodes", "more episodes")


def plan(trials: Trials, seeds: int, others: int) -> Iterator[tuple[str, Callable[[], Row]]]:
    """(name, what makes its row) of every kind of fault."""
    many, some = range(seeds), range(others)
    for name in JOBS:
        yield f"kill {name}", lambda n=name: interruptions.kills(trials, n, many)
    for name in ("pretrain", "features", "episodes"):
        yield f"signal {name}", lambda n=name: interruptions.signals(trials, n, some)
    for name in JOBS:
        yield f"full {name}", lambda n=name: interruptions.full_disks(trials, n, some)
    for name in ("decode", "features", "episodes"):
        yield f"cache {name}", lambda n=name: damage.caches(trials, n, many)
    for name in ("pretrain", "features", "episodes"):
        yield f"unfinished {name}", lambda n=name: damage.unfinished(trials, n, many)
    for name in JOBS:
        yield f"two {name}", lambda n=name: surroundings.together(trials, n, some)
    for name in ("pretrain", "episodes", "build"):
        yield f"unwritable {name}", lambda n=name: surroundings.unwritable(trials, n, some)
    for name in surroundings.SMALL:
        yield f"tmpfs {name}", lambda n=name: surroundings.full_file_system(trials, n, many)
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
