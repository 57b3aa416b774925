"""Networks of timm, for every source that names one: its library, the hub, a file's --arch."""

from __future__ import annotations

import pickle
from typing import Any

from torch import nn

from fsbench.backbones import checkpoint
from fsbench.backbones.sources._base import Loaded, triple
from fsbench.core.errors import CheckpointError, UsageError

POOLS = {"token": "cls token", "avg": "global average pooling", "map": "attention pooling"}


def build(name: str, *, pretrained: bool) -> Loaded:
    """The head-free network `name` of timm with its own mean, std and input size.

    Pretrained weights are loaded with their own head, so that timm checks every name, and the head
    is taken off afterwards. Raises CheckpointError where they cannot be had, UsageError for an
    unknown tag.
    """
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
    from timm.data.config import resolve_model_data_config

    try:
        with checkpoint.only_tensors():
            model = create(name, pretrained=True) if pretrained else create(name, num_classes=0)
    except (OSError, HfHubHTTPError, OfflineModeIsEnabled) as error:
        raise unreachable(name, error) from error
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise refused(name, error) from error
    if pretrained:
        model.reset_classifier(0)
    config = resolve_model_data_config(model)  # type: ignore[no-untyped-call]
    tag = model.pretrained_cfg.get("tag") if pretrained else None
    architecture = str(model.pretrained_cfg.get("architecture") or name)
    return Loaded(
        module=model,
        architecture=f"{architecture}.{tag}" if tag else architecture,
        features=features(model),
        input_size=int(config["input_size"][-1]),
        mean=triple(config["mean"]),
        std=triple(config["std"]),
    )


def create(name: str, **options: Any) -> Any:
    """`timm.create_model`, ready for other input sizes where the family offers that."""
    import timm

    try:
        return timm.create_model(name, dynamic_img_size=True, **options)
    except TypeError as error:
        if "dynamic_img_size" not in str(error):
            raise
        return timm.create_model(name, **options)


def features(model: nn.Module) -> str:
    """How a headless timm network makes its features, e.g. 'timm, num_classes=0: cls token'."""
    head = getattr(model, "head", None)
    pool = next(
        (p for owner in (model, head) if (p := getattr(owner, "global_pool", None)) is not None), ""
    )
    kind = str(getattr(pool, "pool_type", pool if isinstance(pool, str) else "")) or "its own"
    wide = getattr(model, "head_hidden_size", None) not in {None, getattr(model, "num_features", 0)}
    how = POOLS.get(kind, f"{kind} pooling")
    return f"timm, num_classes=0: {how}{', pre_logits' if wide else ''}"


def unreachable(name: str, error: Exception) -> CheckpointError:
    """No copy of the weights here and no way to the hub."""
    reason = str(error).strip().splitlines()[0]
    return CheckpointError(
        f"cannot get the weights of {name}: {reason}",
        fix="fill the Hugging Face cache (HF_HOME) on a machine with network and copy it here; "
        "check the name and revision; or pass --random-init SEED for random weights",
    )


def refused(name: str, error: Exception) -> UsageError | CheckpointError:
    """What timm says where it builds no network: an unknown tag, no weights, or a misfit."""
    text = " ".join(str(error).split())
    if text.startswith(("Invalid pretrained tag", "Unknown model")):
        return UsageError(f"{name}: {text}", fix="see the known names on the timm page of the hub")
    return CheckpointError(
        f"{name}: {text[:500]}", fix="choose weights that exist, or pass --random-init SEED"
    )
