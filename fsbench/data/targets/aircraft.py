"""FGVC-Aircraft: 100 aircraft variants, with the official train and test lists.

The linear probe trains on `train` (3,334 images), as Table 3 of SEAL (CVPR 2023) counts them;
torchvision's default split is `trainval` (6,667).
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive, class_names
from fsbench.data.splits import (
    PARTS,
    UNREADABLE,
    ListedImage,
    assemble_official,
    find_inner_folder,
    missing_error,
)

BASE = "fgvc-aircraft-2013b"
"""The folder name that torchvision expects."""

VARIANTS = class_names("aircraft")

FACTS = DatasetFacts(
    name="aircraft",
    title="FGVC-Aircraft, variants",
    domain="target",
    classes=VARIANTS,
    images_per_class=(),
    split=(3334, 3333),
    label_rule="class id = line of the variant in variants.txt, counted from 0",
    dropped="the 3,333 official validation images",
    layout=f"{BASE}/data with images/<n>.jpg, variants.txt and images_variant_{{train,test}}.txt",
    folders=(BASE, "aircraft", "aircrafts", "fgvc_aircraft"),
    aliases=("fgvc-aircraft", "aircrafts", BASE),
    download="fsbench data download aircraft --data ROOT",
    license="non-commercial research",
    citation="Maji et al., Fine-Grained Visual Classification of Aircraft, arXiv:1306.5151",
    homepage="https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
)
ARCHIVES = (
    Archive(
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/fgvc-aircraft-2013b.tar.gz",
        "md5:d4acdd33327262359767eeaa97a4f732",
        hash_source="torchvision for R, dataset-fgvc.R (github.com/mlverse/torchvision)",
    ),
)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the train and test images below `folder`.

    Raises DataError for missing files and for files that are not the official ones.
    """
    base = find_inner_folder(folder, BASE, "data/images", FACTS)
    parts = [_part(base, part) for part in PARTS]
    return assemble_official(FACTS, folder, base / "data" / "images", parts, pool)


def _part(base: Path, part: str) -> list[ListedImage]:
    from torchvision.datasets import FGVCAircraft

    try:
        dataset = FGVCAircraft(base.parent, split=part, annotation_level="variant", download=False)
    except UNREADABLE as error:
        raise missing_error(
            base, f"variants.txt and a matching images_variant_{part}.txt", FACTS
        ) from error
    if tuple(dataset.classes) != VARIANTS:
        raise DataError(
            f"{base / 'data' / 'variants.txt'} is not the official file", fix=FACTS.download
        )
    pairs = zip(dataset._labels, dataset._image_files, strict=True)
    return [ListedImage(label, Path(path).name) for label, path in pairs]
