"""The frozen, head-free backbone that pretraining and protocols share."""

from __future__ import annotations

import copy
import hashlib
import inspect
import re
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from fsbench.backbones.normalization import count_affine
from fsbench.backbones.sources import IMAGENET_MEAN, IMAGENET_STD, Triple
from fsbench.backbones.weights import check_finite, weights_hash
from fsbench.core.errors import CheckpointError, UnknownName, UsageError
from fsbench.core.schema import BackboneFacts

IN_MEMORY = "module"
"""Source of a backbone made by `Backbone.from_module`; no command line can name it."""

NAME = re.compile(r"[A-Za-z0-9_+=@][\w.+@=-]{0,99}", re.ASCII)
"""Names that may be a folder of results."""
HEAD_NAMES = ("fc", "classifier", "head", "heads")

Pooling = Literal["none", "avg", "token"]
POOLED: dict[Pooling, str] = {
    "none": "as the module returns them",
    "avg": "global average pooling",
    "token": "cls token",
}


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
        pool: Pooling = "none",
    ) -> Backbone:
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
        pool : {"none", "avg", "token"}
            How one vector per image is taken: the module returns it (none); average over
            the positions of maps (B, D, h, w) or tokens (B, N, D); first of the tokens (B, N, D).

        Returns
        -------
        Backbone
            Usable wherever a model reference is, e.g. in `fsbench.evaluate`.

        Raises
        ------
        UsageError
            If the module still has its classifier, `pool` is unknown, or `name` is no file name.
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
        if pool not in get_args(Pooling):
            raise UnknownName("pool", pool, get_args(Pooling))
        if not NAME.fullmatch(name):
            raise UsageError(
                f"model name {name[:100]!r}", fix="use letters, digits and . _ + - = @ only"
            )
        ref = f"{IN_MEMORY}:{name}"
        inner = freeze_module(copy.deepcopy(module).cpu())
        check_finite(inner.state_dict(), ref)
        whole = inner if pool == "none" else Pooled(inner, pool)
        dim = feature_dim(whole, input_size, ref)
        refuse_classifier(inner, dim, ref)
        facts = BackboneFacts(
            ref=ref,
            source=IN_MEMORY,
            architecture=type(module).__name__,
            feature_dim=dim,
            features=POOLED[pool] + source_code_mark(module),
            input_size=input_size,
            mean=mean,
            std=std,
            n_parameters=sum(p.numel() for p in inner.parameters()),
            n_affine=count_affine(inner),
            weights_hash=weights_hash(inner.state_dict()),
        )
        ramp = torch.linspace(-2, 2, 2 * 3 * input_size**2).view(2, 3, input_size, input_size)
        with torch.no_grad():
            response = whole(ramp).float().contiguous().numpy().tobytes()
        return cls(
            facts,
            whole.to(memory_format=torch.channels_last),
            fingerprint=hashlib.sha256(response).hexdigest(),
        )

    def on(self, device: str) -> Backbone:
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


class Pooled(nn.Module):
    """A module in memory followed by the pooling that its user chose."""

    def __init__(self, module: nn.Module, pool: Pooling) -> None:
        super().__init__()
        self.module, self.pool = module, pool

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.module(images)
        if self.pool == "token":
            return out[:, 0]
        return out.flatten(2).mean(2) if out.ndim == 4 else out.mean(1)


def freeze_module(module: nn.Module) -> nn.Module:
    """Return the module as float32, in eval mode, without gradients."""
    return module.float().eval().requires_grad_(False)


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
            fix="pool its output to (B, D): in your module or function, or by "
            "Backbone.from_module(..., pool='avg')",
        )
    return int(out.shape[1])


def refuse_classifier(module: nn.Module, dim: int, ref: str) -> None:
    """Raise UsageError if the output of a module comes from its classification layer."""
    for name in HEAD_NAMES:
        head = getattr(module, name, None)
        layers = [m for m in head.modules() if isinstance(m, nn.Linear)] if head else []
        if layers and layers[-1].out_features == dim:
            raise UsageError(
                f"{ref} ends in its classifier '{name}' with {dim} outputs, not in features",
                fix=f"set module.{name} = torch.nn.Identity() first",
            )


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
