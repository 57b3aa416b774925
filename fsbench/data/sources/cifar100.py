"""CIFAR-100: a hundred classes of small photographs.

The official test images are for validation: the experiments on it state no other part.
"""

from pathlib import Path

from fsbench.data.cards import read_card
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import list_cifar

TRAIN, TEST = ("train.bin",), ("test.bin",)
CARD = read_card("cifar100")
FACTS, ARCHIVES = CARD.facts, CARD.archives


def load(folder: Path, cache: Path) -> SourceListing:
    """Load CIFAR-100 below `folder`. Raises DataError for missing or damaged files."""
    return list_cifar(FACTS, folder, "cifar-100-binary", (TRAIN, TEST))
