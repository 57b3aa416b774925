"""A checkpoint file and its architecture: FILE[::PART][@ARCH].

PART chooses where several sets of weights fit: a nested key, e.g. `last.tar::state_dict_ema`, or
the prefix of flat names, e.g. `moco.pth::momentum_encoder`. ARCH is a timm name or the reference of
any other source that builds a network; --arch states it for all files that do not name theirs.

FILE may be one of several shards, their index, or a folder that `save_pretrained` of timm or
transformers wrote, whose config.json states the architecture.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fsbench.backbones import checkpoint, preprocessing
from fsbench.backbones.checkpoint import KINDS, SUFFIXES, FileReference
from fsbench.backbones.layouts import Layout, recognise_layouts
from fsbench.backbones.matching import iterate_states, load_weights
from fsbench.backbones.preprocessing import DEFAULT, WRITTEN, Preprocessing
from fsbench.backbones.sources import Argument, BackboneRequest, LoadedNetwork, split_scheme
from fsbench.core.errors import CheckpointError, UsageError

FORM = "FILE[::PART][@ARCH]"
PREFIX = ""

WEIGHTS = tuple(f"{name}{end}" for name in WRITTEN for end in ("", checkpoint.INDEX))
"""Files of weights in a folder of save_pretrained, the preferred one first."""
FOLDERS: dict[str, list[str]] = KINDS["folders"]


def check(request: BackboneRequest) -> None:
    """Raise UsageError without an architecture, CheckpointError for the first bytes of the file."""
    file, architecture = parse(request)
    if request.random_init is None:
        for shard in checkpoint.list_shards(Path(file.path)):
            checkpoint.find_format(shard)
    architecture.check()


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a file. Raise UsageError without an architecture, CheckpointError without full match."""
    file, architecture = parse(request)
    path = Path(file.path)
    if file.arch == f"transformers:{path.parent}":
        return replace(architecture, random_init=request.random_init).load()
    tree = checkpoint.read_checkpoint(path)  # also for a control, which it equals
    layouts = recognise_layouts(iterate_states(tree))
    names = f"{checkpoint.named_architecture(tree)} {path.name}"
    check_padding(architecture, file, names, any(layout.tf for layout in layouts))
    architecture = with_arguments(architecture, file, layouts)
    loaded = architecture.load()
    if architecture.source not in {"timm", "fsbench"}:
        loaded = replace(loaded, architecture=architecture.ref)
    if request.random_init is None:
        name = loaded.architecture
        load_weights(loaded.module, tree, file, name, request.report, layouts=layouts)
    weights = path.with_name(path.name.removesuffix(checkpoint.INDEX))
    stated = preprocessing.read_config(weights, architecture.name)
    for layout in layouts:  # the first that fixes them states mean and std
        mean, std = layout.statistics or (None, None)
        stated = stated.over(Preprocessing.stated(f"layout of {layout.name}", mean=mean, std=std))
    facts = loaded.preprocessing
    sources = {name: by for name, by in facts.sources.items() if by != DEFAULT}
    of_weights = Preprocessing({name: facts.values[name] for name in sources}, sources)
    return replace(loaded, preprocessing=stated.over(of_weights))


def parse(request: BackboneRequest) -> tuple[FileReference, BackboneRequest]:
    """Return the file of weights and the request to the source of its architecture.

    Raises UsageError for a folder without weights and for a file without an architecture.
    """
    file = FileReference.parse(request.name) or FileReference(request.name)
    named, arch = Path(file.path), file.arch or request.arch or ""
    path = find_weights(named) if named.is_dir() else named
    configured = configured_architecture(path) if not arch and path.name in WEIGHTS else ""
    if named.is_dir() or path.name.endswith(checkpoint.INDEX):
        arch = arch or configured
    file = replace(file, path=str(path), arch=arch)
    if not arch:
        if stated := checkpoint.named_architecture(checkpoint.read_checkpoint(path)):
            fix = f"the file names {stated}: pass {replace(file, arch=stated)}"
        elif configured:
            fix = f"config.json beside it names {configured}: pass {path.parent}"
        else:
            fix = f"add --arch with a timm name or fsbench/NAME, or {replace(file, arch='ARCH')}"
        raise UsageError(f"{path} does not state the architecture of its weights", fix=fix)
    source, name = split_scheme(arch) or ("timm", arch)
    seed = None if source == "py" else request.random_init or 0
    return file, replace(request, ref=arch, source=source, name=name, arch=None, random_init=seed)


def find_weights(folder: Path) -> Path:
    """Return the weights in a folder. Raise UsageError without any."""
    mark = next((n for n in ("run.json", *WEIGHTS, *FOLDERS) if (folder / n).is_file()), "")
    if mark in WEIGHTS:
        return folder / mark
    files = sorted(str(file) for file in folder.iterdir() if file.suffix in SUFFIXES)
    fix = f"pass {', or '.join(files[:10]) or 'a file'}"
    kind, fix = FOLDERS.get(mark, [f"none of {', '.join(WEIGHTS)} is in it", fix])
    raise UsageError(f"{folder} is a folder: {kind}", fix=fix.format(folder=folder))


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
    for layout in layouts:
        fixed = {k: v for k, v in layout.arguments_for(name).items() if k not in stated}
        for key, value in fixed.items():
            stated[key] = value
            request.report.log(f"{file} is {layout.name}: {key}={value} ({layout.source})")
    pattern, added, plain = QUICK[request.source]
    quick = request.renamed(re.sub(pattern, added, name, count=1))
    if plain.partition("=")[0] not in stated and quick.name != name and quick.is_known():
        plain_ref = request.renamed(f"{name}?{plain}").ref
        raise UsageError(
            f"{file} does not tell its activation: {name} has GELU, {quick.name} QuickGELU",
            fix=f"pass {replace(file, arch=quick.ref)} for weights of OpenAI, MetaCLIP or DFN, "
            f"{replace(file, arch=plain_ref)} for those of LAION",
        )
    return request.renamed(join_arguments(name, stated))


def check_padding(request: BackboneRequest, file: FileReference, stated: str, tf: bool) -> None:
    """Name the network of timm that has the same shapes, but pads as TensorFlow does, if any.

    Raises CheckpointError where the layout of the file (tf), or what it states, tells that it is.
    """
    name = request.split()[0].partition(".")[0]
    padded = request.renamed(f"tf_{name}")
    if request.source != "timm" or not padded.is_known():
        return
    text = f"{name} has the shapes of tf_{name}, but another padding and epsilon"
    if tf or padded.name in stated:
        fix = f"pass {replace(file, arch=padded.ref)}"
        raise CheckpointError(f"{file} is of tf_{name}; {text}", fix=fix)
    request.report.log(f"{file}: {text}; pass the one that the weights were trained with")
