"""FGVC-Aircraft: 100 aircraft variants, with the official train and test lists.

Fine-Grained Visual Classification of Aircraft. S. Maji et al., 2013,
https://arxiv.org/abs/1306.5151
Publisher: https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/
Licence: non-commercial research.
Layout: fgvc-aircraft-2013b/data/ with images/<n>.jpg, variants.txt and
images_variant_{train,test}.txt; read through torchvision's FGVCAircraft.

The linear probe trains on `train` (3,334 images), as Table 3 of SEAL (CVPR 2023) counts them;
torchvision's default split is `trainval` (6,667).
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive
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

VARIANTS = (
    "707-320", "727-200", "737-200", "737-300", "737-400", "737-500", "737-600", "737-700",
    "737-800", "737-900", "747-100", "747-200", "747-300", "747-400", "757-200", "757-300",
    "767-200", "767-300", "767-400", "777-200", "777-300", "A300B4", "A310", "A318", "A319", "A320",
    "A321", "A330-200", "A330-300", "A340-200", "A340-300", "A340-500", "A340-600", "A380",
    "ATR-42", "ATR-72", "An-12", "BAE 146-200", "BAE 146-300", "BAE-125", "Beechcraft 1900",
    "Boeing 717", "C-130", "C-47", "CRJ-200", "CRJ-700", "CRJ-900", "Cessna 172", "Cessna 208",
    "Cessna 525", "Cessna 560", "Challenger 600", "DC-10", "DC-3", "DC-6", "DC-8", "DC-9-30",
    "DH-82", "DHC-1", "DHC-6", "DHC-8-100", "DHC-8-300", "DR-400", "Dornier 328", "E-170", "E-190",
    "E-195", "EMB-120", "ERJ 135", "ERJ 145", "Embraer Legacy 600", "Eurofighter Typhoon",
    "F-16A/B", "F/A-18", "Falcon 2000", "Falcon 900", "Fokker 100", "Fokker 50", "Fokker 70",
    "Global Express", "Gulfstream IV", "Gulfstream V", "Hawk T1", "Il-76", "L-1011", "MD-11",
    "MD-80", "MD-87", "MD-90", "Metroliner", "Model B200", "PA-28", "SR-20", "Saab 2000",
    "Saab 340", "Spitfire", "Tornado", "Tu-134", "Tu-154", "Yak-42",
)  # fmt: skip

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
