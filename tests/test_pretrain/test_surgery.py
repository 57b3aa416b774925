"""Weights by name: effective weights, thresholds, and laws of re-drawn weights."""

from pathlib import Path

import pytest
import torch
from support.cases import read_cases
from support.pretrain import record, train
from torch import nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UnknownName
from fsbench.core.seeding import stream
from pretrain.recipes import registry
from pretrain.weights import surgery

CASES = read_cases("backbones")


@pytest.fixture
def model() -> nn.Module:
    with stream("surgery"):
        return load_architecture("toy_resnet").build(4, 4)


def test_buffers_and_plain_parameters_are_written_in_place(model: nn.Module) -> None:
    parameter = model.get_parameter("fc.weight")
    surgery.set_weight(model, "fc.weight", torch.ones_like(parameter))
    surgery.set_weight(model, "bn1.running_mean", torch.full((4,), 3.0))
    assert model.get_parameter("fc.weight") is parameter
    assert bool((parameter == 1).all())
    assert model.get_buffer("bn1.running_mean").tolist() == [3.0] * 4


def test_a_threshold_splits_all_parameters(model: nn.Module) -> None:
    everything = tuple(name for name, _ in model.named_parameters())
    early, late = surgery.split_parameters(model, "layer3")
    assert early + late == everything
    assert {"conv1.weight", "bn1.weight", "bn1.bias"} < set(early)
    assert surgery.split_parameters(model, surgery.END) == (everything, ())
    assert surgery.split_parameters(model, "conv1") == ((), everything)
    with pytest.raises(UnknownName, match="layer threshold"):  # a part of a name is no name
        surgery.split_parameters(model, "layer")


@pytest.mark.parametrize(("architecture", "module", "blocks_before", "blocks"), CASES["thresholds"])
def test_auto_is_layer3_or_the_same_share_of_the_blocks(
    architecture: str, module: str, blocks_before: int, blocks: int
) -> None:
    recipe = registry.load_recipe("paper/seal").override([f"architecture={architecture}"])
    assert surgery.find_threshold(recipe, "auto") == module
    whole = load_architecture(architecture).at(64)
    with torch.device("meta"):
        model = whole.build(2)
    roles = whole.roles(model)
    early, _ = RoleMap.from_threshold(model, module)
    assert len(roles.blocks) == blocks
    of_one = RoleMap(("a.0", "b", "fc"), (("a",),), "fc", ("b", "fc"), ("a",))
    assert surgery.default_threshold(of_one) == "b", "of a single block, its fully-connected layers"
    is_early = [any(n.startswith(f"{m}.") for n in early for m in block) for block in roles.blocks]
    assert is_early == [True] * blocks_before + [False] * (blocks - blocks_before)


@pytest.mark.parametrize("method", ["llf", "seal"])
def test_the_run_records_the_module(method: str, tmp_path: Path) -> None:
    facts = record(train(tmp_path, method))
    assert facts["resolved"] == {f"{method}.threshold": "layer3"}
    assert facts["recipe_fields"]["methods"][0]["threshold"] == "auto"


def test_late_modules_are_those_from_the_threshold_on() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1, affine=False), nn.Linear(1, 1))
    assert surgery.late_modules(model, "1") == [model[1], model[2]]
    assert surgery.late_modules(model, "end") == []


def test_views_into_a_buffer_have_the_layouts_of_tensors() -> None:
    kernel = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
    tensors = [kernel, torch.zeros(5), torch.zeros(3, 2).T, torch.zeros(())]
    sizes = torch.tensor([tensor.numel() for tensor in tensors])
    views = surgery.views_into(torch.arange(4.0).repeat_interleave(sizes), tensors)
    for i, (view, tensor) in enumerate(zip(views, tensors, strict=True)):
        assert view.stride() == tensor.stride()
        assert torch.equal(view, torch.full(tensor.shape, float(i)))
