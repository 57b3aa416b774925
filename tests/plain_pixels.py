"""What an image of 8 x 8 grey pixels tells: `python tests/plain_pixels.py EPISODES IMAGES`.

EPISODES: what `fsbench episodes export` wrote; IMAGES: the folder that its paths are below. A query
belongs to the class whose mean support image is nearest. Nothing of fsbench is imported and nothing
is trained, so a backbone that stays below tells less than where an image is bright.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 8


def thumbnail(path: Path) -> NDArray[np.float64]:
    """Grey values (SIDE * SIDE,) in [0, 1]."""
    grey = Image.open(path).convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(grey, np.float64).ravel() / 255


def accuracy(support: NDArray[np.float64], query: NDArray[np.float64], classes: int) -> float:
    """Fraction of the queries (classes * q, D) nearest to their class's mean of the support."""
    centers = support.reshape(classes, -1, support.shape[1]).mean(axis=1)
    nearest = ((query[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    return float(np.mean(nearest == np.arange(classes).repeat(len(query) // classes)))


def main(episodes: Path, images: Path) -> None:
    """Prints the mean over the episodes and its 95 % interval."""
    known: dict[str, NDArray[np.float64]] = {}

    def pixels(classes: list[list[str]]) -> NDArray[np.float64]:
        names = [name for members in classes for name in members]
        known.update({n: thumbnail(images / n) for n in names if n not in known})
        return np.stack([known[name] for name in names])

    drawn = [json.loads(line) for line in episodes.read_text(encoding="utf8").splitlines()]
    found = [accuracy(pixels(e["support"]), pixels(e["query"]), len(e["query"])) for e in drawn]
    half = 1.96 * np.std(found, ddof=1) / len(found) ** 0.5
    print(f"{100 * np.mean(found):.2f} ± {100 * half:.2f} over {len(found)} episodes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
