"""EuroSAT (RGB): Sentinel-2 satellite patches of ten kinds of land use."""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.assembly import assemble, list_tree_rows
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.images import open_rgb

BANDS = ("EuroSAT_MS", "EuroSATallBands")
"""Folders of the archive of all 13 bands, which is another data set."""

FACTS = read_card("eurosat")
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
    return assemble(FACTS, folder, rows, pool=pool, splits=splits, notes=notes)
