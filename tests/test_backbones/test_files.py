"""Checkpoint files through `load(FILE, arch=...)`: wrappers, prefixes, choices, strictness."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from support.checkpoints import PREFIXES, WRAPPERS
from torch import Tensor

from fsbench import backbones
from fsbench.backbones.base import weights_hash
from fsbench.backbones.matching import HEADS
from fsbench.backbones.networks import load_architecture
from fsbench.backbones.preprocessing import IMAGENET_MEAN, IMAGENET_STD
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.seeding import stream
from fsbench.core.specs import FeatureSpec

Weights = dict[str, Tensor]
ARCH = "fsbench/toy_resnet"


def make(name: str) -> Weights:
    with stream("file", name):
        return load_architecture("toy_resnet").build(7).state_dict()


@pytest.fixture
def weights() -> Weights:
    return make("plain")


@pytest.fixture
def save(tmp_path: Path) -> Callable[[Any], str]:
    def write(tree: Any) -> str:
        torch.save(tree, tmp_path / "weights.pth")
        return str(tmp_path / "weights.pth")

    return write


def hash_of(ref: str, **options: Any) -> str:
    return backbones.load_backbone(ref, arch=ARCH, **options).facts.weights_hash


def test_a_plain_state_dict(weights: Weights, save: Callable[[Any], str]) -> None:
    assert hash_of(save(weights)) == weights_hash(weights, ("fc",))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_wrapper(wrapper: str, weights: Weights, save: Callable[[Any], str]) -> None:
    path = save({wrapper: weights, "epoch": 3, "optimizer": {"state": {0: {"m": torch.ones(1)}}}})
    assert hash_of(path) == weights_hash(weights, ("fc",))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_prefix(prefix: str, weights: Weights, save: Callable[[Any], str]) -> None:
    path = save({"state_dict": {prefix + name: t for name, t in weights.items()}})
    assert hash_of(path) == weights_hash(weights, ("fc",))


@pytest.mark.parametrize("head", HEADS)
def test_a_head_beside_the_prefix_is_dropped_and_told(
    head: str, weights: Weights, save: Callable[[Any], str], report: Any
) -> None:
    trunk = {f"feature.{n}": t for n, t in weights.items() if not n.startswith("fc.")}
    path = save({"state": {**trunk, f"{head}.weight": torch.ones(2, 2)}})
    assert hash_of(path, report=report) == weights_hash(weights, ("fc",))
    assert "prefix 'feature.' stripped" in report.text
    assert f"dropped head 1: {head}.weight" in report.text


def test_prefixes_stand_inside_each_other(weights: Weights, save: Callable[[Any], str]) -> None:
    path = save({"module._orig_mod.backbone." + name: t for name, t in weights.items()})
    assert hash_of(path) == weights_hash(weights, ("fc",))


def test_a_teacher_with_its_own_head(weights: Weights, save: Callable[[Any], str]) -> None:
    tree = {f"teacher.backbone.{n}": t for n, t in weights.items() if not n.startswith("fc.")}
    tree["teacher.head.mlp.0.weight"] = torch.ones(2)
    assert hash_of(save(tree)) == weights_hash(weights, ("fc",))


def test_a_prefix_that_only_some_share_is_not_stripped(
    weights: Weights, save: Callable[[Any], str]
) -> None:
    tree = {("stage." + n if n.startswith("layer1") else n): t for n, t in weights.items()}
    with pytest.raises(CheckpointError, match=r"unexpected \d+: stage\.layer1"):
        hash_of(save(tree))


@pytest.mark.parametrize(
    ("first", "second"),
    [("state_dict", "state_dict_ema"), ("model", "model_ema"), ("teacher", "student")],
)
def test_between_two_sets_of_weights_the_user_chooses(
    first: str, second: str, weights: Weights, save: Callable[[Any], str]
) -> None:
    other = make("average")
    path = save({first: weights, second: other})
    with pytest.raises(CheckpointError, match="several sets of weights") as caught:
        hash_of(path)
    assert f"{path}::{second}" in caught.value.fix
    assert hash_of(f"{path}::{first}") == weights_hash(weights, ("fc",))
    assert hash_of(f"{path}::{second}") == weights_hash(other, ("fc",))


def test_an_empty_average_is_no_choice(weights: Weights, save: Callable[[Any], str]) -> None:
    path = save({"model": weights, "model_ema": None, "state_dict_ema": {}})
    assert hash_of(path) == weights_hash(weights, ("fc",))


def test_flat_sub_trees_are_chosen_by_their_prefix(
    weights: Weights, save: Callable[[Any], str]
) -> None:
    other = make("momentum")
    tree = {f"encoder.{n}": t for n, t in weights.items()}
    tree |= {f"momentum_encoder.{n}": t for n, t in other.items()}
    path = save({"state_dict": tree})
    with pytest.raises(CheckpointError, match="several sets of weights") as caught:
        hash_of(path)
    assert f"{path}::state_dict.momentum_encoder" in caught.value.fix
    assert hash_of(f"{path}::state_dict.momentum_encoder") == weights_hash(other, ("fc",))


def test_a_part_that_is_not_there(weights: Weights, save: Callable[[Any], str]) -> None:
    with pytest.raises(CheckpointError, match="no part 'ema'; it contains model, epoch"):
        hash_of(save({"model": weights, "epoch": 1}) + "::ema")


def test_a_dictionary_without_tensors(save: Callable[[Any], str]) -> None:
    with pytest.raises(CheckpointError, match=r"no weights where they are looked for.*epoch"):
        hash_of(save({"epoch": 1, "net": {"deep": {"deeper": 1.0}}}))


def test_weights_are_found_at_any_depth(weights: Weights, save: Callable[[Any], str]) -> None:
    path = save({"epoch": 1, "net": {"deep": {"ours.deeper." + n: t for n, t in weights.items()}}})
    assert hash_of(path) == weights_hash(weights, ("fc",))


def test_old_files_without_batch_counters(weights: Weights, save: Callable[[Any], str]) -> None:
    old = {n: t for n, t in weights.items() if "num_batches" not in n}
    assert hash_of(save(old)) == weights_hash(weights, ("fc",))


def test_missing_and_left_over_names_are_listed_up_to_ten(
    weights: Weights, save: Callable[[Any], str], report: Any
) -> None:
    del weights["layer3.0.bn2.running_mean"]
    weights |= {f"projector.{i}.weight": torch.ones(1) for i in range(12)}
    with pytest.raises(CheckpointError) as caught:
        hash_of(save(weights), report=report)
    message = caught.value.message
    assert "missing 1: layer3.0.bn2.running_mean" in message
    assert "unexpected 12: projector.0.weight" in message
    assert "projector.9.weight and 2 more" in message
    assert "projector.10" not in message
    assert "weights.pth: dropped head 2: fc.weight, fc.bias" in report.text


def test_left_over_names_alone_are_an_error(weights: Weights, save: Callable[[Any], str]) -> None:
    weights["queue"] = torch.ones(3)
    with pytest.raises(CheckpointError, match="unexpected 1: queue"):
        hash_of(save(weights))


def test_wrong_shapes_name_both(weights: Weights, save: Callable[[Any], str]) -> None:
    weights["conv1.weight"] = torch.ones(8, 3, 7, 7)
    with pytest.raises(
        CheckpointError, match=r"conv1\.weight is \(8, 3, 7, 7\), not \(8, 3, 3, 3\)"
    ):
        hash_of(save(weights))


def test_integers_where_weights_belong(weights: Weights, save: Callable[[Any], str]) -> None:
    weights["bn1.weight"] = torch.ones(8, dtype=torch.int64)
    with pytest.raises(CheckpointError, match=r"bn1\.weight is torch\.int64"):
        hash_of(save(weights))


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_weights_that_are_not_finite(
    value: float, weights: Weights, save: Callable[[Any], str]
) -> None:
    weights["layer1.0.conv1.weight"][0, 0, 0, 0] = value
    path = save(weights)
    with pytest.raises(
        CheckpointError, match=r"NaN or infinity.*layer1\.0\.conv1\.weight"
    ) as caught:
        hash_of(path)
    assert path in caught.value.message


def test_half_precision_is_read_as_float32(weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "half.safetensors"
    save_file({n: t.half() if t.is_floating_point() else t for n, t in weights.items()}, path)
    backbone = backbones.load_backbone(str(path), arch=ARCH)
    assert {p.dtype for p in backbone.module.parameters()} == {torch.float32}
    expected = weights["conv1.weight"].half().float()
    assert torch.equal(backbone.module.get_submodule("conv1").weight, expected)


def test_a_timm_architecture(tmp_path: Path) -> None:
    import timm

    with stream("timm file"):
        model = timm.create_model("test_resnet", num_classes=11).eval()
    torch.save({"state_dict": model.state_dict()}, tmp_path / "last.pth.tar")
    backbone = backbones.load_backbone(
        str(tmp_path / "last.pth.tar"),
        arch="test_resnet",
        features=FeatureSpec(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)),
    )
    model.reset_classifier(0)
    images = torch.linspace(0, 1, 2 * 3 * 64 * 64).view(2, 3, 64, 64)
    mean, std = (
        torch.tensor(v).view(1, 3, 1, 1) for v in (backbone.facts.mean, backbone.facts.std)
    )
    with torch.no_grad():
        expected = model((images - mean) / std)
    torch.testing.assert_close(backbone.features(images), expected)
    assert (backbone.facts.source, backbone.facts.architecture) == ("file", "test_resnet")


def test_a_file_needs_its_architecture(weights: Weights, save: Callable[[Any], str]) -> None:
    path = save(weights)
    with pytest.raises(UsageError, match=r"weights\.pth is a file of weights") as caught:
        backbones.load_backbone(path)
    assert "--arch" in caught.value.fix
    with pytest.raises(UsageError, match="'resnet81'") as caught:
        backbones.load_backbone(path, arch="resnet81")
    assert "resnet18" in caught.value.fix


def test_the_control_of_a_file_has_none_of_its_weights(
    weights: Weights, save: Callable[[Any], str]
) -> None:
    backbone = backbones.load_backbone(
        save(weights),
        arch=ARCH,
        random_init=5,
        features=FeatureSpec(mean=IMAGENET_MEAN, std=IMAGENET_STD),
    )
    assert backbone.facts.weights_hash == hash_of_fresh(5)
    assert backbone.facts.random_init == 5


def hash_of_fresh(seed: int) -> str:
    return backbones.load_backbone(ARCH, random_init=seed).facts.weights_hash
