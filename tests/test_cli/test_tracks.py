"""The disjoint track through the command line: from file names to a ranked column."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.cli import CommandLine

from fsbench.core.schema import Result
from fsbench.data.catalog import TARGETS
from fsbench.results.verification import read_loaded

CHESTX = TARGETS.load("chestx").FACTS
CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")
ENOUGH = 26
"""Images a class: 13 patients of two images, most of whom come again in another class."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """ChestX with few pixels: images 2i and 2i + 1 of a class are of one patient, of the first
    three patients other classes have images too."""
    folder = tmp_path / "data" / "chestx"
    (folder / "images").mkdir(parents=True)
    rows = ["Image Index,Finding Labels"]
    for c, label in enumerate(CHESTX.classes):
        for i in range(ENOUGH):
            who = i // 2 if i < 6 else 100 * (c + 1) + i // 2
            name = f"{who:08}_{c}{i:02}.png"
            pixels = np.full((8, 8), (37 * c + 5 * i) % 256, np.uint8)
            Image.fromarray(pixels).save(folder / "images" / name)
            rows.append(f"{name},{label}")
    (folder / "Data_Entry_2017.csv").write_text("\n".join(rows) + "\n")
    return folder.parent


def test_both_tracks_are_columns_of_their_own_with_dense_rows(
    data: Path, tmp_path: Path, cli: CommandLine
) -> None:
    out, arguments = str(tmp_path / "r"), ("--data", str(data), "--episodes", "20", "-o")
    tasks = ("-t", "chestx:3w1s@ibm,chestx:3w1s@ibm-disjoint")
    shown = cli("episodic", *CONTROL, *tasks, *arguments, out, "--wide").out
    assert "chestx:3w1s dense" in shown
    assert shown.index("results ibm 32px") < shown.index("results ibm-disjoint 32px")
    results: dict[str, Result] = {
        str(cell.result.task): cell.result for cell in read_loaded(Path(out))
    }
    classic = results["chestx:3w1s/linear@ibm"]
    disjoint = results["chestx:3w1s/linear@ibm-disjoint"]
    assert classic.dataset.groups is None
    assert disjoint.dataset.groups is not None
    assert classic.manifest_hash != disjoint.manifest_hash
    assert classic.dataset.fingerprint == disjoint.dataset.fingerprint
    again = cli.json("episodic", *CONTROL, *tasks, *arguments, out)
    assert [row["dataset"].get("groups") for row in again] == [None, disjoint.dataset.groups]
    assert all(0 <= row["dense"]["mean"] <= 1 for row in again)
    more = ("-t", "chestx:3w5s@ibm-disjoint")
    shown = cli("episodic", *CONTROL, *more, *arguments, out, code=3).err
    assert "the support and what its groups leave" in shown
    assert "--n-query 10 or fewer" in shown
