"""From a reference to a frozen backbone, or to a run's classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.base import Backbone, feature_dim, freeze
from fsbench.backbones.norms import n_affine
from fsbench.backbones.reference import SOURCES, parse
from fsbench.backbones.sources import run
from fsbench.backbones.sources._base import Loaded, Request
from fsbench.backbones.weights import check_finite, weights_hash
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts
from fsbench.core.seeding import stream


def load(
    ref: str,
    *,
    arch: str | None = None,
    random_init: int | None = None,
    device: str = "cpu",
    report: Reporter = SILENT,
    trusted: bool = True,
) -> Backbone:
    """The head-free backbone that `ref` names (design.md 6), frozen, in eval mode, on `device`.

    arch: architecture of a checkpoint file; random_init: seed of random weights instead of the
    pretrained ones; trusted=False refuses references that run code (`py:`). Raises UsageError,
    UnknownName, CheckpointError.
    """
    name, rest = parse(ref)
    if arch is not None and name != "file":
        raise UsageError(
            f"--arch is for checkpoint files; '{ref}' names its architecture itself",
            fix="leave --arch out",
        )
    request = Request(ref, rest, arch, random_init, trusted, report)
    with stream("random-init", random_init or 0):
        loaded = SOURCES.load(name).load(request)
    module = freeze(loaded.module)
    check_finite(module.state_dict(), ref)
    facts = facts_of(request, name.replace("_", "-"), loaded, module)
    module = module.to(torch.device(device)).to(memory_format=torch.channels_last)
    return Backbone(facts, module)


def facts_of(request: Request, source: str, loaded: Loaded, module: nn.Module) -> BackboneFacts:
    """What is recorded of a backbone in every result."""
    fields = {
        "ref": request.ref,
        "source": source,
        "architecture": loaded.architecture,
        "feature_dim": feature_dim(module, loaded.input_size, request.ref),
        "features": loaded.features,
        "input_size": loaded.input_size,
        "mean": loaded.mean,
        "std": loaded.std,
        "n_parameters": sum(p.numel() for p in module.parameters()),
        "n_affine": n_affine(module),
        "weights_hash": weights_hash(module.state_dict()),
        "random_init": request.random_init,
    }
    return BackboneFacts.model_validate(fields | loaded.more)


@dataclass(frozen=True, eq=False)
class Classifier:
    """Trunk and head of a run of our own, in eval mode, with gradients enabled.

    model: normalised images (B, 3, H, W) -> logits (B, classes); record: what the run says of
    itself.
    """

    model: nn.Module
    architecture: str
    roles: RoleMap
    facts: BackboneFacts
    record: run.RunRecord


def classifier(ref: str, *, device: str = "cpu") -> Classifier:
    """The whole network of `run:DIR`. Raises UsageError for any other reference, and for a run of
    a meta-learner, whose head tells the classes of a task apart.
    """
    name, rest = parse(ref)
    if name != "run" or not run.read(Path(rest)).classifies_source:
        raise UsageError(
            f"'{ref}' has no source classifier of ours",
            fix="pass a run of our own as run:DIR, none of a meta-learner",
        )
    facts = load(ref).facts
    with stream("random-init", 0):
        model, record = run.load_classifier(Path(rest))
    check_finite(model.state_dict(), ref)
    roles = run.architecture_of(record).roles(model)
    model = model.eval().to(torch.device(device))
    return Classifier(model, record.architecture, roles, facts, record)
