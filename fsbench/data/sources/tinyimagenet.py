"""TinyImageNet: 200 classes of ImageNet at 64 px, the pretraining source of SEAL.

Tiny ImageNet Visual Recognition Challenge. Y. Le, X. Yang, CS 231N, Stanford 2015.
Publisher: http://cs231n.stanford.edu
Licence: a part of ImageNet, non-commercial research and education.
Layout: wnids.txt, train/<wnid>/images/*.JPEG, val/images/*.JPEG and val/val_annotations.txt; or
parquet files train-*.parquet and val-*.parquet with the columns image and label.

Label ids are the line order of wnids.txt, as in the official code of SEAL. The order of sorted
wnids, used by torchvision's ImageFolder and by the copies on the Hugging Face hub, gives other ids,
so the head of such a checkpoint needs a permutation.
"""

from collections import Counter
from functools import partial
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.data.base import hash_lines
from fsbench.data.catalog import Archive
from fsbench.data.files import ClassTree, find_path, list_folders, list_images
from fsbench.data.hub import read_parquet_tables
from fsbench.data.image_folder import list_tree_images, stamp_files
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing
from fsbench.data.splits import read_lines

WNIDS = """
n02124075 n04067472 n04540053 n04099969 n07749582 n01641577 n02802426 n09246464 n07920052
n03970156 n03891332 n02106662 n03201208 n02279972 n02132136 n04146614 n07873807 n02364673
n04507155 n03854065 n03838899 n03733131 n01443537 n07875152 n03544143 n09428293 n03085013
n02437312 n07614500 n03804744 n04265275 n02963159 n02486410 n01944390 n09256479 n02058221
n04275548 n02321529 n02769748 n02099712 n07695742 n02056570 n02281406 n01774750 n02509815
n03983396 n07753592 n04254777 n02233338 n04008634 n02823428 n02236044 n03393912 n07583066
n04074963 n01629819 n09332890 n02481823 n03902125 n03404251 n09193705 n03637318 n04456115
n02666196 n03796401 n02795169 n02123045 n01855672 n01882714 n02917067 n02988304 n04398044
n02843684 n02423022 n02669723 n04465501 n02165456 n03770439 n02099601 n04486054 n02950826
n03814639 n04259630 n03424325 n02948072 n03179701 n03400231 n02206856 n03160309 n01984695
n03977966 n03584254 n04023962 n02814860 n01910747 n04596742 n03992509 n04133789 n03937543
n02927161 n01945685 n02395406 n02125311 n03126707 n04532106 n02268443 n02977058 n07734744
n03599486 n04562935 n03014705 n04251144 n04356056 n02190166 n03670208 n02002724 n02074367
n04285008 n04560804 n04366367 n02403003 n07615774 n04501370 n03026506 n02906734 n01770393
n04597913 n03930313 n04118538 n04179913 n04311004 n02123394 n04070727 n02793495 n02730930
n02094433 n04371430 n04328186 n03649909 n04417672 n03388043 n01774384 n02837789 n07579787
n04399382 n02791270 n03089624 n02814533 n04149813 n07747607 n03355925 n01983481 n04487081
n03250847 n03255030 n02892201 n02883205 n03100240 n02415577 n02480495 n01698640 n01784675
n04376876 n03444034 n01917289 n01950731 n03042490 n07711569 n04532670 n03763968 n07768694
n02999410 n03617480 n06596364 n01768244 n02410509 n03976657 n01742172 n03980874 n02808440
n02226429 n02231487 n02085620 n01644900 n02129165 n02699494 n03837869 n02815834 n07720875
n02788148 n02909870 n03706229 n07871810 n03447447 n02113799 n12267677 n03662601 n02841315
n07715103 n02504458
"""

TRAIN, VAL = 500, 50
"""Images per class."""

FACTS = DatasetFacts(
    name="tinyimagenet",
    title="TinyImageNet",
    domain="source",
    classes=tuple(WNIDS.split()),
    images_per_class=(TRAIN,) * 200,
    label_rule="class id = line of the wnid in wnids.txt, counted from 0; grey repeated to RGB",
    dropped="the 10,000 test images, which have no labels",
    layout="wnids.txt, train/<wnid>/images/*.JPEG, val/images/*.JPEG, val/val_annotations.txt; or "
    "train-*.parquet and val-*.parquet with the columns image and label",
    folders=("tinyimagenet", "tiny-imagenet-200", "tiny-imagenet"),
    aliases=("tiny-imagenet-200", "tiny-imagenet"),
    download="fsbench data download tinyimagenet --data ROOT, or "
    "--source hf-hub:zh-plus/tiny-imagenet",
    license="a part of ImageNet: non-commercial research and education",
    citation="Le and Yang, Tiny ImageNet Visual Recognition Challenge, CS 231N 2015",
    homepage="http://cs231n.stanford.edu",
)
ARCHIVES = (
    Archive(
        "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "md5:90528d7ca1a48142e341f4ef8d21d0de",
        hash_source="Avalanche, tiny_imagenet.py (github.com/ContinualAI/avalanche)",
        mirrors=(
            "https://zenodo.org/records/10720917/files/tiny-imagenet-200.zip",
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        ),
    ),
)


def load(folder: Path, cache: Path) -> SourceListing:
    """Load TinyImageNet below `folder`. Raises DataError for missing files, unknown classes."""
    folder = find_path(folder, "tiny-imagenet-200") or folder
    classes = read_classes(folder)
    if tree := find_path(folder, "train"):
        train, stamp = list_tree_images(ClassTree.read(tree), classes)
        val, val_stamp = _val_samples(folder, classes)
        return build_listing(classes, train, val, hash_lines([stamp, val_stamp]))
    return build_listing(classes, *_from_parquet(folder, classes, cache))


def read_classes(folder: Path) -> tuple[str, ...]:
    """Return the lines of wnids.txt, or the official order if the file is missing."""
    path = find_path(folder, "wnids.txt")
    if path is None:
        return FACTS.classes
    classes = tuple(line for text in read_lines(path) for line in text.split())
    if len(set(classes)) != len(classes) or not set(classes) <= set(FACTS.classes):
        raise DataError(
            f"{path} repeats a wnid or has one that TinyImageNet does not have",
            fix="use the official file, or --source folder:DIR for other images",
        )
    return classes


def build_listing(
    classes: tuple[str, ...], train: list[SourceImage], val: list[SourceImage], stamp: str
) -> SourceListing:
    """Build the listing, marked `subset` unless it has the official classes and counts."""
    counts = [Counter(sample.label for sample in part) for part in (train, val)]
    full = [dict.fromkeys(range(200), n) for n in (TRAIN, VAL)]
    complete = classes == FACTS.classes and counts == full
    if not train or not val:
        raise DataError("TinyImageNet without train or val images", fix=FACTS.layout)
    return SourceListing(
        FACTS if classes == FACTS.classes else _facts_of(classes),
        train,
        val,
        stamp,
        frozenset() if complete else frozenset({"subset"}),
    )


def _facts_of(classes: tuple[str, ...]) -> DatasetFacts:
    return FACTS.model_copy(
        update={"classes": classes, "images_per_class": (TRAIN,) * len(classes)}
    )


def _val_samples(folder: Path, classes: tuple[str, ...]) -> tuple[list[SourceImage], str]:
    """Read val/images with val_annotations.txt, or the re-sorted val/<wnid>/."""
    table = find_path(folder, "val/val_annotations.txt")
    tree = find_path(folder, "val")
    if tree is None:
        raise DataError(f"{folder} lacks val/", fix=f"expected there: {FACTS.layout}")
    if {path.name for path in list_folders(tree)} & set(classes):
        return list_tree_images(ClassTree.read(tree), classes)
    if table is None:
        raise DataError(f"{tree} lacks val_annotations.txt", fix=f"expected: {FACTS.layout}")
    labels = _annotations(table)
    names = [name for name in list_images(tree / "images") if labels.get(name) in classes]
    samples = [
        SourceImage(classes.index(labels[name]), partial(open_rgb, tree / "images" / name))
        for name in names
    ]
    return samples, stamp_files([table, *(tree / "images" / name for name in names)])


def _annotations(table: Path) -> dict[str, str]:
    """Return wnid by file name. Raises DataError for a file named twice."""
    rows = [line.split("\t")[:2] for line in read_lines(table) if "\t" in line]
    if len({name for name, _ in rows}) != len(rows):
        raise DataError(f"{table} lists an image more than once", fix="fetch it again")
    return dict(rows)


def _from_parquet(
    folder: Path, classes: tuple[str, ...], cache: Path
) -> tuple[list[SourceImage], list[SourceImage], str]:
    files = [*folder.glob("*.parquet"), *folder.glob("data/*.parquet")]
    train = sorted(path for path in files if path.name.startswith("train"))
    val = sorted(path for path in files if path.name.startswith("val"))
    if not train or not val:
        raise DataError(
            f"{folder} holds neither train/ nor train-*.parquet and val-*.parquet",
            fix=f"expected there: {FACTS.layout}",
        )
    stamp = stamp_files([*train, *val])
    tables = read_parquet_tables(train, val, cache / "datasets" / stamp[:16])
    return tables[0].samples(classes), tables[1].samples(classes), stamp
