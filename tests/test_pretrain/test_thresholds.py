"""Where SEAL and LLF cut networks: the papers' layer3, the same depth elsewhere, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.pretrain import source, tiny
from torch import nn

from fsbench.backbones.architectures import ARCHITECTURES, RoleMap
from fsbench.core.errors import UnknownName, UsageError
from pretrain.recipes import registry
from pretrain.training.loop import train_recipe
from pretrain.weights import surgery

SHARES = pytest.mark.parametrize(
    ("architecture", "module", "blocks_before", "blocks"),
    [
        ("seal_resnet50", "layer3", 7, 16),
        ("resnet50", "layer3", 7, 16),
        ("toy_resnet", "layer3", 2, 4),
        ("mobilenet", "layer3", 3, 7),
        ("scnn", "layer2.0", 2, 4),
        ("cnn", "layer2.0", 1, 2),
        ("mlp", "layer2.0", 1, 2),
        ("timm/vgg11", "features.11", 4, 9),
    ],
)


@SHARES
def test_auto_is_layer3_or_the_same_share_of_the_blocks(
    architecture: str, module: str, blocks_before: int, blocks: int
) -> None:
    recipe = registry.load_recipe("paper/seal").override([f"architecture={architecture}"])
    assert surgery.find_threshold(recipe, "auto") == module
    found = ARCHITECTURES.load(architecture).at(64)
    model = found.build(2)
    roles = found.roles(model)
    early, _ = RoleMap.from_threshold(model, module)
    assert len(roles.blocks) == blocks
    held = [any(n.startswith(f"{m}.") for n in early for m in block) for block in roles.blocks]
    assert held == [True] * blocks_before + [False] * (blocks - blocks_before)


def test_of_a_single_block_the_fully_connected_layers_are_late() -> None:
    roles = RoleMap(("a.0", "b", "fc"), (("a",),), "fc", ("b", "fc"), ("a",))
    assert surgery.default_threshold(roles) == "b"


@pytest.mark.parametrize("method", ["llf", "seal", "seal_freeze", "seal_reinit", "seal_reverse"])
def test_a_module_that_the_network_lacks_is_refused_before_training(method: str) -> None:
    for name in ("layer3", "layer2.0.weight", "fc.bias"):
        with pytest.raises(UnknownName, match="layer threshold"):
            tiny(method, "architecture=scnn", f"{method}.threshold={name}")
    assert tiny(method, "architecture=scnn", f"{method}.threshold=fc1")


@pytest.mark.parametrize(
    ("method", "threshold"), [("seal", "conv1"), ("seal_freeze", "conv1"), ("seal_reverse", "end")]
)
def test_a_threshold_that_leaves_nothing_to_ascend_is_refused(method: str, threshold: str) -> None:
    with pytest.raises(UsageError, match=f"{method} would never ascend: threshold {threshold}"):
        tiny(method, f"{method}.threshold={threshold}")
    assert tiny(method, f"{method}.threshold={threshold}", f"{method}.ascent_share=0")


@pytest.mark.parametrize(("method", "module"), [("llf", "layer3"), ("seal", "layer3")])
def test_the_run_records_the_module(method: str, module: str, tmp_path: Path) -> None:
    run = train_recipe(tiny(method), source(), tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    assert facts["resolved"] == {f"{method}.threshold": module}
    assert facts["recipe_fields"]["methods"][0]["threshold"] == "auto"


def test_late_modules_are_those_from_the_threshold_on() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1, affine=False), nn.Linear(1, 1))
    assert surgery.late_modules(model, "1") == [model[1], model[2]]
    assert surgery.late_modules(model, "end") == []
