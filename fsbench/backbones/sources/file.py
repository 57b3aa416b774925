"""A checkpoint file and its architecture: FILE[::PART][@ARCH].

PART chooses where several sets of weights of a file fit, e.g. `last.pth.tar::state_dict_ema`; it is
a nested key, dotted ones too, or the prefix of flat names, e.g. `moco.pth::momentum_encoder`. ARCH
is a timm name or the reference of any other source that builds a network, e.g.
`py:PKG.MOD:FUNCTION`; --arch states it for all files that do not name theirs.

FILE may be one of several shards, their index, or a folder that `save_pretrained` of timm or
transformers wrote, whose config.json states the architecture.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fsbench.backbones import checkpoint, preprocessing
from fsbench.backbones.checkpoint import KINDS, SUFFIXES, FileReference, find_format
from fsbench.backbones.layouts import Layout, recognise_layouts
from fsbench.backbones.matching import iterate_states, load_weights
from fsbench.backbones.preprocessing import WRITTEN, Preprocessing
from fsbench.backbones.sources import Argument, BackboneRequest, LoadedNetwork, split_scheme
from fsbench.core.errors import CheckpointError, UsageError

FORM = "FILE[::PART][@ARCH]"
PREFIX = ""

WEIGHTS = tuple(f"{name}{end}" for name in WRITTEN for end in ("", checkpoint.INDEX))
"""Files of weights in a folder of save_pretrained, the preferred one first."""
FOLDERS: dict[str, list[str]] = KINDS["folders"]


def check(request: BackboneRequest) -> None:
    """Raise UsageError without an architecture, CheckpointError for the first bytes of the file."""
    file = parse(request)
    if request.random_init is None:
        for shard in checkpoint.list_shards(Path(file.path)):
            find_format(shard)
    architecture_request(request, file).check()


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a file. Raise UsageError without an architecture, CheckpointError without full match."""
    file = parse(request)
    inner, path = architecture_request(request, file), Path(file.path)
    if file.arch == f"transformers:{path.parent}":
        return replace(inner, random_init=request.random_init).load()
    tree = checkpoint.read_checkpoint(path)  # also for a control, which it equals
    layouts = recognise_layouts(iterate_states(tree))
    names = f"{checkpoint.named_architecture(tree)} {path.name}"
    check_padding(inner, file, names, any(layout.tf for layout in layouts))
    inner = with_arguments(inner, file, layouts)
    loaded = inner.load()
    if inner.source not in {"timm", "fsbench"}:
        loaded = replace(loaded, architecture=inner.ref)
    if request.random_init is None:
        name = loaded.architecture
        load_weights(loaded.module, tree, file, name, request.report, layouts=layouts)
    weights = path.with_name(path.name.removesuffix(checkpoint.INDEX))
    stated = preprocessing.read_sidecar(weights, inner.name)
    for layout in layouts:  # the first that fixes them states mean and std
        mean, std = layout.statistics or (None, None)
        stated = stated.over(Preprocessing.stated(f"layout of {layout.name}", mean=mean, std=std))
    beside = preprocessing.sidecar_path(weights)
    return replace(
        loaded,
        preprocessing=stated.over(loaded.preprocessing.of_weights()),
        hint=f'; or write {beside}: {{"input_size": 64, "mean": "imagenet", "std": "imagenet"}}',
    )


def parse(request: BackboneRequest) -> FileReference:
    """Return the file of a request; of a folder, with the architecture of its config.json."""
    file = FileReference.parse(request.name)
    if file is None:
        raise UsageError(f"there is no file '{request.name}'", fix="check the path")
    path, arch = weights_in(Path(file.path)), file.arch or request.arch or ""
    if not arch and (Path(file.path).is_dir() or path.name.endswith(checkpoint.INDEX)):
        arch = configured_architecture(path)
    return replace(file, path=str(path), arch=arch)


def weights_in(path: Path) -> Path:
    """Return the weights in a folder, or the path of a file. Raise UsageError without weights."""
    if not path.is_dir():
        return path
    ranked = ("run.json", *WEIGHTS, *FOLDERS)
    mark = next((name for name in ranked if (path / name).is_file()), "")
    if mark in WEIGHTS:
        return path / mark
    files = sorted(str(file) for file in path.iterdir() if file.suffix in SUFFIXES)
    fix = f"pass {', or '.join(files[:10]) or 'a file'}"
    other = [f"none of {', '.join(WEIGHTS)} is in it", fix]
    kind, fix = FOLDERS.get(mark, other)
    raise UsageError(f"{path} is a folder: {kind}", fix=fix.format(folder=path))


def configured_architecture(weights: Path) -> str:
    """Return the architecture in the config.json beside weights of timm or transformers, or ''.

    Raises UsageError for arguments of the architecture that no reference can state.
    """
    path = weights.with_name("config.json")
    config = preprocessing.read_json_beside(path)
    if "model_type" in config:
        return f"transformers:{weights.parent}"
    arguments = {**(config.get("model_args") or {})}
    arguments.pop("num_classes", None)
    if isinstance(size := arguments.get("img_size"), list) and len(set(size)) == 1:
        arguments["img_size"] = size[0]
    if any(not isinstance(value, int | float | str) for value in arguments.values()):
        raise UsageError(
            f"{path} states model_args that no reference can: {arguments}",
            fix=f"pass {weights}@py:PKG.MOD:FUNCTION, a function that builds the network",
        )
    return join_arguments(config.get("architecture", ""), arguments)


def join_arguments(name: str, arguments: Mapping[str, Argument]) -> str:
    """Return NAME?key=value&key=value."""
    return name + "?" * bool(arguments) + "&".join(f"{k}={v}" for k, v in arguments.items())


def architecture_request(request: BackboneRequest, file: FileReference) -> BackboneRequest:
    """Return the request to the source of a file's architecture. Raise UsageError without one."""
    if not file.arch:
        path = Path(file.path)
        if stated := checkpoint.named_architecture(checkpoint.read_checkpoint(path)):
            fix = f"the file names {stated}: pass {replace(file, arch=stated)}"
        elif path.name in WEIGHTS and (beside := configured_architecture(path)):
            fix = f"config.json beside it names {beside}: pass {path.parent}"
        else:
            fix = f"add --arch with a timm name or fsbench/NAME, or {replace(file, arch='ARCH')}"
        raise UsageError(
            f"{file.path} is a file of weights and does not state its architecture", fix=fix
        )
    source, name = split_scheme(file.arch) or ("timm", file.arch)
    seed = None if source == "py" else request.random_init or 0
    return replace(request, ref=file.arch, source=source, name=name, arch=None, random_init=seed)


QUICK = {
    "timm": ("_clip_(?!quick)", "_clip_quickgelu_", "act_layer=gelu"),
    "open_clip": (r"^(ViT\S*)(?<!quickgelu)$", r"\1-quickgelu", "quick_gelu=false"),
}
"""CLIPs with QuickGELU have the shapes of others: what their names add, what the others compute."""


def with_arguments(
    request: BackboneRequest, file: FileReference, layouts: Sequence[Layout]
) -> BackboneRequest:
    """Return the request with the arguments that the layouts of a file fix and the user left open.

    Raises UsageError where only the user can tell which of two activations a CLIP has.
    """
    if request.source not in QUICK:
        return request
    name, stated = request.split()
    prefix = request.ref.removesuffix(request.name)
    for layout in layouts:
        fixed = {k: v for k, v in layout.arguments_for(name).items() if k not in stated}
        for key, value in fixed.items():
            stated[key] = value
            request.report.log(f"{file} is {layout.name}: {key}={value} ({layout.source})")
    pattern, added, plain = QUICK[request.source]
    quick = re.sub(pattern, added, name, count=1)
    unstated = plain.partition("=")[0] not in stated and quick != name
    if unstated and is_known(replace(request, name=quick)):
        raise UsageError(
            f"{file} does not tell its activation: {name} has GELU, {quick} QuickGELU",
            fix=f"pass {replace(file, arch=f'{prefix}{quick}')} for weights of OpenAI, MetaCLIP or "
            f"DFN, {replace(file, arch=f'{prefix}{name}?{plain}')} for those of LAION",
        )
    text = join_arguments(name, stated)
    return replace(request, ref=f"{prefix}{text}", name=text)


def check_padding(request: BackboneRequest, file: FileReference, stated: str, tf: bool) -> None:
    """Name the network of timm that has the same shapes, but pads as TensorFlow does, if any.

    Raises CheckpointError where the layout of the file (tf), or what it states, tells that it is.
    """
    name = request.split()[0].partition(".")[0]
    if request.source != "timm" or not is_known(replace(request, name=f"tf_{name}")):
        return
    text = f"{name} has the shapes of tf_{name}, but another padding and epsilon"
    if tf or f"tf_{name}" in stated:
        prefix = request.ref.removesuffix(request.name)
        raise CheckpointError(
            f"{file} is of tf_{name}; {text}",
            fix=f"pass {replace(file, arch=f'{prefix}tf_{name}')}",
        )
    request.report.log(f"{file}: {text}; pass the one that the weights were trained with")


def is_known(request: BackboneRequest) -> bool:
    try:
        request.check()
    except UsageError:
        return False
    return True
