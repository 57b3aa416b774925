"""A checkpoint file and its architecture: FILE[::PART] --arch NAME (timm, or fsbench/NAME).

PART chooses where a file holds several sets of weights, e.g. `last.pth.tar::state_dict_ema`; it is
a nested key, dotted ones too, or the prefix of flat names, e.g. `moco.pth::momentum_encoder`.
"""

from __future__ import annotations

from pathlib import Path

from fsbench.backbones import checkpoint
from fsbench.backbones.matching import load_into
from fsbench.backbones.sources import _timm, fsbench, timm
from fsbench.backbones.sources._base import Loaded, Request
from fsbench.backbones.unwrap import state_of
from fsbench.core.errors import UsageError

FORM = "FILE[::PART]"
PREFIX = ""


def load(request: Request) -> Loaded:
    """Raises UsageError without an architecture, CheckpointError for anything but a full match."""
    path, _, key = request.name.partition("::")
    if request.arch is None:
        raise UsageError(
            f"{path} is a file of weights: its architecture is not known",
            fix="add --arch with a timm name or fsbench/NAME",
        )
    loaded = architecture(request.arch)
    if request.random_init is None:
        tree = checkpoint.read(Path(path))
        state = state_of(tree, key or None, path)
        load_into(loaded.module, state, request.name, request.arch, request.report)
    return loaded


def architecture(arch: str) -> Loaded:
    """A freshly initialised network by the name that --arch takes. Raises UsageError."""
    if arch.startswith(fsbench.PREFIX):
        return fsbench.build(arch.removeprefix(fsbench.PREFIX))
    name = arch.removeprefix(timm.PREFIX)
    timm.check(name)
    return _timm.build(name, pretrained=False)
