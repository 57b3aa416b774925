"""Image towers of open_clip: open_clip:ARCH/TAG, e.g. open_clip:ViT-B-32/laion2b_s34b_b79k.

Features are the embedding of images, with the tower's projection. Needs the extra `open_clip`. As
an architecture (FILE@open_clip:ARCH) it takes checkpoints of CLIP training, whose `visual.` part is
found by its names. `?quick_gelu=true` or false states the activation, which no file tells.
"""

from typing import Any

from fsbench.backbones.preprocessing import DEFAULT, Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, require_extra
from fsbench.backbones.sources._hub import commit_of, library_access
from fsbench.core.errors import UnknownName

FORM = "open_clip:ARCH/TAG"
PREFIX = "open_clip:"


def check(request: BackboneRequest) -> None:
    """Raise UsageError without the extra, for an unknown architecture or tag, or without a tag."""
    require_extra("open_clip", request.ref)
    import open_clip

    text, arguments = request.split()
    name, _, tag = text.partition("/")
    for option in arguments.keys() - {"quick_gelu"}:
        raise UnknownName("option of open_clip", option, ["quick_gelu"])
    if name not in (names := open_clip.list_models()):
        raise UnknownName("open_clip architecture", name, names)
    tags = open_clip.list_pretrained_tags_by_model(name)
    if tag not in tags and (tag or request.random_init is None):
        raise UnknownName(f"weights of open_clip's {name}", tag, tags)


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load an image tower. Raise UsageError for an unknown name, CheckpointError without weights.

    An activation that differs between weights and architecture (QuickGELU) is that of the weights.
    """
    import open_clip

    text, arguments = request.split()
    name, _, tag = text.partition("/")
    stated: dict[str, Any] = open_clip.get_pretrained_cfg(name, tag) or {} if tag else {}
    pretrained = tag if request.random_init is None and tag else None
    quick = bool(arguments.get("quick_gelu", stated.get("quick_gelu")))
    with library_access(request):
        model = open_clip.create_model(
            name, pretrained=pretrained, force_quick_gelu=quick, pretrained_image=False
        )
    config = open_clip.get_model_preprocess_cfg(model)
    config |= {key: stated[key] for key in config if stated.get(key) is not None}
    size = config["size"] if isinstance(config["size"], int) else int(config["size"][-1])
    values = {name: config[name] for name in ("mean", "std", "interpolation")}
    repository = str(stated.get("hf_hub") or "").strip("/")
    return LoadedNetwork(
        module=model.visual,
        architecture=request.name,
        features="open_clip: image embedding",
        preprocessing=Preprocessing.stated(
            f"open_clip's tag {tag}" if tag else DEFAULT, input_size=size, **values
        ),
        test_size=size,
        more={"revision": commit_of(repository)} if pretrained and repository else {},
    )
