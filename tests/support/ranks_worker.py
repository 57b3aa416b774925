"""What torchrun starts for tests/support/ranks.py: `ranks_worker.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def main() -> None:
    # learn2learn installs a package `tests` of its own, which hides the folder of ours
    ours = ModuleType("tests")
    ours.__path__ = [str(HERE)]
    sys.modules["tests"] = ours
    sys.path.insert(0, str(HERE.parent))
    from tests.fakes_ranks import work

    work(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
