"""Checkpoints as training programs write them, through the command line.

Each is loaded to the features of the network that it is from, or refused with a fix that is then
applied as printed: a reference to pass, or a command to run first.
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from support import nets, sweep
from support.cli import CommandLine
from support.reading import read
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones.base import weights_hash
from fsbench.backbones.networks import load_architecture
from fsbench.backbones.preprocessing import IMAGENET_MEAN, IMAGENET_STD
from fsbench.core.seeding import stream
from fsbench.core.specs import FeatureSpec

State = dict[str, Tensor]

TOY = "fsbench/toy_resnet"
RESNET, VIT = "py:support.nets:resnet", "test_vit"
CLIP = "py:support.nets:clip_vit"
REGISTERS, SQUEEZENET = "py:support.nets:register_vit", "torchvision/squeezenet1_1"
MAKERS: dict[str, Callable[[int], nn.Module]] = {
    TOY: load_architecture("toy_resnet").build,
    RESNET: nets.resnet,
    VIT: nets.vit,
    CLIP: nets.clip_vit,
    REGISTERS: nets.register_vit,
    SQUEEZENET: lambda classes: torchvision.models.squeezenet1_1(num_classes=classes),
}
HEADS = ("fc", "head", "linear", "classifier")


def network(arch: str, seed: str = "a") -> nn.Module:
    """The whole network of an architecture, with a classifier of ten classes."""
    with stream("checkpoint", arch, seed):
        return nets.randomise(MAKERS[arch](10))


def state(arch: str, seed: str = "a") -> State:
    return network(arch, seed).state_dict()


def trunk(weights: State) -> State:
    return {n: t for n, t in weights.items() if n.split(".")[0] not in HEADS}


def prefixed(prefix: str, weights: State) -> State:
    return {prefix + n: t for n, t in weights.items()}


def mlp(prefix: str) -> State:
    """A projection head."""
    return {f"{prefix}.0.weight": torch.ones(4, 4), f"{prefix}.2.weight": torch.ones(4, 4)}


def optimizer(weights: State) -> dict[str, Any]:
    moments = {i: {"step": torch.tensor(3.0), "exp_avg": t} for i, t in enumerate(weights.values())}
    return {"state": moments, "param_groups": [{"lr": 0.1, "params": list(moments)}]}


def numbered(weights: State) -> State:
    """The trunk as nn.Sequential(*list(resnet.children())[:-1]) names it."""
    order = ("conv1", "bn1", "act1", "maxpool", "layer1", "layer2", "layer3", "layer4")
    return {
        ".".join([str(order.index(n.split(".")[0])), *n.split(".")[1:]]): t
        for n, t in trunk(weights).items()
    }


def chunked(weights: State) -> State:
    """Blocks of a transformer in two chunks, as DINOv2 trains them."""
    return {re.sub(r"^blocks\.(\d+)", lambda m: f"blocks.{int(m[1]) // 3}.{m[1]}", n): t
            for n, t in weights.items()}  # fmt: skip


def clip_names(weights: State) -> State:
    """A CLIP checkpoint of OpenAI and open_clip for the weights of timm's clip_vit."""
    renames = {
        "cls_token": "class_embedding", "pos_embed": "positional_embedding", "norm_pre": "ln_pre",
        "patch_embed.proj": "conv1", "blocks": "transformer.resblocks", "norm1": "ln_1",
        "norm2": "ln_2", "attn.qkv.": "attn.in_proj_", "attn.proj": "attn.out_proj",
        "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj",
    }  # fmt: skip
    named = {}
    for name, tensor in trunk(weights).items():
        for ours, theirs in renames.items():
            name = re.sub(rf"(^|\.){re.escape(ours)}", rf"\1{theirs}", name)
        name = re.sub(r"^norm\.", "ln_post.", name)
        squeeze = {"class_embedding": (0, 0), "positional_embedding": 0}.get(name)
        named[f"visual.{name}"] = tensor if squeeze is None else tensor[squeeze]
    text = {"transformer.resblocks.0.ln_1.weight": torch.ones(4), "logit_scale": torch.tensor(1.0)}
    return {**named, "visual.proj": torch.ones(64, 12), **text}


def register_names(weights: State) -> State:
    """The file of DINOv2 with registers: positions of all tokens, the first for the cls token."""
    named = trunk(weights)
    return {
        **{n: t for n, t in named.items() if n != "reg_token"},
        "register_tokens": named["reg_token"],
        "cls_token": torch.zeros_like(named["cls_token"]),
        "pos_embed": torch.cat([named["cls_token"], named["pos_embed"]], dim=1),
        "mask_token": torch.ones(1, 64),
    }


SETTINGS = argparse.Namespace(model="test_vit", lr=0.1, output=Path("out"), decay=None)
TIMM = {"epoch": 3, "arch": "test_vit", "args": SETTINGS, "version": 2, "metric": np.float64(71.5)}

LOADED: dict[str, tuple[str, Callable[[State], Any]]] = {
    "wrapped with an optimizer": (TOY, lambda w: {"state_dict": w, "optimizer": optimizer(w)}),
    "at any depth": (TOY, lambda w: {"run": {"net": {"deep": prefixed("inner.", w)}}}),
    "compiled data parallel": (TOY, lambda w: {"model": prefixed("_orig_mod.module.", w)}),
    "without batch counters": (TOY, lambda w: {n: t for n, t in w.items() if "num_b" not in n}),
    "parameters": (TOY, lambda w: {
        n: nn.Parameter(t, t.is_floating_point()) for n, t in w.items()}),
    "Lightning": (TOY, lambda w: {
        "state_dict": {**prefixed("model.", w), "criterion.weight": torch.ones(10)},
        "hyper_parameters": {"arch": "toy", "lr": 0.1}, "pytorch-lightning_version": "2.5"}),
    "Lightning, backbone": (TOY, lambda w: {
        "state_dict": {**prefixed("backbone.", trunk(w)), "classifier.weight": torch.ones(3, 4)}}),
    "averaged by torch": (TOY, lambda w: {**prefixed("module.", w), "n_averaged": torch.tensor(5)}),
    "counted by a profiler": (TOY, lambda w: {
        **w, "total_ops": torch.zeros(1), "layer1.total_params": torch.zeros(1)}),
    "a classifier called linear": (TOY, lambda w: {
        **prefixed("module.", trunk(w)), "module.linear.weight": torch.ones(3, 4)}),
    "backbone and classifier in a Sequential": (TOY, lambda w: {
        **prefixed("0.", trunk(w)), "1.weight": torch.ones(3, 4)}),
    "timm train.py": (VIT, lambda w: {**TIMM, "state_dict": w, "optimizer": optimizer(w)}),
    "MoCo v2": (RESNET, lambda w: {"arch": "resnet50", "state_dict": {
        **prefixed("module.encoder_q.", trunk(w)), **mlp("module.encoder_q.fc"),
        **prefixed("module.encoder_k.", {n: 2 * t for n, t in trunk(w).items()}),
        **mlp("module.encoder_k.fc"), "module.queue": torch.ones(4, 4)}}),
    "MoCo v3": (VIT, lambda w: {"arch": "vit_small", "state_dict": {
        **prefixed("module.base_encoder.", trunk(w)), **mlp("module.base_encoder.head"),
        **prefixed("module.momentum_encoder.", {n: 2 * t for n, t in trunk(w).items()}),
        **mlp("module.momentum_encoder.head"), **mlp("module.predictor")}}),
    "SwAV": (RESNET, lambda w: {
        **prefixed("module.", trunk(w)), **mlp("module.projection_head"),
        "module.prototypes.weight": torch.ones(4, 4)}),
    "SimCLR, a Sequential trunk": (RESNET, lambda w: {
        **prefixed("backbone.", numbered(w)), **mlp("projection_head.layers")}),
    "Barlow Twins": (RESNET, lambda w: {"model": {
        **prefixed("module.backbone.", trunk(w)), **mlp("module.projector"),
        "module.bn.running_mean": torch.ones(4)}}),
    "a Sequential trunk alone": (RESNET, numbered),
    "DINO, the teacher alone": (VIT, lambda w: {"teacher": {
        **prefixed("backbone.", trunk(w)), **mlp("head.mlp"),
        "head.last_layer.weight_g": torch.ones(4, 1)}}),
    "DINOv2, the teacher alone": (VIT, lambda w: {"teacher": {
        **prefixed("backbone.", trunk(w)), "backbone.mask_token": torch.ones(1, 64),
        **mlp("dino_head.mlp"), **mlp("ibot_head.mlp")}}),
    "DINOv2, blocks in chunks": (VIT, lambda w: {"teacher": {
        **prefixed("backbone.", chunked(trunk(w))), "backbone.mask_token": torch.ones(1, 64)}}),
    "MAE with its decoder": (VIT, lambda w: {"args": SETTINGS, "scaler": {}, "model": {
        **trunk(w), "mask_token": torch.ones(1, 1, 8), "decoder_pos_embed": torch.ones(1, 5, 8),
        "decoder_embed.weight": torch.ones(8, 64), "decoder_blocks.0.norm1.weight": torch.ones(8),
        "decoder_pred.bias": torch.ones(8)}}),
    "SimMIM": (VIT, lambda w: {"model": {
        **prefixed("encoder.", trunk(w)), "encoder.mask_token": torch.ones(1, 1, 64),
        "decoder.0.weight": torch.ones(8, 64, 1, 1)}}),
    "open_clip with an image tower of timm": (VIT, lambda w: {"state_dict": {
        **prefixed("module.visual.trunk.", trunk(w)),
        "module.visual.head.proj.weight": torch.ones(4, 64),
        "module.transformer.resblocks.0.ln_1.weight": torch.ones(4)}}),
    "DINOv2 with registers": (REGISTERS, register_names),
    "torchvision": (SQUEEZENET, lambda w: {"net": prefixed("module.", w)}),
    "CLIP, in an architecture of timm": (CLIP, clip_names),
}  # fmt: skip
"""Files that hold the weights of one network, however they name them."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two classes of noise, large enough for one episode."""
    return sweep.images(tmp_path_factory.mktemp("images") / "noise", 2, 16, side=32)


class Evaluate:
    """`fsbench episodic` on the images, which ends with an exit code and says what it does."""

    def __init__(self, images: Path, output: Path, cli: CommandLine) -> None:
        self.images, self.output, self.cli = images, output, cli

    def __call__(self, *models: str, code: int = 0) -> str:
        arguments = [part for model in models for part in ("-m", model)]
        task = ("-t", f"folder:{self.images}:2w1s", "--episodes", "2", "--input-size", "32")
        task += ("--mean", "imagenet", "--std", "imagenet", "-o", str(self.output))
        return self.cli("episodic", *arguments, *task, "--device", "cpu", code=code).err

    def fix(self, code: int, model: str) -> str:
        """Return the fix of a refusal."""
        return self(model, code=code).partition("fix: ")[2].strip()


@pytest.fixture
def fsbench(images: Path, tmp_path: Path, cli: CommandLine) -> Evaluate:
    return Evaluate(images, tmp_path / "results", cli)


def save(content: object, tmp_path: Path, arch: str = "", name: str = "a.pth") -> str:
    """Save a checkpoint and return its reference."""
    torch.save(content, tmp_path / name)
    return f"{tmp_path / name}{f'@{arch}' if arch else ''}"


def assert_same_features(fsbench: Evaluate, model: str, arch: str, weights: State) -> None:
    """The command evaluates the trunk of these weights, with the features of the whole network."""
    whole = network(arch)
    whole.load_state_dict(weights)
    for name in HEADS:
        if isinstance(getattr(whole, name, None), nn.Linear):
            setattr(whole, name, nn.Identity())
    if arch == SQUEEZENET:
        whole.get_submodule("classifier").register_module("1", nn.Identity())
    fsbench(model)
    (result,) = read(fsbench.output)
    assert result.backbone.weights_hash == weights_hash(trunk(weights))
    imagenet = FeatureSpec(mean=IMAGENET_MEAN, std=IMAGENET_STD)
    backbone = backbones.load_backbone(model, features=imagenet)
    pixels = torch.linspace(0, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)
    with torch.no_grad():
        expected = whole.eval()(backbone.normalised(pixels))
    torch.testing.assert_close(backbone.features(pixels), expected)


@pytest.mark.parametrize("shape", LOADED)
def test_a_file_with_one_network_is_loaded(shape: str, fsbench: Evaluate, tmp_path: Path) -> None:
    arch, write = LOADED[shape]
    weights = state(arch)
    assert_same_features(fsbench, save(write(weights), tmp_path, arch), arch, weights)


CHOICES: dict[str, tuple[str, Callable[[State, State], Any]]] = {
    "timm train.py with an average": (VIT, lambda a, b: {
        **TIMM, "state_dict": a, "state_dict_ema": b}),
    "a model and its average": (TOY, lambda a, b: {"model": a, "model_ema": b}),
    "DINO": (VIT, lambda a, b: {
        "student": {**prefixed("module.backbone.", trunk(a)), **mlp("module.head.mlp")},
        "teacher": {**prefixed("backbone.", trunk(b)), **mlp("head.mlp")}}),
    "BYOL": (RESNET, lambda a, b: {"state_dict": {
        **prefixed("online_network.", trunk(a)), **prefixed("target_network.", trunk(b)),
        **mlp("predictor")}}),
    "two networks of a GAN": (TOY, lambda a, b: {"net_a": a, "net_b": prefixed("module.", b)}),
    "a network and a copy in the same names": (TOY, lambda a, b: {
        **trunk(a), **prefixed("momentum.", trunk(b))}),
}  # fmt: skip
"""Files with two networks: the message names both, and each reference is applied."""


@pytest.mark.parametrize("shape", CHOICES)
def test_of_two_networks_the_user_chooses(shape: str, fsbench: Evaluate, tmp_path: Path) -> None:
    arch, write = CHOICES[shape]
    both = state(arch), state(arch, "b")
    fix = fsbench.fix(4, save(write(*both), tmp_path, arch))
    references = fix.removeprefix("choose one: ").split(" or ")
    for i, (reference, weights) in enumerate(zip(references, both, strict=True)):
        fsbench.output = tmp_path / f"results{i}"
        assert_same_features(fsbench, reference, arch, weights)


def test_what_does_not_belong_to_the_network_is_named(fsbench: Evaluate, tmp_path: Path) -> None:
    """A network without the layer scales of its file would fit, and would be another one."""
    tree = {**prefixed("module.", state(TOY)), "module.queue": torch.ones(4)}
    fix = fsbench.fix(4, save({"state_dict": tree}, tmp_path, TOY))
    assert "take queue out of the file" in fix
    model = save(register_names(state(REGISTERS)), tmp_path, f"{REGISTERS}?scale=false")
    assert "unexpected 4: blocks.0.ls1.gamma" in fsbench(model, code=4)


@pytest.mark.parametrize("arch", ["", "test_vit2"])
def test_the_architecture_that_a_file_names_is_proposed(
    arch: str, fsbench: Evaluate, tmp_path: Path
) -> None:
    weights = state(VIT)
    model = save({**TIMM, "arch": "vit_ours", "state_dict": weights}, tmp_path, arch)
    (reference,) = re.findall(r"\S+@test_vit\b", fsbench.fix(4 if arch else 2, model))
    assert_same_features(fsbench, reference.strip("'"), VIT, weights)


def test_position_embeddings_of_another_image_size(fsbench: Evaluate, tmp_path: Path) -> None:
    import timm

    with stream("small positions"):
        net = nets.randomise(timm.create_model("test_vit", img_size=64, num_classes=0))
    (reference,) = re.findall(r"'(.+)'", fsbench.fix(4, save(net.state_dict(), tmp_path, VIT)))
    assert reference.endswith("?img_size=64")
    fsbench(reference)
    (result,) = read(fsbench.output)
    assert result.backbone.weights_hash == weights_hash(net.state_dict())
    assert result.backbone.input_size == 64


def test_a_cifar_resnet_by_its_function_beside_a_file_of_another(
    fsbench: Evaluate, tmp_path: Path
) -> None:
    """As a well-known repository writes it: `module.` names, and a classifier called linear."""
    with stream("cifar", 20):
        net = nets.randomise(nets.cifar_resnet(20, classes=10))
    tree = {"state_dict": prefixed("module.", net.state_dict()), "best_prec1": 92.6}
    model = save(tree, tmp_path, "py:support.nets:cifar_resnet?depth=20", "resnet.th.pth")
    assert "dropped head 2: linear.weight, linear.bias" in fsbench(model)
    other = save(state(VIT), tmp_path, VIT)
    fsbench(model, other)
    facts = {result.backbone.ref: result.backbone for result in read(fsbench.output)}
    assert facts.keys() == {model, other}
    assert (facts[model].feature_dim, facts[model].input_size) == (64, 32)
    assert facts[model].weights_hash == weights_hash(trunk(net.state_dict()))
    assert "does not fit" in fsbench(model.replace("depth=20", "depth=32"), code=4)


def test_dropped_names_come_with_the_reason(fsbench: Evaluate, tmp_path: Path) -> None:
    arch, write = LOADED["MoCo v2"]
    weights = state(arch)
    text = fsbench(save(write(weights), tmp_path, arch))
    assert "in 'state_dict.module.encoder_q', prefix 'module.encoder_q.' stripped" in text
    assert "dropped head 2: fc.0.weight, fc.2.weight (a classifier acts after the features)" in text
    assert "dropped outside 81: module.encoder_k." in text
    assert "outside the part that has all weights of the architecture" in text
    twin = f"{tmp_path / 'a.pth'}::state_dict.module.encoder_k@{arch}"
    fsbench.output = fsbench.output / "twin"
    doubled = {n: 2 * t if n in trunk(weights) else t for n, t in weights.items()}
    assert_same_features(fsbench, twin, arch, doubled)
