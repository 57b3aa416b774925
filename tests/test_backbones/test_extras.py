"""Sources of optional packages, on small random models saved in the test; skipped without them."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from fsbench import backbones
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.seeding import stream
from fsbench.core.specs import FeatureSpec

REVISION = "0123456789abcdef0123456789abcdef01234567"
MEAN, STD = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
SIZE = 32
IMAGES = torch.linspace(0, 1, 2 * 3 * SIZE * SIZE).view(2, 3, SIZE, SIZE)
NORMALISED = (IMAGES - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)

transformers_installed = pytest.mark.skipif(
    find_spec("transformers") is None, reason="needs the extra transformers"
)
open_clip_installed = pytest.mark.skipif(
    find_spec("open_clip") is None, reason="needs the extra open_clip"
)


def tiny(family: str) -> Any:
    """A configuration of a family of transformers, for images of 32 px."""
    import transformers as t

    size = {"image_size": SIZE, "patch_size": 8}
    width = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    vit = {**size, **width, "intermediate_size": 32}
    return {
        "vit": lambda: t.ViTConfig(**vit),
        "dinov2": lambda: t.Dinov2Config(**size, **width, mlp_ratio=2),
        "registers": lambda: t.Dinov2WithRegistersConfig(**size, **width, mlp_ratio=2),
        "resnet": lambda: t.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
        ),
        "swin": lambda: t.SwinConfig(
            **{"image_size": SIZE, "patch_size": 4, "window_size": 4},
            **{"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2]},
        ),
        "clip": lambda: t.CLIPConfig(
            vision_config=vit,
            text_config={**width, "vocab_size": 20, "intermediate_size": 32},
            projection_dim=8,
        ),
    }[family]()


def save_model(folder: Path, model: Any) -> None:
    model.save_pretrained(folder)
    stated = {"image_mean": MEAN, "image_std": STD, "size": {"height": SIZE, "width": SIZE}}
    (folder / "preprocessor_config.json").write_text(json.dumps(stated))


def random_model(family: str) -> Any:
    from transformers import AutoModel

    with stream("transformers", family):
        return AutoModel.from_config(tiny(family)).eval()


REFERENCES = {
    "vit": lambda m: m(NORMALISED).last_hidden_state[:, 0],
    "dinov2": lambda m: m(NORMALISED).last_hidden_state[:, 0],
    "registers": lambda m: m(NORMALISED).last_hidden_state[:, 0],
    "resnet": lambda m: m(NORMALISED).pooler_output.flatten(1),
    "swin": lambda m: m(NORMALISED).last_hidden_state.mean(1),
    "clip": lambda m: m.vision_model(NORMALISED).pooler_output,
}


@transformers_installed
@pytest.mark.parametrize("family", REFERENCES)
def test_features_of_transformers(family: str, tmp_path: Path) -> None:
    model = random_model(family)
    save_model(tmp_path, model)
    backbone = backbones.load_backbone(f"transformers:{tmp_path}")
    facts = backbone.facts
    assert (facts.source, facts.input_size, facts.mean, facts.std) == (
        "transformers",
        32,
        MEAN,
        STD,
    )
    with torch.no_grad():
        expected: Tensor = REFERENCES[family](model)
    torch.testing.assert_close(backbone.features(IMAGES), expected)
    assert "pooler" not in " ".join(backbone.module.state_dict()) or family == "swin"


@transformers_installed
@pytest.mark.parametrize(("family", "prefix"), [("vit", 1), ("registers", 5)])
def test_tokens_of_transformers_are_pooled_without_those_of_no_patch(
    family: str, prefix: int, tmp_path: Path
) -> None:
    model = random_model(family)
    save_model(tmp_path, model)
    backbone = backbones.load_backbone(f"transformers:{tmp_path}", features=FeatureSpec(pool="avg"))
    with torch.no_grad():
        expected = model(NORMALISED).last_hidden_state[:, prefix:].mean(1)
    torch.testing.assert_close(backbone.features(IMAGES), expected)


@transformers_installed
def test_a_classifier_of_transformers_is_read_without_its_head(tmp_path: Path) -> None:
    from transformers import ViTForImageClassification

    with stream("classifier"):
        model = ViTForImageClassification(tiny("vit")).eval()
    save_model(tmp_path, model)
    with torch.no_grad():
        expected = model.vit(NORMALISED).last_hidden_state[:, 0]
    features = backbones.load_backbone(f"transformers:{tmp_path}").features(IMAGES)
    torch.testing.assert_close(features, expected)


@transformers_installed
def test_weights_that_transformers_would_draw_at_random_are_refused(tmp_path: Path) -> None:
    model = random_model("dinov2")
    save_model(tmp_path, model)
    weights = model.state_dict()
    del weights["encoder.layer.1.mlp.fc1.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lacks weights.*layer\.1\.mlp\.fc1\.weight"):
        backbones.load_backbone(f"transformers:{tmp_path}")


@transformers_installed
def test_a_text_model_takes_no_images(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    BertModel(config).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="BertModel, which takes no images"):
        backbones.load_backbone(f"transformers:{tmp_path}")


@transformers_installed
def test_the_commit_of_a_hub_model_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--org--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(REVISION)
    save_model(home / "snapshots" / REVISION, random_model("vit"))
    facts = backbones.load_backbone("transformers:org/tiny").facts
    assert (facts.revision, facts.mean) == (REVISION, MEAN)
    assert backbones.load_backbone(f"transformers:org/tiny@{REVISION}").facts.revision == REVISION
    control = backbones.load_backbone("transformers:org/tiny", random_init=0).facts
    assert control.weights_hash != facts.weights_hash
    with pytest.raises(CheckpointError, match="cannot get the weights") as caught:
        backbones.load_backbone("transformers:org/other")
    assert "HF_HUB_OFFLINE" in caught.value.fix


@pytest.mark.parametrize("package", ["transformers", "open_clip"])
def test_an_extra_that_is_not_installed_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fsbench.backbones.sources.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=f"needs {package}, which is not installed") as caught:
        backbones.load_backbone(f"{package}:org/name")
    assert caught.value.fix == f"pip install 'fsbench[{package}]'"


@open_clip_installed
def test_references_of_open_clip() -> None:
    with pytest.raises(UsageError, match="without weights"):
        backbones.load_backbone("open_clip:ViT-B-32")
    with pytest.raises(UsageError, match="unknown open_clip architecture") as caught:
        backbones.load_backbone("open_clip:vit-b-23/openai")
    assert "ViT-B-32" in caught.value.fix
    with pytest.raises(UsageError, match="unknown weights of open_clip's ViT-B-32") as caught:
        backbones.load_backbone("open_clip:ViT-B-32/OpenAi-")
    assert "openai" in caught.value.fix
    with pytest.raises(CheckpointError, match="cannot get the weights"):
        backbones.load_backbone("open_clip:ViT-B-32/laion2b_s34b_b79k")


@transformers_installed
@pytest.mark.parametrize("pool", ["cls", "cls+avg", "max"])
def test_last_four_blocks_of_transformers(pool: str, tmp_path: Path) -> None:
    from transformers import AutoModel, Dinov2Config

    config = Dinov2Config(
        **{"image_size": SIZE, "patch_size": 8, "hidden_size": 16, "mlp_ratio": 2},
        **{"num_hidden_layers": 5, "num_attention_heads": 2},
    )
    model = AutoModel.from_config(config).eval()
    save_model(tmp_path, model)
    spec = FeatureSpec(pool=pool, layers="last4")
    backbone = backbones.load_backbone(f"transformers:{tmp_path}", features=spec)
    with torch.no_grad():
        states = model(NORMALISED, output_hidden_states=True).hidden_states[-4:]
        tokens = [model.layernorm(state) for state in states]
        last = model(NORMALISED).last_hidden_state
    torch.testing.assert_close(tokens[-1], last)
    cls = [state[:, 0] for state in tokens]
    expected = {
        "cls": cls,
        "cls+avg": [*cls, last[:, 1:].mean(1)],
        "max": [state[:, 1:].amax(1) for state in tokens],
    }[pool]
    torch.testing.assert_close(backbone.features(IMAGES), torch.cat(expected, 1))
    save_model(tmp_path / "small", random_model("dinov2"))
    with pytest.raises(UsageError, match="fewer than 4 blocks"):
        backbones.load_backbone(f"transformers:{tmp_path / 'small'}", features=spec)


@open_clip_installed
def test_last_four_blocks_of_open_clip() -> None:
    spec = FeatureSpec(layers="last4")
    backbone = backbones.load_backbone("open_clip:ViT-S-32-alt", random_init=0, features=spec)
    tower: Any = backbone.module.get_submodule("module")
    outputs: list[Tensor] = []
    handles = [
        block.register_forward_hook(lambda module, inputs, output: outputs.append(output))
        for block in tower.transformer.resblocks[-4:]
    ]
    images = torch.rand(2, 3, 224, 224)
    with torch.no_grad():
        features = backbone.module(images)
    for handle in handles:
        handle.remove()
    expected = [tower.ln_post(output)[:, 0] for output in outputs]
    torch.testing.assert_close(features, torch.cat(expected, 1))
    assert backbone.facts.features == "cls token of the last 4 blocks"
