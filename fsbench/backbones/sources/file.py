"""A checkpoint file and its architecture: FILE[::PART][@ARCH].

PART chooses where several sets of weights of a file fit, e.g. `last.pth.tar::state_dict_ema`; it is
a nested key, dotted ones too, or the prefix of flat names, e.g. `moco.pth::momentum_encoder`. ARCH
is a timm name or the reference of any other source that builds a network, e.g.
`py:PKG.MOD:FUNCTION`; --arch states it for all files that do not name theirs.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fsbench.backbones import checkpoint
from fsbench.backbones.checkpoint import FileReference, with_stated_preprocessing
from fsbench.backbones.layouts import Layout, recognise_layouts
from fsbench.backbones.matching import load_weights
from fsbench.backbones.sources import (
    SOURCES,
    BackboneRequest,
    LoadedNetwork,
    check_request,
    split_arguments,
    split_scheme,
)
from fsbench.core.errors import CheckpointError, UsageError

FORM = "FILE[::PART][@ARCH]"
PREFIX = ""


def check(request: BackboneRequest) -> None:
    """Raise UsageError without an architecture that can be built."""
    file = parse(request)
    source, inner = architecture_request(request, file)
    check_request(source, inner)


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a file. Raise UsageError without an architecture, CheckpointError without full match."""
    file = parse(request)
    source, inner = architecture_request(request, file)
    layouts: list[Layout] = []
    if request.random_init is None:
        tree = checkpoint.read_checkpoint(Path(file.path))
        layouts = recognise_layouts(tree)
        inner = with_arguments(source, inner, file, layouts)
    loaded = SOURCES.load(source).load(inner)
    if source not in {"timm", "fsbench"}:
        loaded = replace(loaded, architecture=inner.ref)
    if request.random_init is None:
        name = loaded.architecture
        load_weights(loaded.module, tree, file, name, request.report, layouts=layouts)
    return with_stated_preprocessing(loaded, Path(file.path), request.report)


def parse(request: BackboneRequest) -> FileReference:
    """Return the file of a request. Raise UsageError if there is none."""
    file = FileReference.parse(request.name)
    if file is None:
        raise UsageError(f"there is no file '{request.name}'", fix="check the path")
    return file


def architecture_request(
    request: BackboneRequest, file: FileReference
) -> tuple[str, BackboneRequest]:
    """Return the source that builds the architecture of a file, and the request to it.

    Raises UsageError for a file whose architecture nobody states.
    """
    arch = file.arch or request.arch
    if arch is None:
        tree = checkpoint.read_checkpoint(Path(file.path))
        stated = checkpoint.named_architecture(tree)
        suggestion = f"the file names {stated}: pass {replace(file, arch=stated)}"
        raise UsageError(
            f"{file.path} is a file of weights and does not state its architecture",
            fix=suggestion
            if stated
            else "add --arch with a timm name or fsbench/NAME, "
            f"or write it after the file: {replace(file, arch='ARCH')}",
        )
    source, name = split_scheme(arch) or ("timm", arch)
    seed = None if source == "py" else request.random_init or 0
    return source, replace(request, ref=arch, name=name, arch=None, random_init=seed)


def with_arguments(
    source: str, request: BackboneRequest, file: FileReference, layouts: Sequence[Layout]
) -> BackboneRequest:
    """Return the request with the arguments that the layouts of a file fix and the user left open.

    Raises CheckpointError for a network of timm that pads unlike that of the layout.
    """
    import timm

    if source != "timm":
        return request
    name, stated = split_arguments(request.name)
    for layout in layouts:
        if layout.tf and timm.is_model(f"tf_{name}"):
            raise CheckpointError(
                f"{file} is {layout.name}, whose convolutions pad as TensorFlow's and whose norms "
                f"have another epsilon; {name} has the same shapes, but computes something else",
                fix=f"pass {replace(file, arch=f'tf_{name}')}",
            )
        fixed = {k: v for k, v in layout.arguments_for(name).items() if k not in stated}
        if fixed:
            stated |= fixed
            text = ", ".join(f"{key}={value}" for key, value in fixed.items())
            request.report.log(f"{file} is {layout.name}: {text} ({layout.source})")
    arguments = "&".join(f"{key}={value}" for key, value in stated.items())
    return replace(request, name=f"{name}?{arguments}" if arguments else name)
