"""Toy source: 20 pairs of shape and texture, made in memory; trains in seconds on a CPU."""

from functools import partial
from pathlib import Path

from PIL import Image

from fsbench.data.source import SourceImage, SourceListing
from fsbench.data.toy import SOURCE_PAIRS, Style, toy_facts, toy_image

STYLE = Style()
TRAIN, VAL = 150, 30
FACTS = toy_facts("toy_source", "Toy: source", SOURCE_PAIRS, TRAIN)
PAIRS = tuple(enumerate(FACTS.classes))


def load(folder: Path, cache: Path) -> SourceListing:
    """Return 150 train and 30 validation images per class; folder and cache are not used."""
    train, val = (
        [SourceImage(c, partial(_open, pair, n)) for n in ranks for c, pair in PAIRS]
        for ranks in (range(TRAIN), range(TRAIN, TRAIN + VAL))
    )
    return SourceListing(FACTS, train, val, stamp=None)


def _open(pair: str, rank: int) -> Image.Image:
    return Image.fromarray(toy_image(FACTS.name, STYLE, pair, rank))
