"""Vision models of Hugging Face transformers: transformers:ORG/NAME[@REV], or a local folder.

Features are the model's own pooled output. Where that is a trained layer of pretraining (the dense
pooler of ViT), or where there is none, they are the cls token after the last norm, or the average
of the patches. Of a model with two towers (CLIP, SigLIP) the vision tower is taken, without its
projection. Needs the extra `transformers`; code from the hub is never run.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.backbones.checkpoint import with_stated_preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, require_extra
from fsbench.backbones.sources._hub import commit_of, hub_access, unreachable_error
from fsbench.core.errors import CheckpointError, UsageError

FORM = "transformers:ORG/NAME"
PREFIX = "transformers:"


class VisionModel(nn.Module):
    """A model of transformers as a map from images to features; attributes as timm's have them.

    num_prefix_tokens: tokens before those of the patches, the cls token first if there is one.
    """

    def __init__(self, model: nn.Module, size: int, ref: str) -> None:
        super().__init__()
        if getattr(model, "main_input_name", "") != "pixel_values":
            raise UsageError(
                f"{ref} is a {type(model).__name__}, which takes no images",
                fix="name a vision model",
            )
        self.model: Any = model
        options = inspect.signature(model.forward).parameters
        self.options = {"interpolate_pos_encoding"} & options.keys()
        if hasattr(getattr(model, "pooler", None), "dense"):
            model.register_module(
                "pooler", None
            )  # trained for the classes of pretraining, or not at all
        names = [name.split(".")[-1] for name, _ in model.named_parameters()]
        self.cls_token = True if {"cls_token", "class_embedding"} & set(names) else None
        self.pooled = False
        output = self.outputs(torch.zeros(1, 3, size, size))
        self.pooled = getattr(output, "pooler_output", None) is not None
        tokens = output.last_hidden_state
        patch = getattr(self.model.config, "patch_size", size)
        side = size // (patch if isinstance(patch, int) else patch[0])
        self.num_prefix_tokens = max(tokens.shape[1] - side**2, 0) if tokens.ndim == 3 else 0
        self.global_pool = "token" if self.cls_token else "avg"

    @property
    def words(self) -> str:
        """Description of the features."""
        native = "cls token" if self.cls_token else "global average pooling"
        return f"transformers: {'pooler_output' if self.pooled else native}"

    def outputs(self, images: Tensor) -> Any:
        """Return the outputs of the model."""
        return self.model(pixel_values=images, **dict.fromkeys(self.options, True))

    def forward_features(self, images: Tensor) -> Tensor:
        hidden: Tensor = self.outputs(images).last_hidden_state
        return hidden

    def forward_intermediates(
        self, images: Tensor, indices: int, intermediates_only: bool = True
    ) -> list[Tensor]:
        """Return the outputs of the last blocks; of a plain transformer after its last norm."""
        options: dict[str, Any] = dict.fromkeys(self.options, True)
        output = self.model(pixel_values=images, output_hidden_states=True, **options)
        states = output.hidden_states[1:][-indices:]
        norms = (getattr(self.model, name, None) for name in ("layernorm", "post_layernorm"))
        norm = next((norm for norm in norms if norm is not None), None)
        if norm is None or len({state.shape for state in states}) > 1:
            return list(states)
        return [norm(state) for state in states]

    def forward(self, images: Tensor) -> Tensor:
        output = self.outputs(images)
        if self.pooled:
            pooled: Tensor = output.pooler_output
            return pooled.flatten(1)
        hidden: Tensor = output.last_hidden_state
        if hidden.ndim == 4:
            return hidden.mean((2, 3))
        return hidden[:, 0] if self.cls_token else hidden.mean(1)


def check(request: BackboneRequest) -> None:
    """Raise UsageError without the extra, or for a malformed id."""
    require_extra("transformers", request.ref)
    repository = request.name.partition("@")[0]
    if not Path(request.name).is_dir() and repository.count("/") != 1:
        raise UsageError(
            f"'{request.ref}' names no repository and no folder",
            fix="write transformers:ORG/NAME, transformers:ORG/NAME@REVISION or transformers:DIR",
        )


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a model. Raise UsageError for text models, CheckpointError without weights."""
    check(request)
    local = Path(request.name).is_dir()
    name, _, revision = (request.name, "", "") if local else request.name.partition("@")
    options = {"revision": revision or "main", "trust_remote_code": False}
    with quiet_hub(request.ref):
        model, folder = load_model(name, request.random_init is None, options)
    size = getattr(model.config, "image_size", None) or 224
    size = size if isinstance(size, int) else size[-1]
    network = VisionModel(model.eval(), size, request.ref)
    loaded = LoadedNetwork(
        module=network,
        architecture=type(model).__name__,
        features=network.words,
        input_size=size,
        more={} if local else {"revision": commit_of(request.name)},
    )
    return with_stated_preprocessing(loaded, folder / "weights", request.report)


def load_model(name: str, pretrained: bool, options: dict[str, Any]) -> tuple[Any, Path]:
    """Return the model, or its vision tower, and the folder of its files.

    Raises CheckpointError if weights are missing that the features depend on.
    """
    from transformers import AutoConfig, AutoModel
    from transformers.utils import cached_file

    config = AutoConfig.from_pretrained(name, **options)
    path = cached_file(name, "config.json", revision=options["revision"])
    cached_file(
        name,
        "preprocessor_config.json",
        revision=options["revision"],
        _raise_exceptions_for_missing_entries=False,
    )
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


@contextmanager
def quiet_hub(ref: str) -> Iterator[None]:
    """Reach the hub quickly or not at all, without the progress and reports of transformers.

    Raises CheckpointError if it has no such files, or no model that transformers knows.
    """
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with hub_access():
            yield
    except OSError as error:
        raise unreachable_error(ref, error) from error
    except (ValueError, KeyError, RuntimeError, ImportError) as error:
        raise CheckpointError(
            f"{ref}: {' '.join(str(error).split())[:300]}",
            fix="name a repository with a vision model that this version of transformers has",
        ) from error
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
