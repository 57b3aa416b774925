"""The harness of tests/stress is a package of its own, `stress`, for its forked processes too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
