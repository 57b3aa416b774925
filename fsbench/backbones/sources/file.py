"""A checkpoint file and its architecture: FILE[::PART] --arch NAME (timm, or fsbench/NAME).

PART chooses where a file holds several sets of weights, e.g. `last.pth.tar::state_dict_ema`; it is
a nested key, dotted ones too, or the prefix of flat names, e.g. `moco.pth::momentum_encoder`.
"""

from __future__ import annotations

from pathlib import Path

from fsbench.backbones import checkpoint
from fsbench.backbones.checkpoint import select_state
from fsbench.backbones.preprocessing import with_stated_preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, fsbench, timm
from fsbench.backbones.weights import load_weights
from fsbench.core.errors import UsageError

FORM = "FILE[::PART]"
PREFIX = ""


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a file. Raise UsageError without an architecture, CheckpointError without full match."""
    path, _, key = request.name.partition("::")
    if request.arch is None:
        raise UsageError(
            f"{path} is a file of weights and does not state its architecture",
            fix="add --arch with a timm name or fsbench/NAME",
        )
    loaded = build_architecture(request.arch)
    if request.random_init is None:
        tree = checkpoint.read_checkpoint(Path(path))
        state = select_state(tree, key or None, path)
        load_weights(loaded.module, state, request.name, request.arch, request.report)
    return with_stated_preprocessing(loaded, Path(path), request.report)


def build_architecture(arch: str) -> LoadedNetwork:
    """Build a freshly initialised network by its --arch name. Raise UsageError."""
    if arch.startswith(fsbench.PREFIX):
        return fsbench.build_network(arch.removeprefix(fsbench.PREFIX))
    name = arch.removeprefix(timm.PREFIX)
    timm.check_timm_name(name)
    return timm.build_timm_network(name, pretrained=False)
