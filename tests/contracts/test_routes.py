"""One file, one function: all references to the same weights give the same network.

For each family of torchvision and timm, and for open_clip and transformers: the reference by name,
whose download is replaced by weights at hand; FILE@NAME; and the library's own network.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from support import nets
from support.cases import read_cases
from support.reporters import Recorder
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones import networks
from fsbench.backbones.loading import make_request
from fsbench.core.errors import UsageError
from fsbench.core.seeding import stream

State = dict[str, Tensor]


SMALL = 64
"""Side (px) of the images that networks of any input size get."""

TORCHVISION, TIMM, SLOW, HUGE = read_cases("families").values()
SIZES = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 224, "alexnet": 64}


def cases(rows: dict[str, Any], slow: Callable[[Any], bool]) -> list[Any]:
    marked = {name: [pytest.mark.slow] if slow(value) else [] for name, value in rows.items()}
    return [pytest.param(name, marks=marks, id=name) for name, marks in marked.items()]


def image_side(net: nn.Module, size: int) -> int:
    """SMALL if the network takes such images, else its own side."""
    try:
        features(net, SMALL)
    except (AssertionError, RuntimeError, ValueError, IndexError, ZeroDivisionError):
        return size
    return SMALL


def features(module: nn.Module, side: int) -> Tensor:
    images = torch.linspace(-2, 2, 2 * 3 * side**2).view(2, 3, side, side)
    with torch.no_grad():
        return module(images)  # type: ignore[no-any-return]


def assert_one_function(refs: list[str], whole: nn.Module, side: int) -> None:
    """All references give the features of this network."""
    expected = features(whole, side)
    assert expected.std() > 0
    tolerance = {"rtol": 1e-3, "atol": 1e-4 * float(expected.abs().max())}
    for ref in refs:
        backbone = backbones.load_backbone(ref)
        torch.testing.assert_close(features(backbone.module, side), expected, **tolerance)


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, State]:
    """Weights that take the place of downloads of torchvision and timm."""
    weights: dict[str, State] = {}
    monkeypatch.setattr(
        torchvision.models.WeightsEnum, "get_state_dict", lambda *_, **__: weights["torchvision"]
    )
    monkeypatch.setattr("fsbench.backbones.sources.torchvision.is_reachable", lambda _: True)
    monkeypatch.setattr(
        "timm.models._builder._resolve_pretrained_source",
        lambda _: ("state_dict", dict(weights["timm"])),
    )
    return weights


@pytest.mark.parametrize("name", cases(TORCHVISION, lambda slow: slow))
def test_routes_to_torchvision(name: str, tmp_path: Path, downloads: dict[str, State]) -> None:
    """By name, with torchvision's own arguments for its weights, and as a file with all heads."""
    models = torchvision.models
    with stream("torchvision", name):
        plain = nets.randomise(models.get_model(name, weights=None))
    downloads["torchvision"] = plain.state_dict()
    whole = models.get_model(name, weights=models.get_model_weights(name).DEFAULT).eval()
    torch.save(plain.state_dict(), tmp_path / "a.pth")
    *_, head = [n for n, m in whole.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    if name == "squeezenet1_0":
        head = "classifier.1"
    whole.set_submodule(head, nn.Identity())
    refs = [f"torchvision/{name}", f"{tmp_path / 'a.pth'}@torchvision/{name}"]
    assert_one_function(refs, whole, SIZES.get(name, SMALL))


@pytest.mark.parametrize(
    "name", ["googlenet", pytest.param("inception_v3", marks=pytest.mark.slow)]
)
def test_a_network_of_torchvision_trained_without_its_input_transform(
    name: str, tmp_path: Path
) -> None:
    with stream("own", name):
        net = nets.randomise(torchvision.models.get_model(name, num_classes=5)).eval()
    torch.save(net.state_dict(), tmp_path / "a.pth")
    net.fc = nn.Identity()
    ref = f"{tmp_path / 'a.pth'}@torchvision/{name}"
    assert_one_function([f"{ref}?transform_input=false"], net, 96)
    assert "transform_input=True" in backbones.load_backbone(ref).facts.features
    with pytest.raises(UsageError, match="depth"):
        backbones.load_backbone(f"torchvision/{name}?depth=3", random_init=0)


@pytest.mark.parametrize("family", [*cases(TIMM, lambda _: False), *cases(SLOW, lambda _: True)])
def test_routes_to_timm(family: str, tmp_path: Path, downloads: dict[str, State]) -> None:
    """By name, as a file with all heads, and as a data-parallel file in a wrapper."""
    name = {**TIMM, **SLOW}[family]
    with stream("timm", name):
        whole: Any = nets.randomise(timm.create_model(name)).eval()
    downloads["timm"] = whole.state_dict()
    parallel = {f"module.{n}": t for n, t in whole.state_dict().items()}
    torch.save(whole.state_dict(), tmp_path / "a.pth")
    torch.save({"state_dict": parallel, "epoch": 3}, tmp_path / "b.pth")
    whole.reset_classifier(0)
    refs = [f"{tmp_path / file}@{name}" for file in ("a.pth", "b.pth")]
    if timm.is_model_pretrained(name):
        refs.append(f"timm/{name}")
    assert_one_function(refs, whole, image_side(whole, whole.pretrained_cfg["input_size"][-1]))


def test_all_families_have_a_member() -> None:
    """A family that a newer timm has needs a row here."""
    rows, models = {**TIMM, **SLOW}, torchvision.models
    known = {timm.models.model_entrypoint(name).__module__.split(".")[-1] for name in rows.values()}
    assert known == set(rows)
    ours = {networks.__name__.split(".")[-1]}  # registered by an export in the same process
    assert set(timm.list_modules()) <= {*rows, *HUGE} | ours
    families = {models.get_model_builder(n).__module__ for n in models.list_models(module=models)}
    assert families == {models.get_model_builder(name).__module__ for name in TORCHVISION}


@pytest.mark.parametrize("name", ["vit_base_patch32_clip_224.openai",
                                  "vit_base_patch16_clip_224.metaclip_400m",
                                  "vit_large_patch14_clip_224.dfn2b"])  # fmt: skip
def test_names_of_timm_that_replace_the_activation_of_their_weights_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="trained with QuickGELU") as caught:
        make_request(f"timm/{name}").check()
    quick = caught.value.fix.removeprefix("pass ")
    assert "clip_quickgelu" in quick
    make_request(quick).check()
    make_request(f"timm/{name}?act_layer=quick_gelu").check()


TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 8, "vocab_size": 32, "width": 16, "heads": 2, "layers": 1},
}


@pytest.fixture
def clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A CLIP that open_clip knows with both activations: name -> its network."""
    open_clip = pytest.importorskip("open_clip")
    from open_clip import factory, pretrained

    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", [*factory._MODEL_CONFIG_PATHS])
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
    folder = tmp_path / "configs"
    folder.mkdir()
    for name, quick in (("ViT-tiny", False), ("ViT-tiny-quickgelu", True)):
        (folder / f"{name}.json").write_text(json.dumps({**TINY, "quick_gelu": quick}))
    open_clip.add_model_config(folder)
    networks = {}
    for name in ("ViT-tiny", "ViT-tiny-quickgelu"):
        with stream("clip"):
            networks[name] = nets.randomise(open_clip.create_model(name)).eval()
    weights = tmp_path / "clip.pth"
    torch.save(networks["ViT-tiny"].state_dict(), weights)
    half = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "interpolation": "bilinear"}
    tags = {"gelu": {"url": "https://a"}, "quick": {"url": "https://b", "quick_gelu": True, **half}}
    monkeypatch.setitem(pretrained._PRETRAINED, "ViT-tiny", tags)
    monkeypatch.setattr(factory, "download_pretrained", lambda *_, **__: str(weights))
    return {"file": weights, **networks}


@pytest.mark.parametrize(("quick", "mean"), [(False, 0.48145466), (True, 0.5)])
def test_routes_to_open_clip(quick: bool, mean: float, clips: dict[str, Any]) -> None:
    """The activation is that of the weights: the tag tells it, or the user."""
    gelu, tag = clips["ViT-tiny"].visual, "quick" if quick else "gelu"
    whole = clips["ViT-tiny-quickgelu"].visual if quick else gelu
    assert quick != torch.allclose(features(gelu, 32), features(whole, 32), rtol=1e-3)
    named = [f"open_clip:ViT-tiny/{tag}", f"{clips['file']}@open_clip:ViT-tiny/{tag}"]
    refs = [*named, f"{clips['file']}@open_clip:ViT-tiny?quick_gelu={str(quick).lower()}"]
    refs += [f"{clips['file']}@open_clip:ViT-tiny-quickgelu"] * quick
    assert_one_function(refs, whole, 32)
    facts = [backbones.load_backbone(ref).facts for ref in named]
    assert [(f.mean[0], f.input_size) for f in facts if f.mean] == [(mean, 32)] * 2


def test_files_of_openai_have_quickgelu(clips: dict[str, Any], tmp_path: Path) -> None:
    marks = {"input_resolution": torch.tensor(32), "context_length": torch.tensor(8)}
    whole, report = clips["ViT-tiny-quickgelu"], Recorder()
    torch.save({**whole.state_dict(), **marks}, tmp_path / "ViT.pt")
    backbone = backbones.load_backbone(f"{tmp_path / 'ViT.pt'}@open_clip:ViT-tiny", report=report)
    torch.testing.assert_close(features(backbone.module, 32), features(whole.visual, 32))
    assert "CLIP of OpenAI: quick_gelu=True" in "".join(report.lines)


@pytest.mark.parametrize(
    ("arch", "fixes"),
    [
        ("open_clip:ViT-tiny", ("open_clip:ViT-tiny-quickgelu", "ViT-tiny?quick_gelu=false")),
        ("vit_base_patch32_clip_224", ("vit_base_patch32_clip_quickgelu_224 for",)),
        ("vit_large_patch14_clip_336", ("vit_large_patch14_clip_quickgelu_336 for",)),
    ],
)
def test_a_file_of_clip_does_not_tell_its_activation(
    arch: str, fixes: tuple[str, ...], clips: dict[str, Any], tmp_path: Path
) -> None:
    file = clips["file"]
    if "open_clip" not in arch:
        file = tmp_path / "a.pth"
        torch.save({"visual.class_embedding": torch.ones(1)}, file)
    with pytest.raises(UsageError, match="does not tell its activation") as caught:
        backbones.load_backbone(f"{file}@{arch}")
    assert all(fix in caught.value.fix for fix in fixes)


@pytest.mark.parametrize("tag", ["resnet18.a1_in1k", "resnet18.tv_in1k", "test_vit.r160_in1k"])
def test_a_tag_of_timm_states_the_same_preprocessing_on_both_routes(
    tag: str, tmp_path: Path, downloads: dict[str, State]
) -> None:
    """Without the tag, a file states nothing: `FILE@NAME` asks for what `NAME` knows."""
    net = timm.create_model(tag.split(".")[0])
    downloads["timm"] = net.state_dict()
    torch.save(net.state_dict(), tmp_path / "a.pth")
    refs = (f"timm/{tag}", f"{tmp_path / 'a.pth'}@{tag}")
    named, file = (backbones.load_backbone(ref).facts for ref in refs)
    assert (named.mean, named.std, named.input_size) == (file.mean, file.std, file.input_size)
    assert named.mean is not None
    assert set(file.stated_by.values()) == {f"timm's tag {tag.split('.')[1]}"}
    unknown = backbones.load_backbone(f"{tmp_path / 'a.pth'}@{tag.split('.')[0]}").facts
    assert (unknown.mean, unknown.input_size) == (None, None)
