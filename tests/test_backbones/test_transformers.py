"""Models of transformers, small and with random weights; images enter as their processor says."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from fsbench import backbones
from fsbench.backbones.base import feature_spec
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.seeding import stream

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None, reason="needs the extra transformers"
)
REVISION = "0123456789abcdef0123456789abcdef01234567"
SIDE = 32
PIXELS = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
IMAGES = torch.from_numpy(PIXELS).permute(2, 0, 1)[None]
SIZE = {"size": {"height": SIDE, "width": SIDE}}
MEAN, STD = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
STATED = {"image_mean": MEAN, "image_std": STD, "image_processor_type": "ViTImageProcessor", **SIZE}

GRID = {"image_size": SIDE, "patch_size": 8}
WIDTH = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
VIT = {**GRID, **WIDTH, "intermediate_size": 32}
TEXT = {**WIDTH, "vocab_size": 20, "intermediate_size": 32}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViTConfig", VIT),
    "dinov2": ("Dinov2Config", {**GRID, **WIDTH, "mlp_ratio": 2}),
    "registers": ("Dinov2WithRegistersConfig", {**GRID, **WIDTH, "mlp_ratio": 2}),
    "resnet": ("ResNetConfig", {
        "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}),
    "swin": ("SwinConfig", {
        "image_size": SIDE, "patch_size": 4, "window_size": 4, "embed_dim": 8, "depths": [1, 1],
        "num_heads": [1, 2]}),
    "clip": ("CLIPConfig", {"vision_config": VIT, "text_config": TEXT, "projection_dim": 8}),
    "bert": ("BertConfig", TEXT),
    "mobilevit": ("MobileViTConfig", {
        "hidden_sizes": [8, 8, 8], "neck_hidden_sizes": [8] * 7, "num_attention_heads": 2}),
    "efficientnet": ("EfficientNetConfig", {
        "width_coefficient": 0.25, "depth_coefficient": 0.1, "image_size": SIDE,
        "hidden_dim": 320}),
    "convnext": ("ConvNextConfig", {"hidden_sizes": [8] * 4, "depths": [1] * 4}),
    "mae": ("ViTMAEConfig", {
        **VIT, "mask_ratio": 0.75, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 1,
        "decoder_num_attention_heads": 2, "decoder_intermediate_size": 16}),
}  # fmt: skip


def save_model(folder: Path, family: str, kind: str = "AutoModel", /, **processor: Any) -> Any:
    """Save a small model of a family and its preprocessor file; return the model."""
    import transformers

    name, options = CONFIGS[family]
    config = getattr(transformers, name)(**options)
    make = getattr(transformers, kind)
    with stream("transformers", family):
        model = (make.from_config if kind == "AutoModel" else make)(config).eval()
    model.save_pretrained(folder)
    if processor:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return model


def load(folder: Path, **features: Any) -> backbones.Backbone:
    return backbones.load_backbone(f"transformers:{folder}", features=feature_spec(**features))


REFERENCES: list[tuple[str, str, str, Callable[[Any, Tensor], Tensor]]] = [
    ("vit", "AutoModel", "native", lambda m, x: m(x).last_hidden_state[:, 0]),
    ("vit", "AutoModel", "avg", lambda m, x: m(x).last_hidden_state[:, 1:].mean(1)),
    ("vit", "ViTForImageClassification", "native", lambda m, x: m.vit(x).last_hidden_state[:, 0]),
    ("dinov2", "AutoModel", "native", lambda m, x: m(x).last_hidden_state[:, 0]),
    ("registers", "AutoModel", "native", lambda m, x: m(x).last_hidden_state[:, 0]),
    ("registers", "AutoModel", "avg", lambda m, x: m(x).last_hidden_state[:, 5:].mean(1)),
    ("resnet", "AutoModel", "native", lambda m, x: m(x).pooler_output.flatten(1)),
    ("swin", "AutoModel", "native", lambda m, x: m(x).last_hidden_state.mean(1)),
    ("clip", "AutoModel", "native", lambda m, x: m.vision_model(x).pooler_output),
]


@pytest.mark.parametrize(("family", "kind", "pool", "reference"), REFERENCES)
def test_features_of_a_family(
    family: str, kind: str, pool: str, reference: Any, tmp_path: Path
) -> None:
    """Pooled without the tokens of no patch, and without a classifier."""
    model = save_model(tmp_path, family, kind, **STATED)
    backbone = load(tmp_path, pool=pool)
    facts = backbone.facts
    assert (facts.source, facts.input_size) == ("transformers", SIDE)
    assert (facts.mean, facts.std) == (MEAN, STD)
    x = backbone.normalised(IMAGES)
    with torch.no_grad():
        torch.testing.assert_close(backbone.module(x), reference(model, x))
    assert "pooler" not in " ".join(backbone.module.state_dict()) or family == "swin"


def test_weights_that_would_be_drawn_at_random_and_text_models_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path, "dinov2", **STATED)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["encoder.layer.1.mlp.fc1.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lacks weights.*layer\.1\.mlp\.fc1\.weight"):
        load(tmp_path)
    save_model(tmp_path / "text", "bert")
    with pytest.raises(UsageError, match="BertModel, which takes no images"):
        load(tmp_path / "text")


def test_the_commit_of_a_hub_model_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--org--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(REVISION)
    save_model(home / "snapshots" / REVISION, "vit", **STATED)
    facts = backbones.load_backbone("transformers:org/tiny").facts
    assert (facts.revision, facts.mean) == (REVISION, MEAN)
    assert backbones.load_backbone(f"transformers:org/tiny@{REVISION}").facts.revision == REVISION
    control = backbones.load_backbone("transformers:org/tiny", random_init=0).facts
    assert control.weights_hash != facts.weights_hash
    with pytest.raises(CheckpointError, match="cannot get the weights") as caught:
        backbones.load_backbone("transformers:org/other")
    assert "HF_HUB_OFFLINE" in caught.value.fix


@pytest.mark.parametrize(
    ("family", "processor"),
    [
        ("vit", {"image_mean": MEAN, "image_std": STD, **SIZE}),
        ("vit", {"do_normalize": False, **SIZE}),
        ("vit", {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, **SIZE}),
        ("vit", {"do_rescale": False, "image_mean": [127.0] * 3, "image_std": [60.0] * 3, **SIZE}),
        ("mobilevit", {"do_flip_channel_order": True, **SIZE}),
        ("mobilevit", {"do_flip_channel_order": False, **SIZE}),
        ("efficientnet", {"include_top": True, "image_std": [0.4785, 0.4732, 0.4743], **SIZE}),
        ("efficientnet", {"include_top": False, "do_normalize": False, **SIZE}),
        ("efficientnet", {"rescale_offset": True, "rescale_factor": 1 / 127.5, **SIZE}),
        ("convnext", {"crop_pct": 0.875, "size": {"shortest_edge": SIDE}}),
    ],
)
def test_images_enter_as_the_models_own_processor_hands_them_on(
    family: str, processor: dict[str, Any], tmp_path: Path
) -> None:
    from transformers import AutoImageProcessor

    save_model(tmp_path, family, **processor)
    backbone = load(tmp_path)
    entering: list[Tensor] = []
    backbone.module.get_submodule("model").register_forward_pre_hook(
        lambda module, args, options: entering.append(options["pixel_values"]), with_kwargs=True
    )
    backbone.features(IMAGES)
    options = {"do_resize": False, "do_center_crop": False, "return_tensors": "pt"}
    expected = AutoImageProcessor.from_pretrained(tmp_path)(Image.fromarray(PIXELS), **options)
    torch.testing.assert_close(entering[0], expected["pixel_values"], rtol=1e-4, atol=1e-4)
    assert backbone.facts.input_size == SIDE
    assert {"input_size", "mean", "std"} <= backbone.facts.stated_by.keys()


@pytest.mark.parametrize(
    ("family", "processor", "message"),
    [
        ("efficientnet", {"do_normalize": False, **SIZE}, "do_normalize is false.*multiplies by 2"),
        ("vit", {"do_pad": True, "pad_size": {"height": 80, "width": 80}, **SIZE}, "pads images"),
        ("vit", {"image_processor_type": "Nobodys", **SIZE}, "no image processor is read"),
    ],
)
def test_a_file_that_an_evaluation_cannot_follow_is_refused_unless_the_user_states_it(
    family: str, processor: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save_model(tmp_path, family, **processor)
    with pytest.raises(UsageError, match=message) as caught:
        load(tmp_path)
    assert "--mean imagenet --std imagenet" in str(caught.value.fix)
    assert load(tmp_path, mean="half", std="half").facts.mean == (0.5,) * 3


def test_a_folder_without_a_processor_states_its_size_alone(tmp_path: Path) -> None:
    save_model(tmp_path, "vit")
    facts = load(tmp_path).facts
    assert (facts.input_size, facts.stated_by) == (SIDE, {"input_size": "config.json"})


@pytest.mark.parametrize("kind", ["ViTMAEModel", "ViTMAEForPreTraining"])
def test_a_masked_autoencoder_sees_all_patches_in_their_order(kind: str, tmp_path: Path) -> None:
    from transformers import ViTMAEModel

    save_model(tmp_path, "mae", kind)
    backbone = load(tmp_path, mean="imagenet", std="imagenet")
    large = torch.rand(2, 3, 2 * SIDE, 2 * SIDE, generator=torch.Generator().manual_seed(0))
    assert torch.equal(backbone.features(large), backbone.features(large))
    encoder: Any = ViTMAEModel.from_pretrained(tmp_path, mask_ratio=0.0).eval()
    noise, pixels = torch.arange(16.0)[None], backbone.normalised(IMAGES)
    with torch.no_grad():
        expected = encoder(pixel_values=pixels, noise=noise).last_hidden_state[:, 0]
        torch.testing.assert_close(backbone.module(pixels), expected)


def test_values_are_those_of_the_file_where_rounding_alone_differs(tmp_path: Path) -> None:
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    save_model(tmp_path, "vit", image_mean=mean, image_std=std, resample=3, **SIZE)
    facts = load(tmp_path).facts
    assert (facts.mean, facts.std, facts.interpolation) == (mean, std, "bicubic")
