"""Compare the gap of two entries with linear heads to their gap with affine tuning.

    PYTHONPATH=tests python -m studies.compare_gaps ENTRY CONTROL

Both are folders of board entries with linear and affine results. The script prints both gaps and
the change between them, in points, over the episodes that all results have. One observation is an
episode number: its mean over seeds and columns. The script imports nothing of fsbench.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from studies.stored import read_results

ADAPTATIONS = ("linear", "affine")


def columns(entry: Path, adaptation: str) -> dict[str, dict[int, float]]:
    """Return the accuracies in percent by column, without the head, and number of the episode.

    They are means over the seeds that have an episode.
    """
    of_seeds: dict[str, dict[int, list[float]]] = {}
    for result in read_results(entry):
        if result.spec["adaptation"] == adaptation:
            column = of_seeds.setdefault(result.column.replace(f"/{adaptation}@", " "), {})
            for number, right in zip(result.numbers, result.correct, strict=True):
                column.setdefault(int(number), []).append(100 * float(right.mean()))
    return {
        name: {number: float(np.mean(seeds)) for number, seeds in column.items()}
        for name, column in of_seeds.items()
    }


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
