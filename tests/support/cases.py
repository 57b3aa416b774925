"""Cases of tests that lie in files: tests/golden/NAME.yaml."""

from pathlib import Path
from typing import Any

from fsbench.core.io import read_table

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def read_cases(name: str) -> Any:
    """Return the content of a file of cases: lists of rows, by test where there are several."""
    return read_table(GOLDEN / f"{name}.yaml")
