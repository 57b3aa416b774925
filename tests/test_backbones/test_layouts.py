"""Published layouts of files: recognition by names, renaming, and what they fix of a network."""

import itertools
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from support import nets
from support.cases import read_cases
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones.base import fixed_images, weights_hash
from fsbench.backbones.layouts import WRAPPERS, drop_wrappers, recognise_layouts, recognise_library
from fsbench.backbones.matching import iterate_states
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.schema import BackboneFacts
from fsbench.core.seeding import stream

State = dict[str, Tensor]
Save = Callable[[Any], str]


def network(name: str, **options: Any) -> nn.Module:
    """A network of timm with random weights, and statistics of norms that are not 0 and 1."""
    with stream("layout", name):
        return nets.randomise(timm.create_model(name, **options)).eval()


def prefixed(prefix: str, weights: State) -> State:
    return {prefix + name: tensor for name, tensor in weights.items()}


def assert_same(ref: str, whole: nn.Module, side: int, **options: Any) -> BackboneFacts:
    """The reference gives the features of this network without a head; return its facts."""
    backbone = backbones.load_backbone(ref, **options)
    with torch.no_grad():
        images = fixed_images(side)
        torch.testing.assert_close(backbone.module(images), whole(images))
    return backbone.facts


PATTERNS = (r"^", r"^(blocks\.\d+\.)", r"^(patch_embed\.)", r"(\.)(?=weight$|bias$)")
"""Positions of wrappers in a name: its start, after a block or the stem, before the leaf."""


@pytest.mark.parametrize(("wrapper", "pattern"), list(zip(WRAPPERS, PATTERNS * 2, strict=False)))
def test_wrappers_are_dropped_anywhere_in_a_name(wrapper: str, pattern: str, save: Save) -> None:
    state = network("test_vit", num_classes=0).state_dict()
    renamed = {re.sub(pattern, rf"\g<0>{wrapper}.", n): tensor for n, tensor in state.items()}
    assert renamed.keys() != state.keys()
    facts = backbones.load_backbone(f"{save({'model': renamed})}@test_vit").facts
    assert facts.weights_hash == weights_hash(state)


@pytest.mark.parametrize(
    ("prefixes", "inner"), [(("", "module."), ""), (("module.a.", "module.b."), "_orig_mod.")]
)
def test_wrappers_of_two_sets_of_weights_leave_two(
    prefixes: tuple[str, str], inner: str, save: Save
) -> None:
    """Without wrappers both would have the same names; parts are named as in the file."""
    state = network("test_vit", num_classes=0).state_dict()
    wrapped = {re.sub(r"^blocks\.\d\.", rf"\g<0>{inner}", n): t for n, t in state.items()}
    other = {name: tensor + 1 for name, tensor in wrapped.items()}
    path = save({**prefixed(prefixes[0], wrapped), **prefixed(prefixes[1], other)})
    with pytest.raises(CheckpointError, match="several sets of weights that fit") as caught:
        backbones.load_backbone(f"{path}@test_vit")
    reference = caught.value.fix.removeprefix("choose one: ").split(" or ")[1]
    assert reference == f"{path}::{prefixes[1][:-1]}@test_vit"
    loaded = backbones.load_backbone(reference).module.state_dict()
    assert torch.equal(loaded["cls_token"], other["cls_token"])


def test_wrappers_that_a_network_has_are_kept() -> None:
    keeping = drop_wrappers("module.encoder._orig_mod.conv.weight", {"module"})
    assert keeping == "module.encoder.conv.weight"


def moco_v3(weights: State) -> Any:
    head = {"module.base_encoder.head.0.weight": torch.ones(4, 4)}
    predictor = {"module.predictor.0.weight": torch.ones(4, 4)}
    momentum = prefixed("module.momentum_encoder.", {n: t + 1 for n, t in weights.items()})
    both = {**prefixed("module.base_encoder.", weights), **momentum}
    return {"arch": "vit_small", "state_dict": {**both, **head, **predictor}}


@pytest.mark.parametrize(("stated", "heads"), [("", 12), ("&num_heads=6", 6)])
def test_moco_v3_has_twelve_heads_unless_the_user_states_others(
    stated: str, heads: int, save: Save, report: Any
) -> None:
    arch = "deit_small_patch16_224"
    net = network(arch, depth=2, num_heads=heads, num_classes=0, dynamic_img_size=True)
    ref = f"{save(moco_v3(net.state_dict()))}@{arch}?depth=2{stated}"
    facts = assert_same(ref, net, 64, report=report)
    assert ("is MoCo v3: num_heads=12 (https://arxiv.org" in report.text) == (heads == 12)
    control = backbones.load_backbone(ref, random_init=0).facts
    assert control.architecture == facts.architecture == f"{arch}?depth=2&num_heads={heads}"
    assert control.mean == facts.mean
    with pytest.raises(UsageError, match="nonsense"):
        backbones.load_backbone(f"{ref}&nonsense=1")


def moco_positions(side: int, width: int) -> Tensor:
    """As vits.py of MoCo v3 builds them, patch by patch."""
    omega = [10000 ** (-i / (width // 4)) for i in range(width // 4)]
    rows = [
        [f(x * w) for x in patch for f in (math.sin, math.cos) for w in omega]
        for patch in itertools.product(range(side), repeat=2)
    ]
    return torch.tensor([[[0.0] * width, *rows]])


def test_converted_files_of_moco_v3_are_told_by_their_positions() -> None:
    """What its convert_to_deit.py and its linear evaluation write has the names of any ViT."""
    positions = moco_positions(14, 384)
    swapped = torch.cat([positions[..., 192:], positions[..., :192]], dim=-1)  # columns first, MAE
    others = (swapped, torch.zeros(1, 197, 384), torch.ones(1, 4, 384))
    cases = [(positions, True), (positions.half(), True), *((other, False) for other in others)]
    for tensor, is_moco in cases:
        layouts = recognise_layouts([("model", {"module.pos_embed": tensor})])
        arguments = [layout.arguments_for("vit_small_patch16_224") for layout in layouts]
        assert arguments == [{"num_heads": 12}] * is_moco


def test_fine_tuned_networks_average_their_patches(save: Save) -> None:
    net: Any = network("test_vit", num_classes=10, global_pool="avg")
    path = save({"model": net.state_dict()})
    net.reset_classifier(0)
    assert_same(f"{path}@test_vit", net, 160)


def efficientnet_names(weights: State) -> State:
    """Weights of timm's network in the names of EfficientNet-PyTorch, built block by block."""
    outer = {"conv_stem": "_conv_stem", "bn1": "_bn0", "conv_head": "_conv_head", "bn2": "_bn1",
             "classifier": "_fc"}  # fmt: skip
    inner = {"conv_pw": "_expand_conv", "bn1": "_bn0", "conv_dw": "_depthwise_conv", "bn2": "_bn1",
             "conv_pwl": "_project_conv", "bn3": "_bn2"}  # fmt: skip
    first = {"conv_dw": "_depthwise_conv", "bn1": "_bn1", "conv_pw": "_project_conv", "bn2": "_bn2"}
    squeeze = {"conv_reduce": "_se_reduce", "conv_expand": "_se_expand"}
    blocks: list[str] = []
    named = {}
    for name, tensor in weights.items():
        parts = name.split(".")
        if parts[0] != "blocks":
            named[".".join([outer[parts[0]], *parts[1:]])] = tensor
            continue
        if (block := ".".join(parts[:3])) not in blocks:
            blocks.append(block)
        layers = inner if f"{block}.conv_pwl.weight" in weights else first
        layer = squeeze[parts[4]] if parts[3] == "se" else layers[parts[3]]
        named[f"_blocks.{blocks.index(block)}.{layer}.{parts[-1]}"] = tensor
    return named


@pytest.mark.parametrize("name", ["lite0", "b1"])
def test_efficientnets_in_the_names_of_efficientnet_pytorch(
    name: str, save: Save, report: Any
) -> None:
    net = network(f"tf_efficientnet_{name}", num_classes=10)
    path = save(prefixed("module.", efficientnet_names(net.state_dict())))
    net.reset_classifier(0)
    assert_same(f"{path}@tf_efficientnet_{name}", net, 64, report=report)
    assert "dropped head 2: classifier.weight" in report.text
    with pytest.raises(CheckpointError, match="another padding and epsilon") as caught:
        backbones.load_backbone(f"{path}@efficientnet_{name}")
    assert caught.value.fix == f"pass {path}@tf_efficientnet_{name}"


def test_efficientnets_of_timm_are_told_apart_or_both_are_named(
    tmp_path: Path, report: Any
) -> None:
    state = network("efficientnet_b0", num_classes=0).state_dict()
    plain, named, settings = (tmp_path / f"{n}.pth" for n in ("a", "tf_efficientnet_b0", "b"))
    torch.save(state, plain)
    torch.save(state, named)
    torch.save({"state_dict": state, "args": {"model": "tf_efficientnet_b0"}}, settings)
    backbones.load_backbone(f"{plain}@efficientnet_b0", report=report)
    assert "efficientnet_b0 has the shapes of tf_efficientnet_b0" in report.text
    for path in (named, settings):
        with pytest.raises(CheckpointError, match="is of tf_efficientnet_b0"):
            backbones.load_backbone(f"{path}@efficientnet_b0")


def test_files_of_the_original_authors_are_renamed_by_timm(save: Save) -> None:
    """Layer scales as DeiT III names them, beside a head and in a part that is named."""
    with stream("deit3"):
        net = nets.randomise(nets.register_vit(classes=3))
    state = {re.sub(r"ls([12])\.gamma$", r"gamma_\1", n): t for n, t in net.state_dict().items()}
    path = save({"model": {**prefixed("backbone.", state), "queue": torch.ones(2)}})
    net.head = nn.Identity()
    assert_same(f"{path}::model.backbone@py:support.nets:register_vit", net, 32)


@pytest.mark.parametrize(
    ("name", "pattern", "old"),
    [
        ("densenet121", r"(denselayer\d+\.(?:norm|relu|conv))([12]\.)", r"\1.\2"),
        ("vit_b_32", r"\.mlp\.(\d)\.", lambda m: f".mlp.linear_{ {'0': 1, '3': 2}[m[1]] }."),
    ],
)
def test_official_files_of_old_versions_of_torchvision(name: str, pattern: str, old: Any) -> None:
    with torch.device("meta"):
        state = torchvision.models.get_model(name, num_classes=10).state_dict()
    spelled = {re.sub(pattern, old, new): new for new in state}
    (layout,) = recognise_layouts([("", {old: state[new] for old, new in spelled.items()})])
    assert spelled.keys() != state.keys()
    assert layout.rename(spelled, state) == spelled


GOLDEN = read_cases("foreign_files")
ROWS: dict[str, list[str]] = GOLDEN["layouts"]


def nested(names: Iterable[str]) -> dict[str, Any]:
    """A checkpoint with these names; the first part of DINO's and I-JEPA's is a mapping."""
    tree: dict[str, Any] = {}
    for name in names:
        first, _, rest = name.partition(".")
        if first in {"teacher", "student", "target_encoder", "predictor"}:
            tree.setdefault(first, {})[rest] = torch.ones(1)
        else:
            tree[name] = torch.ones(1)
    return tree


@pytest.mark.parametrize("layout", ROWS)
def test_published_layouts_are_recognised_by_all_of_their_names(layout: str) -> None:
    first = recognise_layouts(iterate_states(nested(ROWS[layout])))[0]
    assert first.name == layout
    assert first.statistics is not None
    assert "github.com/" in first.source
    for mark in ROWS[layout]:
        others = recognise_layouts(iterate_states(nested({*ROWS[layout]} - {mark})))
        assert layout not in {other.name for other in others}


@pytest.mark.parametrize(
    ("layout", "prefix", "std"), [("MAE", "", 0.229), ("SwAV", "module.", 0.228)]
)
def test_a_layout_states_the_normalisation(
    layout: str, prefix: str, std: float, save: Save
) -> None:
    state = network("test_vit", num_classes=0).state_dict()
    path = save({**prefixed(prefix, state), **{n: torch.ones(1) for n in ROWS[layout]}})
    facts = backbones.load_backbone(f"{path}@test_vit").facts
    assert (facts.mean, facts.std) == ((0.485, 0.456, 0.406), (std, 0.224, 0.225))
    assert backbones.load_backbone(f"{save(state)}@test_vit").facts.mean is None


def test_names_that_many_programs_write_state_nothing() -> None:
    for names in GOLDEN["common"].values():
        assert recognise_layouts(iterate_states(nested(names))) == []
    assert recognise_library(iterate_states({"ours.first.weight": torch.ones(1)})) == ("", "")


@pytest.mark.parametrize(("name", "library"), GOLDEN["libraries"].items())
def test_a_match_of_no_names_says_whose_they_look_like(name: str, library: str, save: Save) -> None:
    names = [name, "_conv_stem.weight"] if "_blocks" in name else [name]
    tree = dict.fromkeys(names, torch.ones(3))
    assert recognise_library(iterate_states(tree))[0] == library
    with pytest.raises(CheckpointError, match="does not fit") as caught:
        backbones.load_backbone(f"{save(tree)}@fsbench/toy_resnet")
    assert library in caught.value.fix
    assert "architecture" not in caught.value.fix


def test_a_mapping_that_contains_itself_many_times_is_looked_at_once() -> None:
    tree: dict[str, Any] = {"blocks.0.attn.qkv.weight": torch.ones(1)}
    tree |= {str(i): tree for i in range(100)}
    assert recognise_layouts(iterate_states(tree)) == []
    assert recognise_library(iterate_states(tree))[0] == "timm"
