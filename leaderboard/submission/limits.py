"""How much one submission may hold: far more than anyone evaluates, far less than memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import ValidationFailed
from fsbench.core.records import columns
from fsbench.results.rules import Loaded

MAX_RESULTS = 5000
MAX_FILE_BYTES = 256 * 2**20
"""Bytes of all results on disk; one takes about 30 kB with its records."""
MAX_OUTCOMES = 2**30
"""Bytes of all outcomes in memory, a byte a query."""
FIX = "submit the results of one model, without what belongs to no column of the board"


def require_few(files: Sequence[Path]) -> None:
    """Raises ValidationFailed for more result files, or larger ones, than are read."""
    both = [path for file in files for path in (file, file.with_suffix(".parquet"))]
    size = sum(path.stat().st_size for path in both if path.is_file())
    if len(files) > MAX_RESULTS or size > MAX_FILE_BYTES:
        raise ValidationFailed(
            f"{len(files)} results of {size} bytes, allowed are {MAX_RESULTS} and {MAX_FILE_BYTES}",
            fix=FIX,
        )


class Budget:
    """Counts the memory that outcomes take."""

    def __init__(self) -> None:
        self.taken = 0

    def take(self, cell: Loaded) -> Loaded:
        """The cell itself. Raises ValidationFailed when all of them are too large."""
        self.taken += sum(values.nbytes for values in columns(cell.records).values())
        if self.taken > MAX_OUTCOMES:
            raise ValidationFailed(f"outcomes of more than {MAX_OUTCOMES} bytes", fix=FIX)
        return cell
