"""Does affine tuning change what a run has over another? `python tests/plain_gap.py ENTRY CONTROL`.

Both are folders of board entries with linear and affine cells. Prints the gap with linear heads and
the one with affine tuning, in points, and the change between them, over the episodes that all
cells have: one observation is an episode number, its mean over the columns. Nothing of fsbench is
imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

ADAPTATIONS = ("linear", "affine")


def accuracies(records: Path) -> dict[int, float]:
    """Episode number -> percent of its queries that were right: bits, padded with zeros."""
    table = pq.read_table(records)
    queries = int(table.schema.metadata[b"n_way"]) * int(table.schema.metadata[b"n_query"])
    numbers, packed = table["index"].to_pylist(), table["correct"].to_pylist()
    right = [np.unpackbits(np.frombuffer(bits, np.uint8)).sum() for bits in packed]
    return {number: 100 * float(n) / queries for number, n in zip(numbers, right, strict=True)}


def columns(entry: Path, adaptation: str) -> dict[str, dict[int, float]]:
    """eurosat 5w1s ibm-32px -> its episodes."""
    files = sorted(entry.glob(f"*/*/*/*-{adaptation}-*.parquet"))
    return {column(file, adaptation): accuracies(file) for file in files}


def column(file: Path, adaptation: str) -> str:
    shape, _, track = file.stem.rpartition("-")[0].partition(f"-{adaptation}-")
    return f"{file.parent.name} {shape} {track}"


def gaps(entry: Path, control: Path) -> dict[str, NDArray[np.float64]]:
    """Adaptation -> a gap in points for each of the episodes that all cells of both have."""
    ours, theirs = ({a: columns(e, a) for a in ADAPTATIONS} for e in (entry, control))
    held = [*ours.values(), *theirs.values()]
    names = sorted(set.intersection(*(set(part) for part in held)))
    if not names:
        raise SystemExit(f"{entry} and {control} have no column by {' and '.join(ADAPTATIONS)}")
    numbers = sorted(set.intersection(*(set(part[name]) for part in held for name in names)))
    return {
        a: np.mean([[ours[a][c][n] - theirs[a][c][n] for n in numbers] for c in names], axis=0)
        for a in ADAPTATIONS
    }


def main(entry: Path, control: Path) -> None:
    found = gaps(entry, control)
    linear, affine = found["linear"], found["affine"]
    for what, gap in {**found, "change": affine - linear}.items():
        half = 1.96 * gap.std(ddof=1) / len(gap) ** 0.5
        print(f"{what} {gap.mean():+.2f} ± {half:.2f} over {len(gap)} episodes of every column")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
