"""The frozen, head-free backbone that pretraining and protocols share, and hashes of weights."""

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import below, count_affine, record_outputs
from fsbench.backbones.pooling import FeatureReader
from fsbench.backbones.preprocessing import (
    EXAMPLES,
    NEEDED,
    USER,
    Preprocessing,
    parse_statistics,
    unknown_error,
)
from fsbench.backbones.sources import LoadedNetwork
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.io import refuse_invalid
from fsbench.core.schema import IN_MEMORY, BackboneFacts
from fsbench.core.seeding import stream
from fsbench.core.specs import NATIVE_FEATURES, FeatureSpec, Pooling

COUNTER = "num_batches_tracked"
"""A BatchNorm buffer without effect in eval mode, which old files lack."""


def weights_hash(state_dict: Mapping[str, Tensor], head: tuple[str, ...] = ()) -> str:
    """Return the sha-256 over the tensors outside `head` (module prefixes), 64 hex digits.

    It covers name, dtype, shape and bytes in order of name, without batch counters.
    """
    digest = hashlib.sha256()
    for name in sorted(state_dict):
        if name.endswith(COUNTER) or below(name, head):
            continue
        tensor = state_dict[name].detach().cpu().contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name}\0{dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(state_dict: Mapping[str, Tensor], where: str) -> None:
    """Raise CheckpointError naming `where` and the tensors with NaN or infinity."""
    bad = [n for n, t in state_dict.items() if t.is_floating_point() and not t.isfinite().all()]
    if bad:
        raise CheckpointError(
            f"{where}: NaN or infinity in {len(bad)} of {len(state_dict)} tensors: "
            f"{', '.join(bad[:10])}",
            fix="the training diverged or the file is damaged; take an earlier checkpoint",
        )


NAME = re.compile(r"[A-Za-z0-9_+=@][\w.+@=-]{0,99}", re.ASCII)
"""Names that may be a folder of results."""
HEAD_NAMES = {"fc", "classifier", "head", "heads"}
Statistics = str | float | Sequence[float] | None
"""Mean or std as users write them, see `parse_statistics`."""
REPEATABLE = 1e-5
"""Largest difference of features between two runs, as a share of the largest one."""
RUNS = 20
"""Runs of a network that takes random numbers, which may act on few images only."""
SMALLEST_FEATURES = 64
"""A last linear layer with fewer outputs is taken for a classifier."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen, head-free network in eval mode with the facts that every result records.

    module: maps normalised images (B, 3, H, W) to features (B, D); fingerprint: digest of the
    features of a fixed image, for modules in memory: their code is not part of the weights hash, so
    cached features need it as a key.
    """

    facts: BackboneFacts
    module: nn.Module
    fingerprint: str | None = None

    @classmethod
    def from_module(
        cls,
        module: nn.Module,
        *,
        name: str,
        input_size: int | None = None,
        mean: Statistics = None,
        std: Statistics = None,
        pool: Pooling = "native",
        layers: str = "last",
        features: Literal["trunk", "head"] = "trunk",
        dtype: Literal["fp32", "bf16"] = "fp32",
    ) -> "Backbone":
        """Freeze a copy of a module in memory, without its classifier, as a backbone.

        Results state the source `module` and the reference `module:NAME`, by which nobody else can
        load it. The weights hash is that of the same weights in a file.

        input_size: side (px) of the images in training; mean, std: normalisation of images in
        [0, 1]: `imagenet`, `half`, `none`, a number, or one per channel. These three have no
        default. pool: how one vector per image is taken: as the module returns it (native), the
        first of the tokens (B, N, D), average or maximum over the patches or over maps (B, D, h,
        w). layers: `last`, or the name of a module whose output is taken. features: head takes the
        outputs of a classifier that was left on. dtype: arithmetic; bf16 is autocast.

        Raises UsageError for what is missing or cannot be pooled so; CheckpointError as
        `load_backbone`.

        Examples
        --------
        >>> import torch, fsbench
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
        >>> backbone = fsbench.Backbone.from_module(
        ...     net, name="tiny", input_size=32, mean="half", std="half", pool="avg"
        ... )
        >>> backbone.facts.feature_dim
        8
        """
        if not NAME.fullmatch(name):
            raise UsageError(
                f"model name {name[:100]!r}", fix="use letters, digits and . _ + - = @ only"
            )
        preprocessing = Preprocessing.stated(USER, input_size=input_size, mean=mean, std=std)
        if missing := [field for field in NEEDED if field not in preprocessing.values]:
            added = ", ".join(f"{field}={EXAMPLES[field]!r}" for field in missing)
            raise unknown_error(name, missing, added)
        network, kind = copy.deepcopy(module).cpu(), type(module).__name__
        loaded = LoadedNetwork(network, kind, "as the module returns them", preprocessing)
        spec = feature_spec(pool, layers, features, dtype=dtype)
        made = cls.of(loaded, f"{IN_MEMORY}:{name}", IN_MEMORY, spec)
        with torch.no_grad():
            response = made.module(fixed_images(made.facts.input_size or loaded.test_size))
        digest = hashlib.sha256(response.float().contiguous().numpy().tobytes()).hexdigest()
        return replace(made, fingerprint=digest)

    @classmethod
    def of(
        cls, loaded: LoadedNetwork, ref: str, source: str, spec: FeatureSpec = NATIVE_FEATURES
    ) -> "Backbone":
        """Freeze a loaded network as a backbone whose features are taken as `spec` says.

        Raises UsageError if the network cannot give such features or ends in its classifier,
        CheckpointError if weights are not finite, or if it does not give one vector per image, the
        same ones twice.
        """
        trunk = loaded.module.float().eval().requires_grad_(False)
        check_finite(trunk.state_dict(), ref)
        module, features = trunk, loaded.features
        size = loaded.preprocessing.input_size or loaded.test_size
        if not spec.is_native:
            with stream("pooling"):
                module = FeatureReader(trunk, spec, ref, size)
            features = "".join((module.description, *features.partition(" (")[1:]))
        dim = count_features(module, size, ref)
        if spec.is_native and (source == IN_MEMORY or loaded.architecture.startswith("py:")):
            check_head(module, size, dim, ref, spec.head)
        elif spec.head:
            raise UsageError(
                f"--features head: {source} loads {ref} without its classifier",
                fix="pass a function that returns the whole network, as py:PKG.MOD:FUNCTION",
            )
        facts = BackboneFacts(
            ref=ref,
            source=source,
            architecture=loaded.architecture,
            feature_dim=dim,
            features=features,
            **{name: loaded.preprocessing.values.get(name) for name in (*NEEDED, "interpolation")},
            stated_by=loaded.preprocessing.sources,
            n_parameters=sum(p.numel() for p in trunk.parameters()),
            n_affine=count_affine(trunk),
            weights_hash=weights_hash(trunk.state_dict()),
            feature_spec=spec,
            **loaded.more,
        )
        return cls(facts, module)

    def on(self, device: str) -> "Backbone":
        """Return the backbone on `device`: a copy, unless it is there already."""
        target = torch.device(device)
        if all(tensor.device == target for tensor in self.module.state_dict().values()):
            return self
        return replace(self, module=copy.deepcopy(self.module).to(target))

    def normalised(self, images: Tensor) -> Tensor:
        """Return what the module takes for images (B, 3, H, W), uint8 or float in [0, 1].

        Mean and std are the backbone's own. Raises UsageError where they are unknown.
        """
        if self.facts.mean is None or self.facts.std is None:
            raise UsageError(
                f"mean and std of {self.facts.ref} are unknown",
                fix='state them: load_backbone(..., features=feature_spec(mean="imagenet", ...))',
            )
        pixels = images.float().div_(255) if images.dtype == torch.uint8 else images
        mean, std = (  # laid out like the images, so that elementwise work runs along the memory
            torch.empty_like(pixels[:1]).copy_(pixels.new_tensor(values).view(1, 3, 1, 1))
            for values in (self.facts.mean, self.facts.std)
        )
        return (pixels - mean) / std if pixels is images else pixels.sub_(mean).div_(std)

    def features(self, images: Tensor) -> Tensor:
        """Return features (B, D) float32 of images (B, 3, H, W), uint8 or float in [0, 1]."""
        is_bf16, device = self.facts.feature_spec.dtype == "bf16", images.device.type
        with torch.autocast(device, torch.bfloat16) if is_bf16 else nullcontext():
            out: Tensor = self.module(self.normalised(images))
        return out.float()


def feature_spec(
    pool: str = "native",
    layers: str = "last",
    features: str = "trunk",
    mean: Statistics = None,
    std: Statistics = None,
    dtype: str = "fp32",
) -> FeatureSpec:
    """Return the choices about features as a spec. Raise UsageError."""
    statistics = {"mean": parse_statistics(mean, "mean"), "std": parse_statistics(std, "std")}
    head = {"trunk": False, "head": True}.get(features, features)
    with refuse_invalid(UsageError, "features", "see `fsbench episodic --help`"):
        return FeatureSpec(pool=pool, layers=layers, head=head, dtype=dtype, **statistics)


def fixed_images(size: int) -> Tensor:
    """Return two normalised images of side `size` (px) that differ everywhere."""
    return torch.linspace(-2, 2, 2 * 3 * size**2).view(2, 3, size, size)


def count_features(module: nn.Module, size: int, ref: str) -> int:
    """Return D of the features (B, D), by forward passes of the same two images.

    Raises UsageError if the module takes no images of side `size`, CheckpointError if it returns
    anything but one vector per image, or other vectors another time.
    """
    images = fixed_images(size)
    try:
        with torch.no_grad(), stream("repeatable"):
            before = torch.get_rng_state()
            out = module(images)
            draws = not torch.equal(before, torch.get_rng_state())
            others = [module(images) for _ in range(RUNS if draws else 1)]
    except (AssertionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"{ref} takes no images of {size} px: {str(error).splitlines()[0]}",
            fix="state the size that it was trained at, e.g. --input-size 64",
        ) from error
    if not isinstance(out, Tensor) or out.ndim != 2 or len(out) != 2:
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise CheckpointError(
            f"{ref} gives {got} for two images of {size} px, not two feature vectors",
            fix="choose a pooling, e.g. --pool avg (in Python pool='avg'), or pool to (B, D) in "
            "your module or function",
        )
    tolerance = REPEATABLE * float(out.abs().max())
    if not all(torch.allclose(out, o, rtol=0, atol=tolerance, equal_nan=True) for o in others):
        raise CheckpointError(
            f"{ref} gives other features for the same images each time: random numbers enter its "
            "forward pass (masking, dropout or stochastic depth that eval() leaves on)",
            fix="load the form of it for features, e.g. with mask ratio 0, or switch the draws off",
        )
    return int(out.shape[1])


def check_head(module: nn.Module, size: int, dim: int, ref: str, insists: bool) -> None:
    """Raise UsageError for features that are class scores, unless the user insists on them.

    A linear layer that gives the output, or that a softmax alone follows, counts as a classifier if
    a module states as many classes, if it is called like one, or if it has few outputs. Class
    scores of a network without one are refused, too.
    """
    linear = [n for n, layer in module.named_modules() if n and isinstance(layer, nn.Linear)]
    with record_outputs(module, linear) as outputs, torch.no_grad():
        out = module(fixed_images(size))
    name, scores = outputs.popitem() if outputs else ("", out)
    same = (scores, scores.softmax(-1), scores.log_softmax(-1))
    is_last = bool(name) and any(torch.equal(out, values) for values in same)
    parts, counts = name.split("."), {getattr(m, "num_classes", None) for m in module.modules()}
    is_head = is_last and (dim in counts or HEAD_NAMES & {*parts} or dim < SMALLEST_FEATURES)
    if insists and not is_head:
        raise UsageError(f"--features head: {ref} does not end in a classifier", fix="leave it out")
    if is_head and not insists:
        layer = "".join(f"[{p}]" if p.isdecimal() else f".{p}" for p in parts)
        raise UsageError(
            f"{ref} ends in its classifier '{name}' with {dim} outputs, not in features",
            fix=f"take it off where you make the network: model{layer} = torch.nn.Identity(); or "
            "evaluate its class scores: --features head (in Python features='head')",
        )
