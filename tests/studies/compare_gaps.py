"""Compare the gap of two entries with linear heads to their gap with affine tuning.

    python tests/studies/compare_gaps.py ENTRY CONTROL

Both are folders of board entries with linear and affine results. The script prints both gaps and
the change between them, in points, over the episodes that all results have. One observation is an
episode number: its mean over the columns. The script imports nothing of fsbench.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

ADAPTATIONS = ("linear", "affine")


def accuracies(records: Path) -> dict[int, float]:
    """Return the accuracy in percent of each episode by its number.

    The records hold one bit a query, padded with zeros.
    """
    table = pq.read_table(records)
    queries = int(table.schema.metadata[b"n_way"]) * int(table.schema.metadata[b"n_query"])
    numbers, packed = table["index"].to_pylist(), table["correct"].to_pylist()
    right = [np.unpackbits(np.frombuffer(bits, np.uint8)).sum() for bits in packed]
    return {number: 100 * float(n) / queries for number, n in zip(numbers, right, strict=True)}


def columns(entry: Path, adaptation: str) -> dict[str, dict[int, float]]:
    """Return the accuracies of each column, such as `eurosat 5w1s ibm-32px`."""
    files = sorted(entry.glob(f"*/*/*/*-{adaptation}-*.parquet"))
    return {column(file, adaptation): accuracies(file) for file in files}


def column(file: Path, adaptation: str) -> str:
    shape, _, track = file.stem.rpartition("-")[0].partition(f"-{adaptation}-")
    return f"{file.parent.name} {shape} {track}"


def gaps(entry: Path, control: Path) -> dict[str, NDArray[np.float64]]:
    """Return the gaps in points of each adaptation, one for every episode that all results have."""
    ours, theirs = ({a: columns(e, a) for a in ADAPTATIONS} for e in (entry, control))
    results = [*ours.values(), *theirs.values()]
    names = sorted(set.intersection(*(set(part) for part in results)))
    if not names:
        raise SystemExit(f"{entry} and {control} have no column by {' and '.join(ADAPTATIONS)}")
    numbers = sorted(set.intersection(*(set(part[name]) for part in results for name in names)))
    return {
        a: np.mean([[ours[a][c][n] - theirs[a][c][n] for n in numbers] for c in names], axis=0)
        for a in ADAPTATIONS
    }


def main(entry: Path, control: Path) -> None:
    points = gaps(entry, control)
    for what, gap in {**points, "change": points["affine"] - points["linear"]}.items():
        half = 1.96 * gap.std(ddof=1) / len(gap) ** 0.5
        print(f"{what} {gap.mean():+.2f} ± {half:.2f} over {len(gap)} episodes of every column")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
