"""CIFAR-10: ten classes of small photographs.

The official test images are for validation: the experiments on it state no other part.
"""

from pathlib import Path

from fsbench.data.cards import read_card
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import list_cifar

TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
TEST = ("test_batch.bin",)
CARD = read_card("cifar10")
FACTS, ARCHIVES = CARD.facts, CARD.archives


def load(folder: Path, cache: Path) -> SourceListing:
    """Load CIFAR-10 below `folder`. Raises DataError for missing or damaged files."""
    return list_cifar(FACTS, folder, "cifar-10-batches-bin", (TRAIN, TEST))
