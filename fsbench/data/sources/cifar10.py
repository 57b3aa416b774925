"""CIFAR-10: ten classes of small photographs.

The official test images are for validation: the experiments on it state no other part.
"""

from pathlib import Path

from fsbench.core.schema import DatasetFacts
from fsbench.data.catalog import Archive
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import list_cifar

CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
TEST = ("test_batch.bin",)
FACTS = DatasetFacts(
    name="cifar10",
    title="CIFAR-10",
    domain="source",
    classes=CLASSES,
    images_per_class=(5000,) * 10,
    label_rule="class id = the label of the binary version; the 10,000 test images are for "
    "validation",
    dropped="nothing",
    layout="cifar-10-batches-bin/data_batch_{1..5}.bin and test_batch.bin",
    folders=("cifar10", "cifar-10-batches-bin"),
    aliases=("cifar-10",),
    download="fsbench data download cifar10 --data ROOT",
    license="none stated",
    citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
)
ARCHIVES = (
    Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
    ),
)


def load(folder: Path, cache: Path) -> SourceListing:
    """Load CIFAR-10 below `folder`. Raises DataError for missing or damaged files."""
    return list_cifar(FACTS, folder, "cifar-10-batches-bin", (TRAIN, TEST))
