"""Networks of timm with pretrained weights, e.g. timm/resnet18.a1_in1k.

Arguments of timm may follow the name: timm/NAME?img_size=224. The hub and checkpoint files build
their networks here too.
"""

from pathlib import Path
from typing import Any

from torch import nn

from fsbench.backbones import preprocessing
from fsbench.backbones.pooling import timm_pool
from fsbench.backbones.preprocessing import DEFAULT, Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork
from fsbench.backbones.sources._hub import commit_of, library_access
from fsbench.core.errors import UnknownName, UsageError

FORM = "timm/NAME"
PREFIX = "timm/"
HUB = "hf-hub:"
POOLS = {"token": "cls token", "avg": "global average pooling", "map": "attention pooling"}


def check(request: BackboneRequest) -> None:
    """Raise UsageError for an unknown name or tag, or one that gives weights another activation."""
    import timm

    name, stated = request.split()
    if not timm.is_model(name):
        raise UnknownName("timm network", name, timm.list_models())
    if "." in name and name not in (tags := timm.list_pretrained(f"{name.split('.')[0]}.*")):
        raise UnknownName("timm weights", name, tags)
    notes = str(getattr(timm.get_pretrained_cfg(name), "notes", ""))
    if "natively QuickGELU" in notes and "quickgelu" not in name and "act_layer" not in stated:
        raise UsageError(
            f"{request.ref} has weights that were trained with QuickGELU, and computes GELU",
            fix=f"pass timm/{request.name.replace('_clip_', '_clip_quickgelu_')}",
        )


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load the head-free network NAME[?key=value] of timm, or of the hub in timm's format.

    Pretrained weights are loaded with their head, so that timm checks every name, and the head is
    removed afterwards. Raises UsageError for wrong arguments, CheckpointError without weights.
    """
    import timm
    from timm.data.config import resolve_model_data_config

    pretrained = request.random_init is None
    base, arguments = request.split()
    name = HUB + base if request.source == "hf_hub" else base
    with library_access(request):
        options: Any = {**arguments, **({"pretrained": True} if pretrained else {"num_classes": 0})}
        try:
            model: Any = timm.create_model(name, dynamic_img_size=True, **options)
        except TypeError as error:  # the family does not support it
            if "dynamic_img_size" not in str(error):
                raise
            model = timm.create_model(name, **options)
    if pretrained:
        model.reset_classifier(0)
    config: Any = resolve_model_data_config(model)  # type: ignore[no-untyped-call]
    tag = model.pretrained_cfg.get("tag") if pretrained or "." in name else None
    architecture = str(model.pretrained_cfg.get("architecture") or name)
    hub_id = str(model.pretrained_cfg.get("hf_hub_id") or "")
    weights = f".{tag}" if tag and pretrained else ""
    side, size = arguments.get("img_size"), config["input_size"][-1]
    if name.startswith(HUB):
        stated = hub_preprocessing(base)
    else:
        values = {field: config[field] for field in ("mean", "std", "interpolation")}
        by = f"timm's tag {tag}" if tag else DEFAULT
        stated = Preprocessing.stated(by, input_size=size, **values)
    return LoadedNetwork(
        module=model,
        architecture=f"{architecture}{weights}{request.name.removeprefix(base)}",
        features=describe_features(model),
        preprocessing=Preprocessing.stated("the reference", input_size=side).over(stated),
        test_size=int(side or size),
        more={"revision": commit_of(hub_id)} if pretrained and hub_id else {},
    )


def hub_preprocessing(repository: str) -> Preprocessing:
    """Return what config.json of a repository in the cache states, without timm's defaults."""
    from huggingface_hub import hf_hub_download

    name, _, revision = repository.partition("@")
    path = hf_hub_download(name, "config.json", revision=revision or None, local_files_only=True)
    return preprocessing.parse_stated(preprocessing.read_json_beside(Path(path)), Path(path))


def describe_features(model: nn.Module) -> str:
    kind = timm_pool(model) or "its own"
    wide = getattr(model, "head_hidden_size", None) not in {None, getattr(model, "num_features", 0)}
    how = POOLS.get(kind, f"{kind} pooling")
    if kind == "token" and getattr(model, "dist_token", None) is not None:
        how = "average of the cls and distillation tokens"
    return f"timm, num_classes=0: {how}{', pre_logits' if wide else ''}"
