"""CIFAR-100: a hundred classes of small photographs.

The official test images are for validation: the experiments on it state no other part.
"""

from pathlib import Path

from fsbench.core.schema import DatasetFacts
from fsbench.data.catalog import Archive, class_names
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import list_cifar

TRAIN, TEST = ("train.bin",), ("test.bin",)
FACTS = DatasetFacts(
    name="cifar100",
    title="CIFAR-100",
    domain="source",
    classes=class_names("cifar100"),
    images_per_class=(500,) * 100,
    label_rule="class id = the fine label of the binary version; the 10,000 test images are for "
    "validation",
    dropped="the coarse labels",
    layout="cifar-100-binary/train.bin and test.bin",
    folders=("cifar100", "cifar-100-binary"),
    aliases=("cifar-100",),
    download="fsbench data download cifar100 --data ROOT",
    license="none stated",
    citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
)
ARCHIVES = (
    Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    ),
)


def load(folder: Path, cache: Path) -> SourceListing:
    """Load CIFAR-100 below `folder`. Raises DataError for missing or damaged files."""
    return list_cifar(FACTS, folder, "cifar-100-binary", (TRAIN, TEST))
