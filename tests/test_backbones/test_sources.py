"""timm, the hub, torchvision and own functions, without a network: random weights, local caches."""

import hashlib
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
from support.cases import read_cases
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones.sources import _hub
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.schema import BackboneFacts
from fsbench.core.seeding import stream

CASES = read_cases("backbones")

REVISION = "0123456789abcdef0123456789abcdef01234567"


def images(size: int) -> Tensor:
    return torch.linspace(0, 1, 2 * 3 * size * size).view(2, 3, size, size)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hugging Face cache of our own; repositories are added by `publish`."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def publish(hub: Path, repository: str, weights: dict[str, Tensor], config: dict[str, Any]) -> None:
    folder = hub / f"models--{repository.replace('/', '--')}"
    snapshot = folder / "snapshots" / REVISION
    for part in (folder / "refs", snapshot):
        part.mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(REVISION)
    save_file(weights, snapshot / "model.safetensors")
    (snapshot / "config.json").write_text(json.dumps(config))


def network(name: str, **options: Any) -> nn.Module:
    import timm

    with stream("published", name):
        model: nn.Module = timm.create_model(name, **options)
    return model.eval()


def test_trivial_controls_give_means_of_parts_and_statistics_of_channels() -> None:
    """Red is 0 left and 1 right, green 0.3, blue 0.5; the two differ in their identity."""
    image = torch.zeros(1, 3, 16, 16)
    image[:, 0, :, 8:], image[:, 1], image[:, 2] = 1, 0.3, 0.5
    pixels, colour = (backbones.load_backbone(f"control:{n}") for n in ("pixels", "colour"))
    grid = pixels.features(image).view(3, 8, 8)
    halves = [0.0] * 4 + [1.0] * 4
    assert [grid[c].tolist() for c in (0, 2)] == [[halves] * 8, [[0.5] * 8] * 8]
    statistics = colour.features(image)[0]
    assert statistics[:6].tolist() == pytest.approx([0.5, 0.3, 0.5, 0.5, 0, 0], abs=1e-6)
    shares = statistics[6:].view(3, 16)
    # 0.3 is 4.8 bins, and 0.5 is the edge at which bin 8 starts.
    assert shares.nonzero().tolist() == [[0, 0], [0, 15], [1, 4], [2, 8]]
    assert shares[0, [0, 15]].tolist() == [0.5, 0.5]
    assert pixels.facts.identity != colour.facts.identity
    with pytest.raises(UsageError, match="control:colour has no weights"):
        backbones.load_backbone("control:colour", random_init=0)


def test_random_weights_of_timm() -> None:
    backbone = backbones.load_backbone("timm/test_vit", random_init=0)
    facts = backbone.facts
    assert (facts.architecture, facts.input_size, facts.mean) == ("test_vit", 160, (0.5,) * 3)
    assert backbones.load_backbone("timm/test_vit", random_init=0).facts == facts
    other = backbones.load_backbone("timm/test_vit", random_init=1).facts.weights_hash
    assert other != facts.weights_hash
    assert backbone.features(images(64)).shape == (2, facts.feature_dim)  # any size


@pytest.mark.parametrize(("ref", "dim", "features"), CASES["features"])
def test_how_features_are_taken_is_recorded(ref: str, dim: int, features: str) -> None:
    facts = backbones.load_backbone(ref, random_init=0).facts
    assert facts.feature_dim == dim
    assert features in facts.features


def assert_features(ref: str, network: Any, side: int, mean: Any, std: Any) -> BackboneFacts:
    """The reference gives the features of this head-free network; return its facts."""
    backbone = backbones.load_backbone(ref)
    facts = backbone.facts
    assert (facts.input_size, facts.mean, facts.std) == (side, mean, std)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (mean, std))
    with torch.no_grad():
        expected = network((images(side) - mean) / std)
    torch.testing.assert_close(backbone.features(images(side)), expected)
    return facts


def test_pretrained_weights_of_timm_from_the_cache(hub: Path) -> None:
    theirs: Any = network("test_vit")
    weights = dict(theirs.state_dict())
    publish(hub, "timm/test_vit.r160_in1k", weights, {})
    theirs.reset_classifier(0)
    facts = assert_features("timm/test_vit", theirs, 160, (0.5,) * 3, (0.5,) * 3)
    assert (facts.architecture, facts.revision) == ("test_vit.r160_in1k", REVISION)
    del weights["blocks.0.mlp.fc1.weight"]
    publish(hub, "timm/test_vit.r160_in1k", weights, {})
    with pytest.raises(CheckpointError, match=r"Missing key.*blocks\.0\.mlp\.fc1\.weight"):
        backbones.load_backbone("timm/test_vit")


def test_a_hub_repository_with_its_own_numbers(hub: Path) -> None:
    theirs: Any = network("test_resnet", num_classes=3)
    mean, std = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    config = {"input_size": [3, 96, 96], "mean": mean, "std": std, "num_classes": 3}
    config |= {"classifier": "fc", "first_conv": "conv1.0"}
    described = {"architecture": "test_resnet", "num_classes": 3, "pretrained_cfg": config}
    publish(hub, "org/mine", theirs.state_dict(), described)
    theirs.reset_classifier(0)
    for ref in ("hf-hub:org/mine", f"hf-hub:org/mine@{REVISION}"):
        facts = assert_features(ref, theirs, 96, mean, std)
        assert (facts.source, facts.revision) == ("hf-hub", REVISION)
    control = backbones.load_backbone("hf-hub:org/mine", random_init=0).facts
    assert control.weights_hash != facts.weights_hash


def test_a_hub_repository_that_is_not_timm(hub: Path) -> None:
    publish(hub, "org/other", {"w": torch.ones(1)}, {"architecture": "none", "pretrained_cfg": {}})
    with pytest.raises(CheckpointError, match="hf-hub:org/other"):
        backbones.load_backbone("hf-hub:org/other")


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize(
    ("ref", "cache"),
    [
        ("timm/resnet18", "HF_HOME"),
        ("hf-hub:org/name@v1", "HF_HUB_OFFLINE"),
        ("torchvision/resnet18", "TORCH_HOME"),
    ],
)
@pytest.mark.usefixtures("hub")
def test_without_network_the_error_names_the_cache_and_the_control_within_seconds(
    ref: str, cache: str, offline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client of the hub itself would try six times for each file."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    start = time.monotonic()
    with pytest.raises(CheckpointError, match="cannot get the weights") as caught:
        backbones.load_backbone(ref)
    assert time.monotonic() - start < 10
    assert huggingface_hub.constants.HF_HUB_OFFLINE is offline
    for way_out in (cache, "FILE@ARCH", "--random-init"):
        assert way_out in caught.value.fix


def test_a_name_that_is_looked_up_for_ever_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hub, "PATIENCE", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: threading.Event().wait(2) or [])
    start = time.monotonic()
    assert not _hub.is_reachable("https://huggingface.co")
    assert time.monotonic() - start < 1.5


def test_a_host_that_answers_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/models"
        assert _hub.is_reachable(url)
    assert not _hub.is_reachable(url)


def test_torchvision_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision import models

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    weights = models.SqueezeNet1_1_Weights.DEFAULT
    with stream("published", "squeezenet"):
        theirs = models.squeezenet1_1().eval()
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save(theirs.state_dict(), tmp_path / "hub" / "checkpoints" / Path(weights.url).name)

    def features(x: Tensor) -> Tensor:
        maps: Tensor = theirs.features(x)
        return maps.relu().mean((2, 3))

    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    facts = assert_features("torchvision/squeezenet1_1", features, 224, mean, std)
    assert facts.architecture == f"squeezenet1_1.{weights.name}"


OWN_NETS = read_cases("code")["own_nets"]


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_nets.py").write_text(OWN_NETS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("user_module")
def test_a_function_of_ones_own_and_its_typed_arguments() -> None:
    facts = backbones.load_backbone("py:own_nets:Net").facts
    assert (facts.source, facts.feature_dim, facts.input_size) == ("py", 4, 16)
    assert facts.mean == (0.1, 0.1, 0.1)
    assert backbones.load_backbone("py:own_nets:Net").facts == facts
    digest = hashlib.sha256(OWN_NETS.encode()).hexdigest()
    by_file = backbones.load_backbone("py:own_nets.py:Net").facts
    assert facts.code == by_file.code == digest
    assert (
        by_file.features
        == facts.features
        == f"as the function's network gives them (source {digest[:12]})"
    )
    ref = "py:own_nets:Net?width=80&scale=.5&pool=false&name=b"
    backbone = backbones.load_backbone(ref)
    assert (backbone.facts.ref, backbone.facts.architecture) == (ref, ref)
    assert backbone.facts.feature_dim == 80
    assert getattr(backbone.module, "name", None) == "b"


@pytest.mark.usefixtures("user_module")
@pytest.mark.parametrize(("ref", "message"), CASES["refused"])
def test_functions_and_towers_that_are_none(ref: str, message: str) -> None:
    if ref.startswith("open_clip"):
        pytest.importorskip("open_clip")
    with pytest.raises((UsageError, CheckpointError), match=message):
        backbones.load_backbone(ref)


@pytest.mark.usefixtures("user_module")
def test_a_function_has_no_control() -> None:
    with pytest.raises(UsageError, match="--random-init"):
        backbones.load_backbone("py:own_nets:Net", random_init=0)


@pytest.mark.parametrize("package", ["transformers", "open_clip"])
def test_an_extra_that_is_not_installed_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fsbench.backbones.sources.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=f"needs {package}, which is not installed") as caught:
        backbones.load_backbone(f"{package}:org/name")
    assert caught.value.fix == f"pip install 'fsbench[{package}]'"
