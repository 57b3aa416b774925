"""Toy target: four figures per image, like aerial pictures; made in memory."""

from pathlib import Path

from fsbench.core.specs import Pool
from fsbench.data.toy import Style, ToyTarget, target_pairs, toy_facts, toy_target

STYLE = Style(tiles=2)
FACTS = toy_facts("toy_tiles", "Toy: many small figures", target_pairs()[8:], 40)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> ToyTarget:
    """Return all images; folder and splits are not used."""
    return toy_target(FACTS, STYLE, pool)
