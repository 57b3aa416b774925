"""timm, the hub, torchvision and own functions, without a network: random weights, local caches."""

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones.sources import _hub
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.seeding import stream

REVISION = "0123456789abcdef0123456789abcdef01234567"


def images(size: int) -> Tensor:
    return torch.linspace(0, 1, 2 * 3 * size * size).view(2, 3, size, size)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hugging Face cache of our own; repositories are added by `publish`."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def publish(
    hub: Path, repository: str, weights: dict[str, Tensor], config: dict[str, Any] | None
) -> None:
    folder = hub / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(REVISION)
    snapshot = folder / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    save_file(weights, snapshot / "model.safetensors")
    if config is not None:
        (snapshot / "config.json").write_text(json.dumps(config))


def network(name: str, **options: Any) -> nn.Module:
    import timm

    with stream("published", name):
        model: nn.Module = timm.create_model(name, **options)
    return model.eval()


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224", "test_efficientnet"])
def test_random_weights_of_timm(name: str) -> None:
    import timm

    backbone = backbones.load_backbone(f"timm/{name}", random_init=0)
    facts, config = backbone.facts, timm.get_pretrained_cfg(name)
    assert facts.architecture == name
    assert facts.input_size == config.input_size[-1]
    assert facts.mean == config.mean
    assert backbones.load_backbone(f"timm/{name}", random_init=0).facts == facts
    other = backbones.load_backbone(f"timm/{name}", random_init=1).facts.weights_hash
    assert other != facts.weights_hash


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("test_vit", "cls token"),
        ("test_resnet", "global average pooling"),
        ("mobilenetv3_small_050", "global average pooling, pre_logits"),
        ("deit_tiny_distilled_patch16_224", "average of the cls and distillation tokens"),
    ],
)
def test_how_timm_features_are_taken_is_recorded(name: str, features: str) -> None:
    facts = backbones.load_backbone(f"timm/{name}", random_init=0).facts
    assert facts.features == f"timm, num_classes=0: {features}"


def test_a_vision_transformer_takes_other_sizes() -> None:
    backbone = backbones.load_backbone("timm/test_vit", random_init=0)
    assert backbone.features(images(64)).shape == (2, backbone.facts.feature_dim)


def test_pretrained_weights_of_timm_from_the_cache(hub: Path) -> None:
    import timm

    theirs = network("test_vit")
    publish(hub, "timm/test_vit.r160_in1k", theirs.state_dict(), None)
    backbone = backbones.load_backbone("timm/test_vit")
    assert backbone.facts.architecture == "test_vit.r160_in1k"
    assert backbone.facts.revision == REVISION
    reference = timm.create_model("test_vit", num_classes=0).eval()
    trunk = {n: t for n, t in theirs.state_dict().items() if not n.startswith("head.")}
    reference.load_state_dict(trunk)
    with torch.no_grad():
        expected = reference((images(160) - 0.5) / 0.5)
    assert backbone.facts.mean == (0.5, 0.5, 0.5)
    torch.testing.assert_close(backbone.features(images(160)), expected)


def test_pretrained_weights_that_lack_a_tensor(hub: Path) -> None:
    weights = network("test_vit").state_dict()
    del weights["blocks.0.mlp.fc1.weight"]
    publish(hub, "timm/test_vit.r160_in1k", weights, None)
    with pytest.raises(CheckpointError, match=r"Missing key.*blocks\.0\.mlp\.fc1\.weight"):
        backbones.load_backbone("timm/test_vit")


def test_a_hub_repository_with_its_own_numbers(hub: Path) -> None:
    theirs = network("test_resnet", num_classes=3)
    config = {
        "architecture": "test_resnet",
        "num_classes": 3,
        "pretrained_cfg": {
            "input_size": [3, 96, 96],
            "mean": [0.1, 0.2, 0.3],
            "std": [0.4, 0.5, 0.6],
            "num_classes": 3,
            "classifier": "fc",
            "first_conv": "conv1.0",
        },
    }
    publish(hub, "org/mine", theirs.state_dict(), config)
    for ref in ("hf-hub:org/mine", f"hf-hub:org/mine@{REVISION}"):
        facts = backbones.load_backbone(ref).facts
        assert facts.revision == REVISION
        assert (facts.source, facts.input_size, facts.mean) == ("hf-hub", 96, (0.1, 0.2, 0.3))
    theirs.reset_classifier(0)
    backbone = backbones.load_backbone("hf-hub:org/mine")
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (facts.mean, facts.std))
    with torch.no_grad():
        expected = theirs((images(96) - mean) / std)
    torch.testing.assert_close(backbone.features(images(96)), expected)
    control = backbones.load_backbone("hf-hub:org/mine", random_init=0).facts
    assert control.weights_hash != facts.weights_hash


@pytest.mark.parametrize("config", [{}, {"architecture": "no_such_net", "pretrained_cfg": {}}])
def test_a_hub_repository_that_is_not_timm(hub: Path, config: dict[str, Any]) -> None:
    publish(hub, "org/other", {"w": torch.ones(1)}, config)
    with pytest.raises((CheckpointError, UsageError), match="hf-hub:org/other"):
        backbones.load_backbone("hf-hub:org/other")


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize("ref", ["timm/resnet18", "hf-hub:org/name", "hf-hub:org/name@v1"])
@pytest.mark.usefixtures("hub")
def test_without_network_the_error_names_the_cache_and_the_control_within_seconds(
    ref: str, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client of the hub itself would try six times for each file."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    start = time.monotonic()
    with pytest.raises(CheckpointError, match="cannot get the weights") as caught:
        backbones.load_backbone(ref)
    assert time.monotonic() - start < 10
    assert huggingface_hub.constants.HF_HUB_OFFLINE is offline
    for way_out in ("HF_HOME", "HF_HUB_OFFLINE", "FILE@ARCH", "--random-init"):
        assert way_out in caught.value.fix


def test_a_name_that_is_looked_up_for_ever_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hub, "PATIENCE", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: threading.Event().wait(2) or [])
    assert not _hub.is_reachable("https://huggingface.co")


def test_a_host_that_answers_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/models"
        assert _hub.is_reachable(url)
    assert not _hub.is_reachable(url)


@pytest.mark.parametrize(
    ("name", "dim", "head"),
    [
        ("resnet18", 512, "fc"),
        ("mobilenet_v3_small", 1024, "classifier.3"),
        ("squeezenet1_1", 512, "classifier.1"),
    ],
)
def test_torchvision_heads_are_found_by_their_role(name: str, dim: int, head: str) -> None:
    facts = backbones.load_backbone(f"torchvision/{name}", random_init=0).facts
    assert facts.feature_dim == dim
    hidden = name.startswith("mobilenet")
    pooling = "hidden layer of the classifier" if hidden else "global average pooling"
    assert facts.features == f"torchvision, input of {head}: {pooling}"


def test_torchvision_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision import models

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    weights = models.SqueezeNet1_1_Weights.DEFAULT
    with stream("published", "squeezenet"):
        theirs = models.squeezenet1_1().eval()
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save(theirs.state_dict(), tmp_path / "hub" / "checkpoints" / Path(weights.url).name)
    backbone = backbones.load_backbone("torchvision/squeezenet1_1")
    assert backbone.facts.architecture == f"squeezenet1_1.{weights.name}"
    assert (backbone.facts.input_size, backbone.facts.mean) == (224, (0.485, 0.456, 0.406))
    mean, std = (
        torch.tensor(v).view(1, 3, 1, 1) for v in (backbone.facts.mean, backbone.facts.std)
    )
    with torch.no_grad():
        maps = theirs.features((images(224) - mean) / std)
    torch.testing.assert_close(backbone.features(images(224)), maps.relu().mean((2, 3)))


def test_torchvision_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(CheckpointError, match="cannot get the weights") as caught:
        backbones.load_backbone("torchvision/resnet18")
    assert "TORCH_HOME" in caught.value.fix
    assert "--random-init" in caught.value.fix


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_nets.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    input_size, mean, std = 16, (0.1, 0.1, 0.1), (0.5, 0.5, 0.5)\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.trunk = torch.nn.Linear(3, 4)\n"
        "    def forward(self, x):\n"
        "        return self.trunk(x.mean((2, 3))).relu()\n"
        "class Maps(Net):\n"
        "    def forward(self, x):\n"
        "        return x\n"
        "def number():\n"
        "    return 3\n"
        "def wide(width: int, scale=1.0, pool=True, name='a'):\n"
        "    assert (type(width), type(scale), type(pool)) == (int, float, bool), (width, scale)\n"
        "    net = torch.nn.Linear(3, width)\n"
        "    class Wide(torch.nn.Module):\n"
        "        input_size = 16\n"
        "        def __init__(self):\n"
        "            super().__init__()\n"
        "            self.first, self.name = net, name\n"
        "        def forward(self, x):\n"
        "            return self.first(x.mean((2, 3))).relu()\n"
        "    return Wide()\n"
    )
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("user_module")
def test_a_function_of_ones_own() -> None:
    facts = backbones.load_backbone("py:own_nets:Net").facts
    assert (facts.source, facts.feature_dim, facts.input_size) == ("py", 4, 16)
    assert facts.mean == (0.1, 0.1, 0.1)
    assert backbones.load_backbone("py:own_nets:Net").facts == facts


@pytest.mark.usefixtures("user_module")
def test_arguments_of_a_function_have_their_types() -> None:
    ref = "py:own_nets:wide?width=80&scale=.5&pool=false&name=b"
    backbone = backbones.load_backbone(ref)
    assert (backbone.facts.ref, backbone.facts.architecture) == (ref, ref)
    assert backbone.facts.feature_dim == 80
    assert getattr(backbone.module, "name", None) == "b"


@pytest.mark.usefixtures("user_module")
@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("py:own_nets:wide", "missing a required argument: 'width'"),
        ("py:own_nets:wide?depth=3", "missing a required argument: 'width'|unexpected keyword"),
        ("py:own_nets:wide?width", "'width' in 'own_nets:wide.width' sets nothing"),
        ("py:own_nets:wide?width=3&width=4", "'width=4' in .* sets nothing, or width twice"),
        ("py:own_nets:Nte", "unknown function of own_nets 'Nte'"),
        ("py:own_nets", "unknown function of own_nets ''"),
        ("py:no_such_module:f", "cannot import 'no_such_module'"),
        ("py:", "cannot import ''"),
        ("py:own_nets:number", "gave a int"),
    ],
)
def test_functions_that_are_none(ref: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        backbones.load_backbone(ref)


@pytest.mark.usefixtures("user_module")
def test_a_function_has_no_control() -> None:
    with pytest.raises(UsageError, match="--random-init"):
        backbones.load_backbone("py:own_nets:Net", random_init=0)


@pytest.mark.usefixtures("user_module")
def test_maps_are_no_features() -> None:
    with pytest.raises(CheckpointError, match=r"\(2, 3, 224, 224\)|\(2, 3, 16, 16\)"):
        backbones.load_backbone("py:own_nets:Maps")


def test_an_architecture_of_this_suite_takes_a_width() -> None:
    whole, narrow = (
        backbones.load_backbone(ref, random_init=0).facts
        for ref in ("fsbench/toy_resnet", "fsbench/toy_resnet@4")
    )
    assert narrow.architecture == "fsbench/toy_resnet@4"
    assert narrow.feature_dim < whole.feature_dim
