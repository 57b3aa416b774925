"""A checkpoint file and its architecture: FILE[::PART][@ARCH].

PART chooses where several sets of weights of a file fit, e.g. `last.pth.tar::state_dict_ema`; it is
a nested key, dotted ones too, or the prefix of flat names, e.g. `moco.pth::momentum_encoder`. ARCH
is a timm name or the reference of any other source that builds a network, e.g.
`py:PKG.MOD:FUNCTION`; --arch states it for all files that do not name theirs.
"""

from dataclasses import replace
from pathlib import Path

from fsbench.backbones import checkpoint
from fsbench.backbones.checkpoint import FileReference, with_stated_preprocessing
from fsbench.backbones.matching import load_weights
from fsbench.backbones.sources import (
    SOURCES,
    BackboneRequest,
    LoadedNetwork,
    check_request,
    split_scheme,
)
from fsbench.core.errors import UsageError

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
    loaded = SOURCES.load(source).load(inner)
    if source not in {"timm", "fsbench"}:
        loaded = replace(loaded, architecture=inner.ref)
    if request.random_init is None:
        tree = checkpoint.read_checkpoint(Path(file.path))
        load_weights(loaded.module, tree, file, loaded.architecture, request.report)
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
