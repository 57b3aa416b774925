"""Toy target: figures whose rim is set off by an inner ring; made in memory."""

from pathlib import Path

from fsbench.core.specs import Pool
from fsbench.data.toy import Style, ToyTarget, target_pairs, toy_facts, toy_target

STYLE = Style(rim=True)
FACTS = toy_facts("toy_rims", "Toy: figures with a rim", target_pairs()[:8], 40)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> ToyTarget:
    """Return all images; folder and splits are not used."""
    return toy_target(FACTS, STYLE, pool)
