"""MIT Indoor-67: 67 kinds of rooms, 80 train and 20 test images each, by the official lists."""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive, class_names
from fsbench.data.splits import ListedImage, assemble_official, read_lines, require_path

LISTS = ("TrainImages.txt", "TestImages.txt")

FACTS = DatasetFacts(
    name="mit67",
    title="MIT Indoor-67",
    domain="target",
    classes=class_names("mit67"),
    images_per_class=(),
    split=(5360, 1340),
    label_rule="class id = rank of the folder name in alphabetical order",
    dropped="the 8,920 of 15,620 images that neither official list names",
    layout="Images/<class>/*.jpg, TrainImages.txt and TestImages.txt (lines <class>/<file>)",
    folders=("mit67", "MIT67", "indoorCVPR_09", "indoor67", "mit_indoor"),
    aliases=("indoor67", "mit-indoor", "mit-indoor-67"),
    download="fsbench data download mit67 --data ROOT --sha256 HASH (two, of the "
    "lists; without hashes the command prints their addresses)",
    license="research purposes only",
    citation="Quattoni and Torralba, Recognizing Indoor Scenes, CVPR 2009",
    homepage="https://web.mit.edu/torralba/www/indoor.html",
)
ARCHIVES = (
    Archive(
        "https://groups.csail.mit.edu/vision/LabelMe/NewImages/indoorCVPR_09.tar",
        "sha1:0b252516e746ba428b96af408d2e8162d9b08ac5",
        hash_source="vipy, data/mit67.py (github.com/visym/vipy)",
        mirrors=("http://groups.csail.mit.edu/vision/LabelMe/NewImages/indoorCVPR_09.tar",),
    ),
    *(Archive(f"https://web.mit.edu/torralba/www/{name}") for name in LISTS),
)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the listed images below `folder`. Raises DataError for missing files or classes."""
    images = require_path(folder, "Images/", FACTS)
    parts = [_part(folder, name) for name in LISTS]
    return assemble_official(FACTS, folder, images, parts, pool)


def _part(folder: Path, name: str) -> list[ListedImage]:
    table = require_path(folder, name, FACTS)
    lines = read_lines(table)
    unknown = [line for line in lines if line.partition("/")[0] not in FACTS.classes]
    if unknown:
        raise DataError(f"{table} names no class in '{unknown[0]}'", fix="use the official file")
    return [ListedImage(FACTS.classes.index(line.partition("/")[0]), line) for line in lines]
