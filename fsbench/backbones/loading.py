"""Loading of backbones by reference, and of the classifier of a run."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from fsbench.backbones import sources
from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.base import Backbone, check_finite
from fsbench.backbones.calibration import calibrate
from fsbench.backbones.checkpoint import FIXES, SUFFIXES, FileReference
from fsbench.backbones.preprocessing import EXAMPLES, NEEDED, USER, Preprocessing, unknown_error
from fsbench.backbones.sources import SOURCES, BackboneRequest, run
from fsbench.core.errors import UsageError, nearest_names
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts
from fsbench.core.seeding import stream
from fsbench.core.specs import NATIVE_FEATURES, FeatureSpec


def parse_reference(ref: str) -> tuple[str, str]:
    """Split into (source name, rest of the reference): a known scheme first, then a file.

    Raises UsageError with the nearest name.
    """
    if scheme := sources.split_scheme(ref):
        return scheme
    try:
        if FileReference.parse(ref):
            return "file", ref
        hint = suggest_reference(ref)
    except OSError as error:  # the name is too long, or a folder may not be read
        hint = str(error.strerror)
    forms = ", ".join(source.FORM for _, source in SOURCES.items())
    raise UsageError(f"no backbone '{ref[:200]}'", fix=f"{hint}; known references: {forms}")


def suggest_reference(ref: str) -> str:
    path = Path(ref.partition("::")[0])
    if path.is_symlink():
        return f"it links to a missing file, {path.readlink()}: fetch that, or {FIXES['annex']}"
    _, *rest = re.split("[:/]", ref, maxsplit=1)
    otherwise = "start it with one of the schemes"
    if path.suffix in SUFFIXES or ref.startswith(("/", ".", "~")):
        names = [str(file) for file in path.parent.glob("*") if file.suffix in SUFFIXES]
        otherwise = f"there is no such file in {path.parent.resolve()}"
    elif rest:
        names = [source.PREFIX + rest[0] for _, source in SOURCES.items() if source.PREFIX]
    else:
        import timm

        names = [*(f"timm/{n}" for n in timm.list_models()), *(f"fsbench/{n}" for n in PRESETS)]
    near = nearest_names(str(path), names)
    return f"did you mean '{near[0]}'?" if near else otherwise


def make_request(
    ref: str, arch: str | None = None, random_init: int | None = None, report: Reporter = SILENT
) -> BackboneRequest:
    """Return the request to the source of a reference. Raise UsageError."""
    source, name = parse_reference(ref)
    if arch is not None and source != "file":
        raise UsageError(
            f"--arch is for checkpoint files; '{ref}' names its architecture itself",
            fix="leave --arch out",
        )
    return BackboneRequest(ref, source, name, arch, random_init, report)


def load_backbone(
    ref: str,
    *,
    arch: str | None = None,
    random_init: int | None = None,
    device: str = "cpu",
    report: Reporter = SILENT,
    features: FeatureSpec = NATIVE_FEATURES,
    needs: Iterable[str] = (),
    test_size: int | None = None,
) -> Backbone:
    """Load the head-free backbone of a reference: frozen, in eval mode, on `device`.

    arch: architecture of a checkpoint file; random_init: seed of random weights instead of the
    pretrained ones; features: how they are taken; needs: facts of its preprocessing that must be
    known; test_size: side (px) to test it with, where that of its training is unknown. Raises
    UsageError, CheckpointError.
    """
    request = make_request(ref, arch, random_init, report)
    with stream("random-init", random_init or 0):
        loaded = request.load()
    facts = loaded.preprocessing
    chosen = Preprocessing.stated(USER, mean=features.mean, std=features.std)
    values = facts.over(chosen).values  # a control is calibrated as its network states
    statistics = ("mean", "std") if facts.problem or random_init is not None else ()
    if missing := [n for n in NEEDED if n in {*needs, *statistics} and n not in values]:
        added = " ".join(f"--{n.replace('_', '-')} {EXAMPLES[n]}" for n in missing)
        raise unknown_error(ref, missing, added, facts.problem, loaded.hint)
    if random_init is not None:
        side = facts.input_size or loaded.test_size
        calibration = calibrate(loaded.module, side, values["mean"], values["std"])
        loaded.more.update(random_init=random_init, calibration=calibration)
    side, preprocessing = test_size or loaded.test_size, chosen.over(facts)
    loaded = replace(loaded, preprocessing=preprocessing, test_size=side)
    backbone = Backbone.of(loaded, ref, request.source.replace("_", "-"), features)
    return Backbone(backbone.facts, backbone.module.to(torch.device(device)))


@dataclass(frozen=True, eq=False)
class Classifier:
    """Trunk and head of a run of `fsbench pretrain`, in eval mode, with gradients enabled.

    model: normalised images (B, 3, H, W) -> logits (B, classes); record: the run's own record.
    """

    model: nn.Module
    architecture: str
    roles: RoleMap
    facts: BackboneFacts
    record: run.RunRecord


def load_classifier(ref: str, *, device: str = "cpu") -> Classifier:
    """Load the whole network of `run:DIR`. Raise UsageError for others and for meta-learners."""
    name, rest = parse_reference(ref)
    if name != "run" or not run.read_run(Path(rest)).classifies_source:
        raise UsageError(
            f"'{ref}' has no classifier of a source",
            fix="pass a run of `fsbench pretrain` as run:DIR, except of a meta-learner",
        )
    facts = load_backbone(ref).facts
    with stream("random-init", 0):
        model, record = run.load_run_network(Path(rest))
    check_finite(model.state_dict(), ref)
    roles, model = record.network.roles(model), model.eval().to(torch.device(device))
    return Classifier(model, record.architecture, roles, facts, record)
