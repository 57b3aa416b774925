"""Images enter a model of transformers as its own image processor hands them on, or not at all."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import fsbench
from fsbench import backbones
from fsbench.backbones.base import Backbone, feature_spec
from fsbench.core.errors import UsageError
from fsbench.core.seeding import stream

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None, reason="needs the extra transformers"
)
SIDE = 64
PIXELS = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
SIZE = {"size": {"height": SIDE, "width": SIDE}}


def save_folder(folder: Path, model: str = "ViT", **processor: Any) -> Any:
    """Save a small model with random weights and its preprocessor file; return the model."""
    import transformers as t

    vit = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    configs = {
        "ViT": lambda: t.ViTConfig(**vit, intermediate_size=32, image_size=SIDE, patch_size=16),
        "MobileViT": lambda: t.MobileViTConfig(
            hidden_sizes=[8, 8, 8], neck_hidden_sizes=[8] * 7, num_attention_heads=2
        ),
        "EfficientNet": lambda: t.EfficientNetConfig(
            width_coefficient=0.25, depth_coefficient=0.1, image_size=SIDE, hidden_dim=320
        ),
        "ConvNext": lambda: t.ConvNextConfig(hidden_sizes=[8] * 4, depths=[1] * 4),
    }
    with stream("processor", model):
        made = t.AutoModel.from_config(configs[model]()).eval()
    made.save_pretrained(folder)
    if processor:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return made


def features_by_transformers(folder: Path, model: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """PIXELS as the authors' code hands them to the model, and their features."""
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(folder)
    options = {"do_resize": False, "do_center_crop": False, "return_tensors": "pt"}
    values = processor(Image.fromarray(PIXELS), **options)["pixel_values"]
    with torch.no_grad():
        output = model(pixel_values=values)
    pooled = getattr(output, "pooler_output", None)
    cls = type(model).__name__ == "ViTModel"
    features = output.last_hidden_state[:, 0] if cls or pooled is None else pooled.flatten(1)
    return values, features


def load(folder: Path) -> Backbone:
    return backbones.load_backbone(f"transformers:{folder}")


@pytest.mark.parametrize(
    ("model", "processor"),
    [
        ("ViT", {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], **SIZE}),
        ("ViT", {"do_normalize": False, **SIZE}),
        ("ViT", {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, **SIZE}),
        ("ViT", {"do_rescale": False, "image_mean": [127.0] * 3, "image_std": [60.0] * 3, **SIZE}),
        ("MobileViT", {"do_flip_channel_order": True, **SIZE}),
        ("MobileViT", {"do_flip_channel_order": False, **SIZE}),
        ("EfficientNet", {"include_top": True, "image_std": [0.4785, 0.4732, 0.4743], **SIZE}),
        ("EfficientNet", {"include_top": False, "do_normalize": False, **SIZE}),
        ("EfficientNet", {"rescale_offset": True, "rescale_factor": 1 / 127.5, **SIZE}),
        ("ConvNext", {"crop_pct": 0.875, "size": {"shortest_edge": SIDE}}),
    ],
)
def test_features_are_those_of_the_models_own_processor(
    tmp_path: Path, model: str, processor: dict[str, Any]
) -> None:
    network = save_folder(tmp_path, model, **processor)
    backbone = load(tmp_path)
    images = torch.from_numpy(PIXELS).permute(2, 0, 1)[None]
    entering: list[torch.Tensor] = []
    backbone.module.get_submodule("model").register_forward_pre_hook(
        lambda module, args, options: entering.append(options["pixel_values"]), with_kwargs=True
    )
    with torch.no_grad():
        features = backbone.features(images)
    values, expected = features_by_transformers(tmp_path, network)
    torch.testing.assert_close(entering[0], values, rtol=1e-4, atol=1e-4)
    assert (features - expected).abs().max() <= 1e-4 * expected.abs().max()
    assert backbone.facts.input_size == SIDE
    assert {"input_size", "mean", "std"} <= backbone.facts.stated_by.keys()


@pytest.mark.parametrize(
    ("model", "processor", "words"),
    [
        ("EfficientNet", {"do_normalize": False, **SIZE}, "do_normalize is false.*multiplies by 2"),
        ("ViT", {"do_pad": True, "pad_size": {"height": 80, "width": 80}, **SIZE}, "pads images"),
        ("ViT", {"image_processor_type": "Nobodys", **SIZE}, "no image processor is read"),
    ],
)
def test_a_file_that_an_evaluation_cannot_follow_is_refused_unless_the_user_states_it(
    tmp_path: Path, model: str, processor: dict[str, Any], words: str
) -> None:
    save_folder(tmp_path, model, **processor)
    with pytest.raises(UsageError, match=words) as caught:
        load(tmp_path)
    assert "--mean imagenet --std imagenet" in str(caught.value.fix)
    half = feature_spec(mean="half", std="half")
    facts = backbones.load_backbone(f"transformers:{tmp_path}", features=half).facts
    assert facts.mean == (0.5,) * 3


def test_a_folder_without_a_processor_is_asked_for_what_is_unknown(tmp_path: Path) -> None:
    save_folder(tmp_path)
    facts = load(tmp_path).facts
    assert (facts.input_size, facts.stated_by) == (SIDE, {"input_size": "config.json"})
    with pytest.raises(UsageError, match="states the mean, std"):
        fsbench.evaluate(f"transformers:{tmp_path}", "toy_tiles:2w1s", progress=False)


@pytest.mark.parametrize("name", ["ViTMAEModel", "ViTMAEForPreTraining"])
def test_a_masked_autoencoder_sees_all_patches_in_their_order(tmp_path: Path, name: str) -> None:
    import transformers as t

    config = t.ViTMAEConfig(
        **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
        **{"intermediate_size": 32, "image_size": SIDE, "patch_size": 16, "mask_ratio": 0.75},
        **{"decoder_hidden_size": 16, "decoder_num_hidden_layers": 1},
        **{"decoder_num_attention_heads": 2, "decoder_intermediate_size": 16},
    )
    with stream("mae"):
        getattr(t, name)(config).save_pretrained(tmp_path)
    backbone = backbones.load_backbone(
        f"transformers:{tmp_path}", features=feature_spec(mean="imagenet", std="imagenet")
    )
    encoder = t.ViTMAEModel.from_pretrained(tmp_path, mask_ratio=0.0).eval()
    for side, sees_all in ((SIDE, True), (2 * SIDE, False)):
        images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))
        features = backbone.features(images)
        assert torch.equal(features, backbone.features(images))
        if sees_all:
            noise = torch.arange((side // 16) ** 2.0).expand(2, -1)
            pixels = backbone.normalised(images)
            with torch.no_grad():
                expected = encoder(pixel_values=pixels, noise=noise).last_hidden_state[:, 0]
            torch.testing.assert_close(features, expected)


def test_values_are_those_of_the_file_where_rounding_alone_differs(tmp_path: Path) -> None:
    mean, std = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    save_folder(tmp_path, image_mean=mean, image_std=std, resample=3, **SIZE)
    facts = load(tmp_path).facts
    assert (facts.mean, facts.std) == (tuple(mean), tuple(std))
    assert facts.interpolation == "bicubic"
