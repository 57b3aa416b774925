"""Pooling, layers and classifiers left on: what is taken, and what is refused with a way out."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

import fsbench
from fsbench import backbones
from fsbench.backbones.base import feature_spec
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.schema import BackboneFacts
from fsbench.results.names import model_name

SIDE = 160


def load(name: str, pool: str = "native", layers: str = "last") -> backbones.Backbone:
    return backbones.load_backbone(name, random_init=0, features=feature_spec(pool, layers))


def images(backbone: backbones.Backbone, side: int = SIDE) -> Tensor:
    return backbone.normalised(torch.linspace(0, 1, 2 * 3 * side**2).view(2, 3, side, side))


def test_pooling_of_tokens_without_registers() -> None:
    torch.manual_seed(0)
    net: Any = timm.create_model("test_vit", num_classes=0, reg_tokens=3).eval()
    x = torch.linspace(-2, 2, 2 * 3 * SIDE**2).view(2, 3, SIDE, SIDE)
    tokens = net.forward_features(x)
    cls, patches = tokens[:, 0], tokens[:, 4:]
    expected = {"cls": cls, "avg": patches.mean(1), "max": patches.amax(1)}
    expected["cls+avg"] = torch.cat([cls, patches.mean(1)], 1)
    for pool, features in expected.items():
        torch.testing.assert_close(wrap(net, side=SIDE, pool=pool).module(x), features)


def test_choices_are_part_of_the_identity_and_of_the_name() -> None:
    native, pooled = load("timm/test_vit").facts, load("timm/test_vit", "avg", "blocks.1").facts
    assert native.weights_hash == pooled.weights_hash
    assert pooled.identity != native.identity == native.weights_hash
    assert model_name(pooled) == "timm-test_vit-random0-avg-blocks.1"
    assert "feature_spec" not in native.model_dump(mode="json")
    assert pooled.model_dump(mode="json")["feature_spec"] == {"pool": "avg", "layers": "blocks.1"}
    with pytest.raises(ValueError, match="mean differs"):
        BackboneFacts.model_validate(
            {**native.model_dump(), "feature_spec": {"mean": [0.1, 0.1, 0.1]}}
        )


@pytest.mark.parametrize("name", ["test_vit", "test_vit4", "test_convnext"])
def test_native_equals_the_pooling_that_the_facts_state(name: str) -> None:
    native = load(f"timm/{name}")
    pool = "cls" if native.facts.features.endswith("cls token") else "avg"
    x = images(native)
    torch.testing.assert_close(load(f"timm/{name}", pool).module(x), native.module(x))


def test_a_module_by_its_name_before_later_ones_change_it_in_place() -> None:
    backbone = load("torchvision/squeezenet1_1", "max", "features.0")
    net: Any = backbone.module.get_submodule("module")
    x = images(backbone, 64)
    torch.testing.assert_close(backbone.module(x), net.features[0](x).amax((2, 3)))
    assert backbone.facts.features == "global max pooling of features.0"
    assert backbone.on("cpu") is backbone
    twin = copy.deepcopy(backbone.module)  # it reads its own layers
    for parameter in twin.parameters():
        parameter.zero_()
    assert backbone.module(x).abs().max() > 0 == twin(x).abs().max()


@pytest.mark.parametrize(
    ("ref", "pool", "layers", "message", "fix"),
    [
        ("timm/test_resnet", "cls", "last", "has no cls token", "avg or max"),
        ("timm/test_resnet", "avg", "layer5", "unknown layer .* 'layer5'", "layer4"),
        ("fsbench/toy_resnet", "max", "last", "one vector per image", "--layers"),
        ("timm/test_resnet", "avg", "global_pool", "one vector per image", "--pool out"),
        ("timm/test_vit", "native", "patch_embed.proj", "has no cls token", "avg or max"),
    ],
)
def test_features_that_a_network_does_not_have(
    ref: str, pool: str, layers: str, message: str, fix: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load(ref, pool, layers)
    assert fix in caught.value.fix


def test_choices_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="pool: Input should be 'native', 'cls'"):
        feature_spec("mean")
    with pytest.raises(UsageError, match="no pooling and no layers"):
        feature_spec("avg", features="head")
    scores = feature_spec(features="head")
    with pytest.raises(UsageError, match="without its classifier"):
        backbones.load_backbone("timm/test_resnet", random_init=0, features=scores)


class Scores(nn.Module):
    """Features of 80 dimensions and a classifier under any name."""

    def __init__(self, name: str, classes: int, softmax: bool = False, **attributes: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 80, 3), nn.ReLU())
        self.head_name, self.softmax = name, softmax
        self.add_module(name, nn.Linear(80, classes))
        vars(self).update(attributes)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = getattr(self, self.head_name)(self.trunk(x).mean((2, 3)))
        return scores.softmax(-1) if self.softmax else scores


def wrap(module: nn.Module, side: int = 16, **options: Any) -> fsbench.Backbone:
    return fsbench.Backbone.from_module(
        module, name="net", input_size=side, **options, mean="imagenet", std="imagenet"
    )


CLASSIFIERS: dict[str, Callable[[], nn.Module]] = {
    "few outputs": lambda: Scores("output", 10),
    "softmax": lambda: Scores("output", 10, softmax=True),
    "num_classes": lambda: Scores("output", 200, num_classes=200),
    "name": lambda: Scores("fc", 1000),
    "sequence": lambda: nn.Sequential(
        nn.Conv2d(3, 80, 16), nn.Flatten(), nn.Linear(80, 70), nn.Linear(70, 10)),
    "timm": lambda: timm.create_model("test_resnet", num_classes=100),
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_is_refused_unless_one_insists_and_the_fix_works_as_printed(kind: str) -> None:
    model = CLASSIFIERS[kind]()
    scores = wrap(model, features="head").facts
    assert scores.feature_spec.head
    assert scores.identity != scores.weights_hash
    with pytest.raises(UsageError, match="ends in its classifier") as caught:
        wrap(model)
    code = caught.value.fix.split("network: ")[1].split(";")[0]
    exec(code, {"model": model, "torch": torch})
    assert wrap(model).facts.feature_dim >= 64


@pytest.mark.parametrize(
    "layers",
    [
        (nn.Conv2d(3, 8, 16), nn.Flatten()),
        (nn.Flatten(), nn.Linear(768, 32), nn.ReLU()),
        (nn.Flatten(), nn.Linear(768, 128)),
    ],
)
def test_few_features_and_projections_are_no_classifiers(layers: tuple[nn.Module, ...]) -> None:
    module = nn.Sequential(*layers)
    wrap(module)
    with pytest.raises(UsageError, match="does not end in a classifier"):
        wrap(module, features="head")


def test_tokens_of_ones_own_network_need_a_choice() -> None:
    class Tokens(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flatten(2).transpose(1, 2)

    with pytest.raises(CheckpointError, match="not two feature vectors") as caught:
        wrap(Tokens())
    assert "--pool avg" in caught.value.fix
    x = torch.rand(2, 3, 16, 16)
    assert torch.equal(wrap(Tokens(), pool="cls").module(x), x[:, :, 0, 0])
    assert wrap(Tokens(), pool="cls+avg").facts.feature_dim == 6
    tokens = Tokens()
    tokens.unused = nn.Identity()
    with pytest.raises(UsageError, match="does not call this module"):
        wrap(tokens, pool="avg", layers="unused")


def test_a_py_function_that_keeps_its_classifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept_head.py").write_text(
        "import timm\ndef net():\n    return timm.create_model('test_resnet', num_classes=100)\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="classifier 'fc' with 100 outputs"):
        backbones.load_backbone("py:kept_head:net")
    spec = feature_spec(features="head")
    assert backbones.load_backbone("py:kept_head:net", features=spec).facts.feature_dim == 100
    pooled = backbones.load_backbone("py:kept_head:net", features=feature_spec("max"))
    assert pooled.facts.feature_dim == 96
    assert pooled.facts.features.startswith("global max pooling (source ")
