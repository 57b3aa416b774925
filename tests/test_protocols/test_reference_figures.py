"""Published figures of a public checkpoint, run again (protocols/README.md, reference numbers).

torchvision's ResNet-18 on ImageNet, frozen, 224 px, a linear head, 600 episodes from the labelled
80 %: the STARTUP evaluation as MosyMosy/BMS logged it. By hand, with official data below DATA:

    fsbench episodic -m torchvision/resnet18 -t eurosat@startup,chestx@startup \\
        --shots 1,5,20 --input-size 224 --data DATA -o results

As a test, on the same data and with the weights in torch.hub's checkpoints folder:

    FSBENCH_TEST_DATA=DATA pytest -m "slow and realdata" \\
        tests/test_protocols/test_reference_figures.py

The episodes differ from theirs, so the means must agree within both intervals plus one point, which
allows for the antialiased resize and the torch version.
"""

import json
from pathlib import Path

import pytest
import torch
from support.cli import call

from fsbench.data import DataRoots, load_target

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

PUBLISHED = {
    "eurosat": {1: (65.78, 0.81), 5: (85.37, 0.48), 20: (91.77, 0.32)},
    "chestx": {1: (22.80, 0.41), 5: (25.69, 0.44), 20: (30.48, 0.44)},
}
"""Percent and 95 % half-width by shots."""


@pytest.fixture
def official(packs: Path) -> Path:
    """The data folder, if the whole labelled part of both data sets and the weights are there."""
    for name in PUBLISHED:
        dataset = load_target(name, DataRoots.parse([str(packs)]), "labeled_80")
        if dataset.flags:
            pytest.skip(
                f"{name} below {packs} is a {', '.join(dataset.flags)}: needs official data"
            )
    weights = Path(torch.hub.get_dir()) / "checkpoints" / "resnet18-f37072fd.pth"
    if not weights.is_file():
        pytest.skip(f"no {weights}: fetch it with torchvision.models.resnet18(weights='DEFAULT')")
    return packs


@pytest.mark.parametrize("name", PUBLISHED)
def test_linear_heads_on_a_public_backbone(
    name: str, official: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-m", "torchvision/resnet18", "-t", f"{name}@startup", "--shots", "1,5,20"]
    arguments += ["--input-size", "224", "--data", str(official), "-o", str(tmp_path), "--json"]
    assert call("episodic", *arguments) == 0
    accuracies = {
        cell["spec"]["episode"]["k_shot"]: cell for cell in json.loads(capsys.readouterr().out)
    }
    assert accuracies.keys() == PUBLISHED[name].keys()
    for shots, (mean, ci95) in PUBLISHED[name].items():
        ours = accuracies[shots]["score"]
        assert ours["n"] == 600
        assert abs(100 * ours["mean"] - mean) < 1 + ci95 + 100 * ours["ci95"]
