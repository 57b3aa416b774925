"""Toy source: 20 pairs of shape and texture, made in memory; trains in seconds on a CPU."""

from functools import partial
from pathlib import Path

from PIL import Image

from fsbench.data.source import SourceImage, SourceListing
from fsbench.data.toy import Style, source_pairs, toy_facts, toy_image

STYLE = Style()
TRAIN, VAL = 150, 30
FACTS = toy_facts("toy_source", "Toy: source", source_pairs(), TRAIN)


def load(folder: Path, cache: Path) -> SourceListing:
    """Return 150 train and 30 validation images per class; folder and cache are not used."""
    train = [_sample(c, rank) for rank in range(TRAIN) for c in range(len(FACTS.classes))]
    val = [_sample(c, TRAIN + rank) for rank in range(VAL) for c in range(len(FACTS.classes))]
    return SourceListing(FACTS, train, val, stamp=None)


def _sample(label: int, rank: int) -> SourceImage:
    pair = FACTS.classes[label]
    return SourceImage(label, partial(_open, pair, rank))


def _open(pair: str, rank: int) -> Image.Image:
    return Image.fromarray(toy_image(FACTS.name, STYLE, pair, rank))
