"""Toy target: new pairs of shape and texture in the style of the toy source; made in memory."""

from pathlib import Path

from fsbench.core.specs import Pool
from fsbench.data.toy import Style, ToyTarget, target_pairs, toy_facts, toy_target

STYLE = Style()
FACTS = toy_facts("toy_photo", "Toy: new shapes, style of the source", target_pairs()[0::2], 40)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> ToyTarget:
    """Return all images; folder and splits are not used."""
    return toy_target(FACTS, STYLE, pool)
