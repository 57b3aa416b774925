"""EuroSAT (RGB): Sentinel-2 satellite patches of ten kinds of land use."""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.assembly import StartupLists, assemble, list_tree_rows
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive, class_counts
from fsbench.data.images import open_rgb

COUNTS = class_counts("eurosat")
BANDS = ("EuroSAT_MS", "EuroSATallBands")
"""Folders of the archive of all 13 bands, which is another data set."""

FACTS = DatasetFacts(
    name="eurosat",
    title="EuroSAT (RGB)",
    domain="target",
    classes=tuple(COUNTS),
    images_per_class=tuple(COUNTS.values()),
    label_rule="class id = rank of the folder name in alphabetical order",
    layout="2750/<Class>/<Class>_<n>.jpg, as EuroSAT.zip unpacks",
    folders=("eurosat", "EuroSAT_RGB", "2750", *BANDS),
    aliases=("EuroSAT",),
    download="fsbench data download eurosat --data ROOT",
    license="MIT",
    citation="Helber et al., EuroSAT: A Novel Dataset and Deep Learning Benchmark for Land Use and "
    "Land Cover Classification, IEEE JSTARS 2019",
    homepage="https://github.com/phelber/EuroSAT",
)
LISTS = StartupLists(
    prefix="EuroSAT",
    labeled_80_hash="3a53fd4df9e59b23ba633945b42579e635951787f758613bea16a8f02f9a2ed7",
    full_hash="11952afe4100bd10be7ca5b25bb7dabff15106ec2d41b59100000d6c112befb2",
    suffixed=True,
)
ARCHIVES = (
    Archive(
        url="https://huggingface.co/datasets/torchgeo/eurosat/resolve/"
        "c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip",
        known_hash="md5:c8fa014336c82ac7804f0398fcb19387",
        hash_source="torchvision, datasets/eurosat.py",
        mirrors=("https://madm.dfki.de/files/sentinel/EuroSAT.zip",),
    ),
)
TIF = "ds/images/remote_sensing/otherDatasets/sentinel_2/tif"
TREES = ("2750", "EuroSAT_RGB", "EuroSAT", ".", *BANDS, TIF)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load EuroSAT below `folder`. Raises DataError if it is not there, or if it has 13 bands."""
    rows, notes = list_tree_rows(folder, FACTS, TREES)
    for row in [row for row in rows if row.path.lower().endswith((".tif", ".tiff"))][:1]:
        try:
            open_rgb(folder / row.path)
        except DataError as error:
            raise DataError(
                f"{folder / row.path} belongs to EuroSAT with all 13 bands (EuroSAT_MS, "
                "EuroSATallBands), not to EuroSAT (RGB)",
                fix=f"fetch EuroSAT.zip or EuroSAT_RGB.zip: {FACTS.download}",
            ) from error
    return assemble(FACTS, folder, rows, pool=pool, lists=LISTS, splits=splits, notes=notes)
