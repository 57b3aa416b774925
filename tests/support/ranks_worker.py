"""What torchrun starts for tests/support/ranks.py: `ranks_worker.py FOLDER`."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def main() -> None:
    sys.path[:0] = [str(TESTS.parent), str(TESTS)]
    from support.ranks import work

    work(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
