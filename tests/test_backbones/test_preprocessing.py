"""Mean, std and size that a file states for itself, and the resolution that follows from a size."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from fsbench import backbones
from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.backbones.base import feature_spec
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.specs import EpisodicSpec, ImageSpec, KnnSpec, ProbeSpec, choose_resolution
from fsbench.core.tasks import ColumnId, TaskId
from fsbench.data.images import to_array
from pretrain.recipes.registry import RECIPES

IMAGENET = (0.485, 0.456, 0.406)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    net = ARCHITECTURES.load("toy_resnet").build(0)
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


STATED: dict[str, dict[str, Any]] = {
    "net.json": {"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "input_size": 48},
    "run.json": {"recipe": "toy/normal", "mean": [0.5] * 3, "std": [0.25] * 3, "input_size": 48},
    "config.json": {
        "architecture": "resnet18",
        "pretrained_cfg": {"mean": [0.5] * 3, "std": [0.25] * 3, "input_size": [3, 48, 48]},
    },
    "preprocessor_config.json": {
        "image_mean": [0.5] * 3,
        "image_std": [0.25] * 3,
        "size": {"height": 48, "width": 48},
    },
}


@pytest.mark.parametrize("name", STATED)
def test_a_file_that_carries_its_own_wins_over_the_architecture_and_flags_over_both(
    weights: Path, name: str, report: Any
) -> None:
    plain = backbones.load_backbone(str(weights), arch="fsbench/toy_resnet").facts
    assert (plain.mean, plain.input_size) == (IMAGENET, 32)
    weights.with_name(name).write_text(json.dumps(STATED[name]))
    options: dict[str, Any] = {"arch": "fsbench/toy_resnet", "report": report}
    stated = backbones.load_backbone(str(weights), **options).facts
    assert (stated.mean, stated.std, stated.input_size) == ((0.5,) * 3, (0.25,) * 3, 48)
    assert f"mean, std, input_size from {name}" in report.text
    spec = feature_spec(mean=(0.1, 0.2, 0.3))
    flagged = backbones.load_backbone(str(weights), **options, features=spec).facts
    assert (flagged.mean, flagged.std) == ((0.1, 0.2, 0.3), (0.25,) * 3)
    assert flagged.identity != stated.identity == plain.identity == stated.weights_hash
    assert "mean 0.1,0.2,0.3, std 0.25" in str(flagged)


def test_a_configuration_without_preprocessing_changes_nothing(weights: Path) -> None:
    weights.with_name("config.json").write_text('{"architecture": "x", "pretrained_cfg": null}')
    weights.with_name("net.json").write_text('["a log"]')
    assert backbones.load_backbone(str(weights), arch="fsbench/toy_resnet").facts.mean == IMAGENET


@pytest.mark.parametrize("text", ['{"std": [0.5, 0.5, 0]}', '{"mean": [1, 2]}', '{"mean": '])
def test_values_that_no_image_can_be_normalised_by(weights: Path, text: str) -> None:
    weights.with_name("net.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"net\.json"):
        backbones.load_backbone(str(weights), arch="fsbench/toy_resnet")
    with pytest.raises(UsageError, match="std"):
        feature_spec(std=(0.5, 0.5, 0.0))


@pytest.mark.parametrize(
    ("trained", "evaluated"), [(518, 224), (224, 224), (128, 224), (127, 127), (64, 64), (32, 32)]
)
def test_the_protocols_resolution_for_networks_of_large_images(
    trained: int, evaluated: int
) -> None:
    assert choose_resolution(trained) == evaluated


def test_recipes_of_the_cross_domain_study_are_evaluated_at_224_px() -> None:
    sizes = {name: RECIPES.evaluation_size(name) for name in RECIPES.names()}
    stated = {name for name, size in sizes.items() if size}
    assert {"paper/seal", "paper/normal", "paper/llf"} <= stated
    assert not [n for n in stated if n.startswith(("toy/", "pilot/", "paper/swr", "paper/study"))]
    assert set(sizes.values()) == {None, 224}


def test_the_size_that_a_run_states_is_among_its_facts(run_folder: Path) -> None:
    facts = backbones.load_backbone(f"run:{run_folder}").facts
    assert facts.evaluation_size is None
    assert facts.auto_size == facts.input_size < 128
    record = json.loads((run_folder / "run.json").read_text())
    (run_folder / "run.json").write_text(json.dumps({**record, "evaluation_size": 224}))
    for seed in (None, 0):
        facts = backbones.load_backbone(f"run:{run_folder}", random_init=seed).facts
        assert facts.auto_size == facts.evaluation_size == 224


def test_another_geometry_is_another_column() -> None:
    image = ImageSpec(interpolation="bicubic", resize_factor=1 / 0.875)
    assert (image.resize, image.variant) == (256, ("bicubic", "crop=0.875"))
    assert str(image) == "224 px: bicubic resize to 256 px square, centre crop"
    for spec in (EpisodicSpec(image=image), ProbeSpec(image=image), KnnSpec(image=image)):
        column = ColumnId.of(TaskId.of("eurosat", spec), spec)
        assert str(column).endswith(" 224px bicubic crop=0.875")
        assert ColumnId.parse(str(column)) == column
        assert spec.digest() != type(spec)().digest()


def test_images_are_resized_by_the_interpolation_of_their_spec() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 30, 3), np.uint8))
    for name in ("bilinear", "bicubic", "lanczos"):
        spec = ImageSpec(input_size=16, resize_factor=1.0, interpolation=name)
        expected = image.resize((16, 16), Image.Resampling[name.upper()])
        assert np.array_equal(to_array(image, spec), np.asarray(expected).transpose(2, 0, 1))
