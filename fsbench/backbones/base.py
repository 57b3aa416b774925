"""The frozen, head-free backbone that pretraining and protocols share, and hashes of weights."""

import copy
import hashlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from fsbench.backbones.architectures import below, count_affine, record_outputs
from fsbench.backbones.pooling import FeatureReader
from fsbench.backbones.sources import IMAGENET_MEAN, IMAGENET_STD, LoadedNetwork
from fsbench.core.errors import CheckpointError, UnknownName, UsageError
from fsbench.core.io import explain_errors
from fsbench.core.schema import BackboneFacts
from fsbench.core.specs import NATIVE_FEATURES, POOLINGS, FeatureSpec, Pooling, Triple

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


IN_MEMORY = "module"
"""Source of a backbone made by `Backbone.from_module`; no command line can name it."""

NAME = re.compile(r"[A-Za-z0-9_+=@][\w.+@=-]{0,99}", re.ASCII)
"""Names that may be a folder of results."""
FeatureOutput = Literal["trunk", "head"]
HEAD_NAMES = {"fc", "classifier", "head", "heads"}
SMALLEST_FEATURES = 64
"""A last linear layer with fewer outputs is taken for a classifier."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen, head-free network in eval mode with the facts that every result records.

    Attributes
    ----------
    facts : BackboneFacts
        Reference, architecture, embedding dimension, weights hash and preprocessing.
    module : torch.nn.Module
        Maps normalised images (B, 3, H, W) to features (B, D).
    fingerprint : str or None
        Digest of the features of a fixed image, for modules in memory: their code is not part of
        the weights hash, so cached features need it as a key.
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
        mean: Triple = IMAGENET_MEAN,
        std: Triple = IMAGENET_STD,
        input_size: int = 224,
        pool: Pooling = "native",
        layers: str = "last",
        features: FeatureOutput = "trunk",
    ) -> "Backbone":
        """Freeze a copy of a module in memory as a backbone.

        The weights hash is that of the same weights in a file. Results state the source `module`
        and the reference `module:NAME`: nobody else can load the module by its reference.

        Parameters
        ----------
        module : torch.nn.Module
            Network without its classifier. It is copied and stays as it is.
        name : str
            Name of the model in results.
        mean, std : tuple of float
            Normalisation of images in [0, 1], a value per channel; default ImageNet's.
        input_size : int
            Side in pixels that the network was trained at.
        pool : {"native", "cls", "avg", "cls+avg", "max"}
            How one vector per image is taken: as the module returns it (native); first of the
            tokens (B, N, D); average or maximum over the patches or over maps (B, D, h, w).
        layers : str
            `last`, `last4` (last four blocks, concatenated), or the name of a module of it.
        features : {"trunk", "head"}
            head: take the outputs of a classifier that was left on.

        Returns
        -------
        Backbone
            Usable wherever a model reference is, e.g. in `fsbench.evaluate`.

        Raises
        ------
        UsageError
            If the module ends in its classifier, cannot be pooled so, or `name` is no file name.
        CheckpointError
            If weights are not finite, or the module does not return one vector per image.

        Examples
        --------
        >>> import torch, fsbench
        >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
        >>> backbone = fsbench.Backbone.from_module(net, name="tiny", input_size=32, pool="avg")
        >>> backbone.facts.feature_dim
        8
        """
        if not NAME.fullmatch(name):
            raise UsageError(
                f"model name {name[:100]!r}", fix="use letters, digits and . _ + - = @ only"
            )
        mark = source_code_mark(module)
        loaded = LoadedNetwork(
            module=copy.deepcopy(module).cpu(),
            architecture=type(module).__name__,
            features=f"as the module returns them{mark}",
            input_size=input_size,
            mean=mean,
            std=std,
        )
        spec = feature_spec(pool, layers, features)
        made = cls.of(loaded, f"{IN_MEMORY}:{name}", IN_MEMORY, spec)
        ramp = torch.linspace(-2, 2, 2 * 3 * input_size**2).view(2, 3, input_size, input_size)
        with torch.no_grad():
            response = made.module(ramp).float().contiguous().numpy().tobytes()
        return replace(
            made,
            module=made.module.to(memory_format=torch.channels_last),
            fingerprint=hashlib.sha256(response).hexdigest(),
        )

    @classmethod
    def of(
        cls,
        loaded: LoadedNetwork,
        ref: str,
        source: str,
        spec: FeatureSpec = NATIVE_FEATURES,
        random_init: int | None = None,
    ) -> "Backbone":
        """Freeze a loaded network as a backbone whose features are taken as `spec` says.

        Raises UsageError if the network cannot give such features or ends in its classifier,
        CheckpointError if weights are not finite or one vector per image is not what it gives.
        """
        trunk = loaded.module.float().eval().requires_grad_(False)
        check_finite(trunk.state_dict(), ref)
        module, features, size = trunk, loaded.features, loaded.input_size
        if not spec.is_native:
            module = FeatureReader(trunk, spec, ref, size, loaded.blocks)
            features = (
                f"{module.words}{features[features.find(' (') :] if ' (' in features else ''}"
            )
        dim = feature_dim(module, size, ref)
        if spec.is_native and (source == IN_MEMORY or loaded.architecture.startswith("py:")):
            check_head(module, size, dim, ref, spec.head)
        elif spec.head:
            raise UsageError(
                f"--features head: {source} loads {ref} without its classifier",
                fix="pass a function that returns the whole network, as py:PKG.MOD:FUNCTION",
            )
        fields = {
            "ref": ref,
            "source": source,
            "architecture": loaded.architecture,
            "feature_dim": dim,
            "features": features,
            "input_size": size,
            "mean": spec.mean or loaded.mean,
            "std": spec.std or loaded.std,
            "n_parameters": sum(p.numel() for p in trunk.parameters()),
            "n_affine": count_affine(trunk),
            "weights_hash": weights_hash(trunk.state_dict()),
            "random_init": random_init,
            "feature_spec": spec,
        }
        return cls(BackboneFacts.model_validate(fields | loaded.more), module)

    def on(self, device: str) -> "Backbone":
        """Return the backbone on `device`: a copy, unless it is there already."""
        place = torch.device(device)
        if all(tensor.device == place for tensor in self.module.state_dict().values()):
            return self
        return Backbone(self.facts, copy.deepcopy(self.module).to(place), self.fingerprint)

    def normalised(self, images: Tensor) -> Tensor:
        """Return what the module takes for images (B, 3, H, W), uint8 or float in [0, 1].

        Mean and std are the backbone's own.
        """
        if images.dtype == torch.uint8:
            fresh = images.float().div_(255)
            return fresh.sub_(spread_channels(self.facts.mean, fresh)).div_(
                spread_channels(self.facts.std, fresh)
            )
        return (images - spread_channels(self.facts.mean, images)) / spread_channels(
            self.facts.std, images
        )

    def features(self, images: Tensor) -> Tensor:
        """Return features (B, D) float32 of images (B, 3, H, W), uint8 or float in [0, 1].

        Gradients flow where the caller enables them.
        """
        out: Tensor = self.module(self.normalised(images))
        return out.float()


def feature_spec(
    pool: str = "native",
    layers: str = "last",
    features: str = "trunk",
    mean: Triple | None = None,
    std: Triple | None = None,
) -> FeatureSpec:
    """Return the choices about features as a spec. Raise UnknownName, UsageError."""
    if pool not in POOLINGS:
        raise UnknownName("pool", pool, POOLINGS)
    if features not in get_args(FeatureOutput):
        raise UnknownName("kind of features", features, get_args(FeatureOutput))
    try:
        return FeatureSpec(pool=pool, layers=layers, head=features == "head", mean=mean, std=std)
    except ValidationError as error:
        raise UsageError(
            f"features: {explain_errors(error)}", fix="see `fsbench episodic --help`"
        ) from error


def feature_dim(module: nn.Module, size: int, ref: str) -> int:
    """Return D of the features (B, D), by one forward pass of two black images of side `size`.

    Raises CheckpointError if the module returns anything but one vector per image.
    """
    with torch.no_grad():
        out = module(torch.zeros(2, 3, size, size))
    if not isinstance(out, Tensor) or out.ndim != 2 or len(out) != 2:
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise CheckpointError(
            f"{ref} gives {got} for two images of {size} px, not two feature vectors",
            fix="choose a pooling, e.g. --pool avg (in Python Backbone.from_module(..., "
            "pool='avg')), or pool to (B, D) in your module or function",
        )
    return int(out.shape[1])


def check_head(module: nn.Module, size: int, dim: int, ref: str, insists: bool) -> None:
    """Raise UsageError for features that are class scores, unless the user insists on them.

    A last linear layer counts as a classifier if a module states as many classes, if it is called
    like one, or if it has few outputs. Raises UsageError too where the user insists in vain.
    """
    name = find_last_linear(module, size)
    parts = name.split(".") if name is not None else []
    counts = {getattr(part, "num_classes", None) for part in module.modules()}
    is_head = dim in counts or bool(HEAD_NAMES & set(parts)) or dim < SMALLEST_FEATURES
    if name is None or not is_head:
        if insists:
            raise UsageError(
                f"--features head: {ref} does not end in a classifier", fix="leave it out"
            )
        return
    if not insists:
        place = "".join(f"[{p}]" if p.isdecimal() else f".{p}" for p in parts)
        raise UsageError(
            f"{ref} ends in its classifier '{name}' with {dim} outputs, not in features",
            fix=f"take it off where you make the network: model{place} = torch.nn.Identity(); or "
            "evaluate its class scores: --features head (in Python features='head')",
        )


def find_last_linear(module: nn.Module, size: int) -> str | None:
    """Return the name of the linear layer that gives the output, also if a softmax follows it."""
    linear = [n for n, layer in module.named_modules() if n and isinstance(layer, nn.Linear)]
    with record_outputs(module, linear) as outputs, torch.no_grad():
        out = module(torch.linspace(-2, 2, 2 * 3 * size**2).view(2, 3, size, size))
    if not outputs:
        return None
    name, scores = outputs.popitem()
    same = (scores, scores.softmax(-1), scores.log_softmax(-1))
    return name if any(torch.equal(out, values) for values in same) else None


def source_code_mark(module: nn.Module) -> str:
    """Return the start of the sha-256 of the module's class, empty where its code is unknown."""
    try:
        code = inspect.getsource(type(module))
    except (OSError, TypeError):
        return ""
    return f" (class source {hashlib.sha256(code.encode()).hexdigest()[:12]})"


def spread_channels(values: tuple[float, ...], images: Tensor) -> Tensor:
    """Return one value per channel as an image (1, 3, H, W), laid out like images (B, 3, H, W).

    Elementwise work then runs along the memory, not over three channels at a time.
    """
    return torch.empty_like(images[:1]).copy_(images.new_tensor(values).view(1, 3, 1, 1))
