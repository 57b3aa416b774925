"""Held-out images of another source in the official layouts, from files to results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.cli import CommandLine

from fsbench.data.catalog import TARGETS

PER_CLASS = 9


def picture(path: Path, label: int, n: int) -> None:
    """Noise around a shade of the class."""
    noise = np.random.default_rng([label, n]).integers(0, 40, (40, 40 + n, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((noise + 25 * label).astype(np.uint8)).save(path)


def isic(root: Path) -> None:
    """Flat JPEGs and the label table in the folders of the two archives."""
    classes = TARGETS.load("isic").FACTS.classes
    rows = ["image," + ",".join(classes)]
    for label in range(len(classes)):
        for n in range(PER_CLASS):
            file = f"ISIC_{100 * label + n:07d}"
            folder = root / "isic2018" / "ISIC2018_Task3_Training_Input"
            picture(folder / f"{file}.jpg", label, n)
            marks = ["1.0" if c == label else "0.0" for c in range(len(classes))]
            rows.append(",".join([file, *marks]))
    table = root / "isic2018" / "ISIC2018_Task3_Training_GroundTruth"
    table.mkdir()
    (table / f"{table.name}.csv").write_text("\n".join(rows) + "\n")


def evaluate(cli: CommandLine, tmp_path: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the results of an untrained network by data set."""
    model = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
    results = cli.json("episodic", *model, "-o", tmp_path / "r", *arguments)
    return {result["dataset"]["name"]: result for result in results}


def test_generated_images_in_an_official_layout(tmp_path: Path, cli: CommandLine) -> None:
    isic(tmp_path)
    chosen = ("-t", "isic:5w1s/centroid", "--n-query", "8", "--limit", "20")
    result = evaluate(cli, tmp_path, *chosen, "--data", str(tmp_path))["isic"]
    assert result["dataset"]["class_counts"] == [PER_CLASS] * 7
    assert set(result["dataset"]["flags"]) == {"subset"}
    assert result["spec"]["episode"]["n_query"] == 8
    assert result["score"]["mean"] > 0.5, "shades tell the classes apart: labels fit the images"


@pytest.mark.realdata
def test_real_images_in_the_official_layouts(packs: Path, tmp_path: Path, cli: CommandLine) -> None:
    places = [str(packs), f"chestx={packs / 'chestx64'}"]
    options = [word for place in places for word in ("--data", place)]
    chosen = ("-t", "cdfsl:5w5s/centroid", "--limit", "20", *options)
    results = evaluate(cli, tmp_path, *chosen)
    assert set(results) == {"chestx", "isic", "eurosat", "cropdisease"}
    assert {flag for r in results.values() for flag in r["dataset"]["flags"]} == {"subset"}
    assert all(result["score"]["mean"] > 0.22 for result in results.values()), "5-way chance is .2"
