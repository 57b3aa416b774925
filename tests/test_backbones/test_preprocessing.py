"""Mean, std and size that a file states for itself, and the resolution that follows from a size."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import fsbench
from fsbench import backbones
from fsbench.backbones.base import feature_spec
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import ImageSpec
from fsbench.data.images import crop_centres
from pretrain.recipes.registry import evaluation_size, recipe_names

ARCH = "fsbench/toy_resnet"
VALUES = {"mean": [0.5] * 3, "std": [0.25] * 3, "input_size": 48}
TIMM = {
    "architecture": "fsbench_toy_resnet",
    "pretrained_cfg": {**VALUES, "input_size": [3, 48, 48], "interpolation": "bicubic"},
}


def save_weights(path: Path) -> Path:
    torch.manual_seed(0)
    save_file(load_architecture("toy_resnet").build(0).state_dict(), path)
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return save_weights(tmp_path / "net.safetensors")


def facts_of(path: Path, **options: Any) -> BackboneFacts:
    return backbones.load_backbone(str(path), arch=ARCH, **options).facts


def test_a_file_of_weights_states_nothing_and_nothing_is_invented(weights: Path) -> None:
    facts = facts_of(weights)
    assert (facts.mean, facts.std, facts.input_size, facts.stated_by) == (None, None, None, {})
    assert "trained at an unknown number of px" in str(facts)


def test_the_config_of_these_very_weights_states_them_and_flags_replace_it(tmp_path: Path) -> None:
    path = save_weights(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(TIMM))
    stated = facts_of(path)
    assert (stated.mean, stated.std, stated.input_size) == ((0.5,) * 3, (0.25,) * 3, 48)
    assert set(stated.stated_by.values()) == {"config.json"}
    assert stated.interpolation == "bicubic"
    flagged = facts_of(path, features=feature_spec(mean=(0.1, 0.2, 0.3)))
    assert (flagged.mean, flagged.std) == ((0.1, 0.2, 0.3), (0.25,) * 3)
    assert flagged.identity != stated.identity == stated.weights_hash
    assert "mean 0.1,0.2,0.3 (the user, in place of config.json)" in str(flagged)


def test_what_lies_near_a_file_but_is_not_of_it_states_nothing(tmp_path: Path) -> None:
    net, model = (save_weights(tmp_path / f"{name}.safetensors") for name in ("net", "model"))
    for name in ("run.json", "other.json", "net.json"):
        (tmp_path / name).write_text(json.dumps(VALUES))
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5]}')
    (tmp_path / "config.json").write_text(json.dumps({**TIMM, "architecture": "resnet18"}))
    assert facts_of(net).stated_by == facts_of(model).stated_by == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"std": [1, 1, 0]}', r"config\.json"),
        ('{"mean": [1, 2]}', r"config\.json"),
        ('{"input_size": 7}', "input_size"),
        ('{"interpolation": 7}', "interpolation"),
    ],
)
def test_a_config_with_values_that_make_no_sense_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    weights = save_weights(tmp_path / "model.safetensors")
    config = {"architecture": "toy_resnet", "pretrained_cfg": json.loads(text)}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=message):
        facts_of(weights)


def evaluate(model: Any, **options: Any) -> fsbench.Results:
    return fsbench.evaluate(model, "toy_tiles:2w1s", episodes=2, **{"progress": False, **options})


KNOWN = {"input_size": 32, "mean": "imagenet", "std": "imagenet"}


@pytest.mark.parametrize("names", [(), ("input_size",), ("std",), ("mean", "std")])
def test_one_message_lists_all_that_is_unknown_before_data_is_read(
    names: tuple[str, ...], weights: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate(f"{weights}@{ARCH}", **{name: KNOWN[name] for name in names}, data="missing")
    missing = [name for name in KNOWN if name not in names]
    assert ", ".join(missing).replace("_", " ") in caught.value.message
    for name, option in (("input_size", "--input-size 64"), ("mean", "--mean imagenet")):
        assert (option in str(caught.value.fix)) == (name in missing)


def test_of_several_models_each_must_be_known(weights: Path) -> None:
    models = ["timm/test_resnet", f"{weights}@{ARCH}"]
    with pytest.raises(UsageError, match=r"net\.safetensors.*input size, mean, std"):
        evaluate(models, random_init=0, data="missing")
    results = evaluate(f"{weights}@{ARCH}", **KNOWN)
    assert results.models == ["net"]
    assert results[0].backbone.stated_by == {"mean": "the user", "std": "the user"}


@pytest.mark.parametrize(
    ("stated", "missing"),
    [({}, "input size, mean, std"), ({"mean": "half", "std": 1}, "input size")],
)
def test_a_module_in_memory_states_nothing_by_itself(stated: dict[str, Any], missing: str) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    with pytest.raises(UsageError, match=f"the {missing} of its training") as caught:
        fsbench.Backbone.from_module(net, name="net", pool="avg", **stated)
    assert "input_size=64" in str(caught.value.fix)
    assert "--" not in str(caught.value.fix)


@pytest.mark.parametrize(
    ("text", "mean", "std"),
    [
        ("imagenet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("half", (0.5,) * 3, (0.5,) * 3),
        ("none", (0.0,) * 3, (1.0,) * 3),
        ("0.1", (0.1,) * 3, (0.1,) * 3),
        ("0.1,0.2,0.3", (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
    ],
)
def test_names_and_numbers_of_statistics(text: str, mean: Any, std: Any) -> None:
    spec = feature_spec(mean=text, std=text)
    assert (spec.mean, spec.std) == (mean, std)


@pytest.mark.parametrize("text", ["image-net", "1,2", "nan", "-1", "0", "", (0.5, 0.5, 0.0)])
def test_statistics_that_are_none(text: Any) -> None:
    with pytest.raises(UsageError, match="--std"):
        feature_spec(std=text)


@pytest.mark.parametrize(("size", "random"), [(64, True), (8, False)])
def test_no_warning_contradicts_the_user_on_random_or_unknown_networks(
    weights: Path, report: Any, size: int, random: bool
) -> None:
    model = ARCH if random else f"{weights}@{ARCH}"
    options: dict[str, Any] = {"random_init": 0} if random else {"mean": "half", "std": "half"}
    evaluate(model, input_size=size, **options | {"progress": report})
    assert "warning:" not in report.text
    assert random == ("random weights, made for 32 px" in report.text)


def test_recipes_of_the_cross_domain_study_are_evaluated_at_224_px() -> None:
    stated = {name: evaluation_size(name) for name in ("paper/seal", "paper/llf")}
    assert set(stated.values()) == {224}
    others = [n for n in recipe_names() if n.startswith(("toy/n", "pilot/n", "paper/swr"))]
    assert not any(evaluation_size(name) for name in others)


def test_images_are_resized_by_the_interpolation_of_their_spec() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 30, 3), np.uint8))
    for name in ("bilinear", "bicubic", "lanczos"):
        spec = ImageSpec(input_size=16, resize_factor=1.0, interpolation=name)
        expected = image.resize((16, 16), Image.Resampling[name.upper()])
        pixels = crop_centres([image], spec, 1)[0]
        assert np.array_equal(pixels, np.asarray(expected).transpose(2, 0, 1))
