"""Caltech-101: 101 kinds of objects, a small source of the reinitialization study.

Learning Generative Visual Models from Few Training Examples. L. Fei-Fei, R. Fergus, P. Perona, CVPR
workshops 2004.
Publisher: https://data.caltech.edu/records/20086
Licence: CC BY 4.0.
Layout: caltech101/101_ObjectCategories/<class>/image_<n>.jpg; read through torchvision's
Caltech101, which leaves BACKGROUND_Google out and keeps Faces and Faces_easy as two classes.

There is no official split. As in the study (https://arxiv.org/abs/2109.00267), 30 images of every
class are used and 10 % of them held out for validation; here those with the smallest hash of their
name, because the study does not say which. Marked `derived`. The study counts 3,060 training
images, which is 30 for each of 102 folders, BACKGROUND_Google included. All other images of the 101
classes are scored once, after training.
"""

from collections import Counter
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.data.catalog import Archive
from fsbench.data.files import find_path, list_folders
from fsbench.data.source import SourceListing, select_by_hash
from fsbench.data.sources._listings import split_validation

COUNTS = {
    "Faces": 435, "Faces_easy": 435, "Leopards": 200, "Motorbikes": 798, "accordion": 55,
    "airplanes": 800, "anchor": 42, "ant": 42, "barrel": 47, "bass": 54, "beaver": 46,
    "binocular": 33, "bonsai": 128, "brain": 98, "brontosaurus": 43, "buddha": 85, "butterfly": 91,
    "camera": 50, "cannon": 43, "car_side": 123, "ceiling_fan": 47, "cellphone": 59, "chair": 62,
    "chandelier": 107, "cougar_body": 47, "cougar_face": 69, "crab": 73, "crayfish": 70,
    "crocodile": 50, "crocodile_head": 51, "cup": 57, "dalmatian": 67, "dollar_bill": 52,
    "dolphin": 65, "dragonfly": 68, "electric_guitar": 75, "elephant": 64, "emu": 53,
    "euphonium": 64, "ewer": 85, "ferry": 67, "flamingo": 67, "flamingo_head": 45, "garfield": 34,
    "gerenuk": 34, "gramophone": 51, "grand_piano": 99, "hawksbill": 100, "headphone": 42,
    "hedgehog": 54, "helicopter": 88, "ibis": 80, "inline_skate": 31, "joshua_tree": 64,
    "kangaroo": 86, "ketch": 114, "lamp": 61, "laptop": 81, "llama": 78, "lobster": 41, "lotus": 66,
    "mandolin": 43, "mayfly": 40, "menorah": 87, "metronome": 32, "minaret": 76, "nautilus": 55,
    "octopus": 35, "okapi": 39, "pagoda": 47, "panda": 38, "pigeon": 45, "pizza": 53,
    "platypus": 34, "pyramid": 57, "revolver": 82, "rhino": 59, "rooster": 49, "saxophone": 40,
    "schooner": 63, "scissors": 39, "scorpion": 84, "sea_horse": 57, "snoopy": 35,
    "soccer_ball": 64, "stapler": 45, "starfish": 86, "stegosaurus": 59, "stop_sign": 64,
    "strawberry": 35, "sunflower": 85, "tick": 49, "trilobite": 86, "umbrella": 75, "watch": 239,
    "water_lilly": 37, "wheelchair": 59, "wild_cat": 34, "windsor_chair": 56, "wrench": 39,
    "yin_yang": 60,
}  # fmt: skip
"""Number of images by class, 8,677 in all."""

PER_CLASS = 30
BACKGROUND = "BACKGROUND_Google"
TREE = "101_ObjectCategories"
BASE = "caltech101"
"""The folder name that torchvision expects."""

FACTS = DatasetFacts(
    name="caltech101",
    title="Caltech-101",
    domain="source",
    classes=tuple(COUNTS),
    images_per_class=(PER_CLASS,) * len(COUNTS),
    label_rule="class id = rank of the folder name in sorted order (capitals first); 30 images of "
    "every class, 3 of them for validation, those with the smallest hash of their name; test: the "
    "5,647 images beyond 30 per class",
    dropped="BACKGROUND_Google (467 images)",
    layout=f"{BASE}/{TREE}/<class>/image_0001.jpg and on, as torchvision unpacks them",
    folders=(BASE,),
    aliases=("caltech-101",),
    download="fsbench data download caltech101 --data ROOT",
    license="CC BY 4.0",
    citation="Fei-Fei, Fergus and Perona, Learning Generative Visual Models from Few Training "
    "Examples, CVPR Workshops 2004",
    homepage="https://data.caltech.edu/records/20086",
)
ARCHIVES = (
    Archive(
        "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
        "md5:3138e1922a9193bfa496528edbbc45d0",
        hash_source="torchvision, datasets/caltech.py",
        inner=("caltech-101/101_ObjectCategories.tar.gz",),
    ),
)


def load(folder: Path, cache: Path) -> SourceListing:
    """Load 30 images of every class, and test on the others. Raises DataError for wrong classes."""
    paths, labels = _images(_base(folder))
    ids = [f"{path.parent.name}/{path.name}" for path in paths]
    selected = select_by_hash(labels, ids, PER_CLASS, FACTS.name, "train")
    complete = Counter(labels) == dict(enumerate(COUNTS.values()))
    used = set(selected)
    test = [(labels[i], path) for i, path in enumerate(paths) if i not in used]
    return split_validation(
        FACTS, [paths[i] for i in selected], [labels[i] for i in selected], complete, test
    )


def _base(folder: Path) -> Path:
    """Return the folder named caltech101: `folder` or the one in it, as torchvision needs it."""
    base = find_path(folder, BASE) or folder.absolute()
    tree = base / TREE
    if base.name != BASE or not tree.is_dir():
        raise DataError(
            f"{folder} is not a folder {BASE}/ with {TREE}/", fix=f"expected: {FACTS.layout}"
        )
    names = {path.name for path in list_folders(tree)}
    wrong = sorted(names - {*COUNTS, BACKGROUND})
    if wrong or BACKGROUND not in names or len(names) < 3:
        raise DataError(
            f"{tree} is not Caltech-101: {(*wrong, f'{BACKGROUND} or all classes missing')[0]}",
            fix="unpack the whole archive, or use --source folder:DIR for other images",
        )
    return base


def _images(base: Path) -> tuple[list[Path], list[int]]:
    """Return the image files of all classes and their labels."""
    from torchvision.datasets import Caltech101

    dataset = Caltech101(base.parent, download=False)
    numbers = zip(dataset.y, dataset.index, strict=True)
    names = [(dataset.categories[y], n) for y, n in numbers]
    paths = [base / TREE / name / f"image_{n:04d}.jpg" for name, n in names]
    order = {name: rank for rank, name in enumerate(COUNTS)}
    return paths, [order[name] for name, _ in names]
