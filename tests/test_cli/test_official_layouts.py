"""Real images in the official layouts, from files to results of an untrained network."""

from pathlib import Path

import pytest
from support.cli import CommandLine


@pytest.mark.realdata
def test_real_images_in_the_official_layouts(packs: Path, tmp_path: Path, cli: CommandLine) -> None:
    model = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
    data = ("--data", packs, "--data", f"chestx={packs / 'chestx64'}", "-o", tmp_path)
    results = cli.json("episodic", *model, "-t", "cdfsl:5w5s/centroid", "--limit", "20", *data)
    names = {result["dataset"]["name"] for result in results}
    assert names == {"chestx", "isic", "eurosat", "cropdisease"}
    assert {flag for result in results for flag in result["dataset"]["flags"]} == {"subset"}
    assert all(result["score"]["mean"] > 0.22 for result in results), "5-way chance is .2"
