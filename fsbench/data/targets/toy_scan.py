"""Toy target: grey, low-contrast and noisy images, like X-rays; made in memory."""

from pathlib import Path

from fsbench.core.specs import Pool
from fsbench.data.toy import Style, ToyTarget, target_pairs, toy_facts, toy_target

STYLE = Style(colour=0.0, contrast=0.5, noise=0.06)
FACTS = toy_facts("toy_scan", "Toy: grey, faint and noisy scans", target_pairs()[1::2], 40)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> ToyTarget:
    """Return all images; folder and splits are not used."""
    return toy_target(FACTS, STYLE, pool)
