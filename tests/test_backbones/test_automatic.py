"""Roles of timm's networks, found from the graph of one pass, and refusals that say why."""

from dataclasses import replace
from pathlib import Path

import pytest
import timm
import torch
from support.cases import read_cases
from support.pretrain import lines, source, tiny
from torch import nn

from fsbench import backbones
from fsbench.backbones.architectures import RoleMap, below
from fsbench.backbones.networks import find_roles, load_architecture
from fsbench.core.errors import UsageError
from fsbench.data.source import Split
from pretrain.training.loop import train_recipe


def made(name: str) -> nn.Module:
    with torch.device("meta"):
        model: nn.Module = timm.create_model(name, num_classes=5)
    return model


@pytest.mark.parametrize(("name", "blocks", "head"), read_cases("backbones")["blocks"])
def test_blocks_of_known_networks(name: str, blocks: int, head: str) -> None:
    """resnet: units; vgg: convolutions and the dense layers that timm has as convolutions."""
    model = made(name)
    roles = find_roles(model, name)
    assert (len(roles.blocks), roles.head) == (blocks, head)
    assert roles.fully_connected[-1] == roles.layers[-1] == head
    prefixes = [prefix for block in roles.blocks for prefix in block]
    for layer in set(roles.layers) - set(roles.fully_connected):
        assert sum(below(layer, (prefix,)) for prefix in prefixes) == 1, layer
    for stage in roles.stages:
        early, late = RoleMap.from_threshold(model, stage)
        assert early + late == tuple(n for n, _ in model.named_parameters())
    assert model.training
    with torch.device("meta"):
        trunk = timm.create_model(name, num_classes=0)
    assert (find_roles(trunk).head, find_roles(trunk).blocks) == (head, roles.blocks)


def test_a_resnets_roles_are_those_of_our_own() -> None:
    ours = load_architecture("resnet50")
    with torch.device("meta"):
        whole = ours.roles(ours.build(5))
    roles = find_roles(made("resnet50"))
    assert roles.blocks[1:] == whole.blocks[1:]
    assert roles.blocks[0] == ("conv1", "bn1", "act1", "maxpool", "layer1.0")
    assert (roles.layers, roles.stages) == (whole.layers, whole.stages)


class Skip(nn.Module):
    """Three convolutions; a path may go round the second one."""

    def __init__(self, skip: bool) -> None:
        super().__init__()
        self.pretrained_cfg, self.skip = {"classifier": "fc"}, skip
        self.a, self.b, self.c = (nn.Conv2d(3, 3, 1) for _ in range(3))
        self.fc = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        pooled: torch.Tensor = self.c(self.b(x) + (x if self.skip else 0)).mean((2, 3))
        return self.fc(pooled)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("skip", "blocks"), [(False, (("a",), ("b",), ("c",))), (True, (("a",), ("b", "c")))]
)
def test_a_block_ends_where_nothing_goes_round(
    skip: bool, blocks: tuple[tuple[str, ...], ...]
) -> None:
    model = Skip(skip)
    before = {n: p.clone() for n, p in model.named_parameters()}
    assert find_roles(model).blocks == blocks
    assert all(torch.equal(before[n], p) and p.grad is None for n, p in model.named_parameters())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("deit_tiny_distilled_patch16_224", "is no single linear layer"),
        ("inception_v3", "takes no 64 px images"),
    ],
)
def test_what_has_no_such_roles_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        find_roles(made(name), name)
    assert name in caught.value.message
    assert "convolutional" in caught.value.fix


def test_a_width_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(UsageError, match="has its own width"):
        load_architecture("timm/resnet18").build(3, 8)
    with pytest.raises(UsageError, match="unknown timm network 'resnet17'"):
        load_architecture("timm/resnet17")


@pytest.mark.parametrize(
    ("name", "blocks", "first"),
    [
        ("test_vit", 6, ("cls_token", "pos_embed", "patch_embed")),
        ("swin_tiny_patch4_window7_224", 15, ("patch_embed", "layers.0.downsample")),
    ],
)
def test_a_transformer_is_built_for_the_recipes_size(
    name: str, blocks: int, first: tuple[str, ...]
) -> None:
    """By the network's name: patches, then 6 blocks, or 2 + 2 + 6 + 2 and three downsamplings."""
    architecture = load_architecture(f"timm/{name}").at(32)
    with torch.device("meta"):
        model = architecture.build(5)
        assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 5)
    roles = architecture.roles(model)
    assert len(roles.blocks) == blocks
    assert roles.blocks[0][: len(first)] == first
    assert roles.fully_connected == (roles.head,)
    names = {n for n, _ in model.named_parameters()}
    inside = {n for n in names if sum(below(n, block) for block in roles.blocks) == 1}
    assert names - inside == {f"{roles.head}.weight", f"{roles.head}.bias"}


@pytest.mark.parametrize("name", ["test_vit", "sequencer2d_s"])
def test_a_size_that_a_network_cannot_have_is_refused(name: str) -> None:
    architecture = load_architecture(f"timm/{name}").at(8)
    with torch.device("meta"), pytest.raises(UsageError, match=f"{name}.* takes no 8 px images"):
        architecture.roles(architecture.build(5))


def test_recipes_train_networks_of_timm_by_their_roles(tmp_path: Path) -> None:
    """A transformer of one patch per image: its positions are kept, its channels refused."""
    small = source()
    train, val = (
        Split(part.images.repeat(2, axis=2).repeat(2, axis=3), part.labels)
        for part in (small.train, small.val)
    )
    enlarged = replace(small, train=train, val=val)
    assignments = ("architecture=timm/test_vit", "width=null", "input_size=16", "plan.rounds=2")
    run = train_recipe(tiny("lw", *assignments, "lw.generations=true"), enlarged, tmp_path / "lw")
    drawn = {n for line in lines(run, "rewrites.jsonl") for n in line["tensors"]}
    assert "head.weight" in drawn
    assert not {"pos_embed", "cls_token"} & drawn
    per_channel = tiny("lw", *assignments, "lw.statistics=per_channel")
    with pytest.raises(UsageError, match="finds no channels after blocks"):
        train_recipe(per_channel, enlarged, tmp_path / "other")
    nio = train_recipe(tiny("nio", *assignments, "nio.iterations=1"), enlarged, tmp_path / "nio")
    (line,) = lines(nio, "rewrites.jsonl")
    assert "pos_embed" not in line["tensors"]
    backbone = backbones.load_backbone(f"run:{run}")
    assert backbone.facts.architecture == "timm/test_vit"
    assert backbone.features(torch.from_numpy(val.images[:3])).shape == (3, 64)
