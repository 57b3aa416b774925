"""Toy target: grey, low-contrast and noisy images, like X-rays; made in memory."""

from __future__ import annotations

from pathlib import Path

from fsbench.core.specs import Pool
from fsbench.data.toy import Style, pairs_of_targets
from fsbench.data.toy_sets import ToyTarget, toy_facts, toy_target

STYLE = Style(colour=0.0, contrast=0.5, noise=0.06)
FACTS = toy_facts("toy_scan", "Toy: grey, faint and noisy scans", pairs_of_targets()[1::2], 40)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> ToyTarget:
    """Return all images; folder and splits are not used."""
    return toy_target(FACTS, STYLE, pool)
