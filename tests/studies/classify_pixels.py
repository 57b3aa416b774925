"""Classify images by 8 x 8 grey pixels and the nearest class mean.

    python tests/studies/classify_pixels.py EPISODES IMAGES

EPISODES: the file that `fsbench episodes export` wrote; IMAGES: the folder that the paths in it are
relative to. A query is assigned to the class whose mean support image is nearest. Nothing is
trained, so this is the accuracy of brightness and framing alone, a lower bound for a useful
backbone. The script imports nothing of fsbench.
"""

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 8


def accuracy(support: NDArray[np.float64], query: NDArray[np.float64], classes: int) -> float:
    """Return the fraction of the queries (classes * q, D) that are nearest to their class mean."""
    centers = support.reshape(classes, -1, support.shape[1]).mean(axis=1)
    nearest = ((query[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    return float(np.mean(nearest == np.arange(classes).repeat(len(query) // classes)))


def main(episodes: Path, images: Path) -> None:
    """Print the mean accuracy over the episodes and its 95 % interval."""

    @cache
    def read_pixels(name: str) -> NDArray[np.float64]:
        """Return the grey values (SIDE * SIDE,) in [0, 1]."""
        grey = Image.open(images / name).convert("L")
        return np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BILINEAR)).ravel() / 255

    accuracies = []
    for drawn in map(json.loads, episodes.read_text(encoding="utf8").splitlines()):
        support, query = (
            np.stack([read_pixels(name) for names in drawn[part] for name in names])
            for part in ("support", "query")
        )
        accuracies.append(accuracy(support, query, len(drawn["query"])))
    half = 1.96 * np.std(accuracies, ddof=1) / len(accuracies) ** 0.5
    print(f"{100 * np.mean(accuracies):.2f} ± {100 * half:.2f} over {len(accuracies)} episodes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
