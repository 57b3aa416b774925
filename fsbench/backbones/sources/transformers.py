"""Vision models of Hugging Face transformers: transformers:ORG/NAME[@REV], or a local folder.

Images enter as the model's own image processor hands them on. What that does is measured on images
of one colour, so every option of its file and every default of its class counts. Masked
autoencoders see all patches, in their order.

Features are the model's own pooled output. Where that is a trained layer of pretraining (the dense
pooler of ViT), or where there is none, they are the cls token after the last norm, or the average
of the patches. Of two towers (CLIP, SigLIP) the vision tower is taken, without its projection. Code
from the hub is never run.
"""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fsbench.backbones.preprocessing import Preprocessing, read_json_beside
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, require_extra
from fsbench.backbones.sources._hub import check_repository, commit_of, library_access
from fsbench.core.errors import CheckpointError, UsageError

FORM = "transformers:ORG/NAME"
PREFIX = "transformers:"
PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
ROUNDING = 1e-4


class VisionModel(nn.Module):
    """A model of transformers as a map from images to features; attributes as timm's have them.

    num_prefix_tokens: tokens before those of the patches, the cls token first if there is one;
    flipped: images enter as BGR.
    """

    def __init__(self, model: nn.Module, size: int, ref: str, flipped: bool = False) -> None:
        super().__init__()
        if getattr(model, "main_input_name", "") != "pixel_values":
            raise UsageError(
                f"{ref} is a {type(model).__name__}, which takes no images",
                fix="name a vision model",
            )
        self.model: Any = model
        self.flipped = flipped
        options = inspect.signature(model.forward).parameters
        self.options = {"interpolate_pos_encoding"} & options.keys()
        config: Any = model.config
        self.masks = "noise" in options and hasattr(config, "mask_ratio")
        if self.masks:
            config.mask_ratio = 0.0
        if hasattr(getattr(model, "pooler", None), "dense"):
            # It was trained for the classes of pretraining, or not at all.
            model.register_module("pooler", None)
        names = {name.split(".")[-1] for name, _ in model.named_parameters()}
        self.cls_token = True if {"cls_token", "class_embedding"} & names else None
        self.global_pool = "token" if self.cls_token else "avg"
        output = self.call(torch.zeros(1, 3, size, size))
        self.pooled = getattr(output, "pooler_output", None) is not None
        tokens = output.last_hidden_state
        patch = getattr(config, "patch_size", size)
        side = size // (patch if isinstance(patch, int) else patch[0])
        self.num_prefix_tokens = max(tokens.shape[1] - side**2, 0) if tokens.ndim == 3 else 0

    def call(self, images: Tensor) -> Any:
        """Call the model, without random masks."""
        options: dict[str, Any] = dict.fromkeys(self.options, True)
        if self.flipped:
            images = images.flip(1)
        if self.masks:
            patch = self.model.config.patch_size
            n = images.shape[-1] // patch * (images.shape[-2] // patch)
            options["noise"] = torch.arange(n, device=images.device).expand(len(images), n)
        return self.model(pixel_values=images, **options)

    def forward_features(self, images: Tensor) -> Tensor:
        return self.call(images).last_hidden_state  # type: ignore[no-any-return]

    def forward(self, images: Tensor) -> Tensor:
        output = self.call(images)
        hidden: Tensor = output.pooler_output if self.pooled else output.last_hidden_state
        if self.pooled:
            return hidden.flatten(1)
        if hidden.ndim == 4:
            return hidden.mean((2, 3))
        return hidden[:, 0] if self.cls_token else hidden.mean(1)


def check(request: BackboneRequest) -> None:
    """Raise UsageError without the extra, or for a malformed id."""
    require_extra("transformers", request.ref)
    if not Path(request.name).is_dir():
        check_repository(request)


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a model. Raise UsageError for text models, CheckpointError without weights."""
    from transformers.utils import logging

    local = Path(request.name).is_dir()
    name, _, revision = (request.name, "", "") if local else request.name.partition("@")
    logging.disable_progress_bar()
    with library_access(request):
        model, folder = load_model(name, revision or "main", request.random_init is None)
        preprocessing, flipped = measure_processor(folder)
    size: Any = getattr(model.config, "image_size", None)
    size = size if isinstance(size, int | None) else size[-1]
    stated = preprocessing.over(Preprocessing.stated("config.json", input_size=size))
    test_size = stated.input_size or 224
    network = VisionModel(model.eval(), test_size, request.ref, flipped)
    pooling = "cls token" if network.cls_token else "global average pooling"
    return LoadedNetwork(
        module=network,
        architecture=type(model).__name__,
        features=f"transformers: {'pooler_output' if network.pooled else pooling}",
        preprocessing=stated,
        test_size=test_size,
        more={} if local else {"revision": commit_of(request.name)},
    )


def measure_processor(folder: Path) -> tuple[Preprocessing, bool]:
    """Return what the image processor of a folder does, and whether it hands on BGR.

    What an evaluation cannot repeat, e.g. padding, is unknown and named as the problem.
    """
    from PIL import Image
    from transformers import AutoImageProcessor

    files = [path for name in PROCESSOR_FILES if (path := folder / name).is_file()]
    content = {key: value for path in files for key, value in read_json_beside(path).items()}
    stated = Preprocessing.stated(files[0].name if files else "", input_size=stated_size(content))
    try:
        processor: Any = AutoImageProcessor.from_pretrained(folder, trust_remote_code=False)
        as_they_are = {"do_resize": False, "do_center_crop": False, "return_tensors": "pt"}
        images = [Image.new("RGB", (8, 8), c) for c in ("black", "white", "red", "lime")]
        outputs = [processor(image, **as_they_are)["pixel_values"][0] for image in images]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = f"no image processor is read: {' '.join(str(error).split())[:150]}"
        return replace(stated, problem=reason if files else ""), False
    name = type(processor).__name__
    if (resample := getattr(processor, "resample", None)) is not None:
        method = Image.Resampling(int(resample)).name.lower()
        stated = stated.over(Preprocessing.stated(name, interpolation=method))
    pixels = torch.stack([output.double().flatten(1) for output in outputs])
    colours = pixels.mean(2)
    black, scale = colours[0], colours[1] - colours[0]
    flipped = bool((colours[2] - black)[-1] == scale[-1])
    inputs = torch.tensor([[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0]], dtype=torch.float64)
    predicted = black + scale * (inputs.flip(1) if flipped else inputs)
    is_affine = torch.allclose(pixels, predicted[..., None])
    unscaled = 255 * processor.rescale_factor if processor.do_rescale else 255.0
    if getattr(processor, "do_pad", None) or not is_affine:
        problem = f"{name} pads images or mixes their pixels"
    elif processor.do_normalize is False and (scale / unscaled - 1).abs().max() > ROUNDING:
        problem = f"do_normalize is false, and {name} multiplies by {scale[0] / unscaled:.3g}"
    else:
        order = [2, 1, 0] if flipped else [0, 1, 2]
        values: dict[str, Any] = {"mean": -black / scale, "std": 1 / scale}
        for field, measured in values.items():  # the file's numbers, where these are rounded
            stat, numbers = measured[order].numpy(), getattr(processor, f"image_{field}", None)
            is_same = numbers is not None and np.allclose(stat, numbers, ROUNDING, ROUNDING)
            values[field] = numbers if is_same else stat.round(6).tolist()
        return Preprocessing.stated(name, **values).over(stated), flipped
    return replace(stated, problem=problem), False


def stated_size(content: Mapping[str, Any]) -> int | None:
    """Return the side (px) that a preprocessor file states: of the crop, else of the resizing."""
    names = ("crop_size", "size") if content.get("do_center_crop", True) else ("size",)
    size: Any = next((content[name] for name in names if content.get(name)), None)
    if isinstance(size, dict):
        size = size.get("height", size.get("shortest_edge"))
    return size if isinstance(size, int) else None


def load_model(name: str, revision: str, pretrained: bool) -> tuple[Any, Path]:
    """Return the model, or its vision tower, and the folder of its files.

    Raises CheckpointError if weights are missing that the features depend on.
    """
    from transformers import AutoConfig, AutoModel
    from transformers.utils import cached_file

    options: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(name, **options)
    optional = {"revision": revision, "_raise_exceptions_for_missing_entries": False}
    path, *_ = [cached_file(name, f, **optional) for f in ("config.json", *PROCESSOR_FILES)]
    missing: set[str] = set()
    if pretrained:
        model, report = AutoModel.from_pretrained(name, output_loading_info=True, **options)
        missing = set(report["missing_keys"]) | {key for key, *_ in report["mismatched_keys"]}
    else:
        model = AutoModel.from_config(config, trust_remote_code=False)
    tower = "vision_model." if hasattr(model, "vision_model") else ""
    missing = {n for n in missing if n.startswith(tower) and not n.startswith("pooler.dense.")}
    if missing:
        raise CheckpointError(
            f"{name} lacks weights of {type(model).__name__}: {', '.join(sorted(missing)[:10])}",
            fix="choose a repository with all of them",
        )
    return getattr(model, "vision_model", model), Path(str(path)).parent
