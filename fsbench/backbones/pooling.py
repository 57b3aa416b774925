"""Features of a network: the layer that is read, and the pooling of its output.

`FeatureSpec` (fsbench/core/specs.py) states the choice. A network with `forward_features`, as in
timm, gives its last tokens or maps there; the output of any module is read by its name. Tokens
(B, N, D) start with `num_prefix_tokens` ones that are no patches, the cls token first where the
network has a `cls_token` (torchvision: `class_token`).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import has_channels_first, record_outputs
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.specs import FeatureSpec, Pooling

POOL_NAMES: dict[Pooling, str] = {
    "cls": "cls token",
    "avg": "global average pooling",
    "cls+avg": "cls token and average of the patches",
    "max": "global max pooling",
}
STATED_POOLS: dict[str, Pooling] = {"token": "cls", "tok": "cls", "avg": "avg"}


class LayerOutput(NamedTuple):
    """Output of a layer: its cls token (B, D), if any, and its positions (B, N, D).

    A layer that gives one vector per image has no positions: the vector is its token.
    """

    token: Tensor | None
    positions: Tensor | None


class FeatureReader(nn.Module):
    """A network followed by the pooling of the layer that a FeatureSpec names.

    size: side (px) of a test image, which decides what `native` means. Raises UsageError if the
    network cannot give such features.
    """

    def __init__(self, module: nn.Module, spec: FeatureSpec, ref: str, size: int) -> None:
        super().__init__()
        self.module, self.layer, self.ref = module, spec.layers, ref
        names = [name for name, _ in module.named_modules() if name]
        if self.layer not in {"last", *names}:
            raise UnknownName(f"layer of {ref}", self.layer, names)
        with torch.no_grad():
            output = self.read(torch.zeros(2, 3, size, size))
        self.pool = self.resolve_pool(spec.pool, output)

    @property
    def description(self) -> str:
        """Pooling and layer in words, e.g. 'global max pooling of layer3'."""
        pool = POOL_NAMES.get(self.pool, "output")
        return pool if self.layer == "last" else f"{pool} of {self.layer}"

    def forward(self, images: Tensor) -> Tensor:
        """Return the vectors (B, D), of `cls+avg` side by side."""
        token, positions = self.read(images)
        vectors = []
        if token is not None and self.pool in {"native", "cls", "cls+avg"}:
            vectors.append(token)
        if positions is not None and self.pool in {"avg", "cls+avg"}:
            vectors.append(positions.mean(1))
        if positions is not None and self.pool == "max":
            vectors.append(positions.amax(1))
        if self.pool != "native":
            vectors = [self.normalise(vector) for vector in vectors]
        return torch.cat(vectors, dim=1)

    def read(self, images: Tensor) -> LayerOutput:
        """Return the output of the layer. Raise UsageError for a module that is not called."""
        if self.layer == "last":
            return self.split(getattr(self.module, "forward_features", self.module)(images))

        def clone(output: Any) -> Any:
            return output.clone() if isinstance(output, Tensor) else output

        with record_outputs(self.module, (self.layer,), clone) as outputs:
            self.module(images)
        if not outputs:
            raise UsageError(
                f"--layers {self.layer}: {self.ref} does not call this module",
                fix="name another one",
            )
        return self.split(outputs[self.layer])

    def split(self, output: Any) -> LayerOutput:
        """Separate cls token and positions of an output. Raise UsageError for unusable ones."""
        ndim = output.ndim if isinstance(output, Tensor) else 0
        if ndim == 2:
            return LayerOutput(output, None)
        if ndim == 3:
            names = ("cls_token", "class_token", "class_embedding")
            has_token = any(getattr(self.module, name, None) is not None for name in names)
            n_prefix = getattr(self.module, "num_prefix_tokens", int(has_token))
            plain = not hasattr(self.module, "forward_features")  # its user says what is first
            return LayerOutput(output[:, 0] if has_token or plain else None, output[:, n_prefix:])
        if ndim == 4:
            is_last = getattr(self.module, "output_fmt", "NCHW") == "NHWC"
            maps = output.flatten(1, 2) if is_last else output.flatten(2).transpose(1, 2)
            return LayerOutput(None, maps)
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise UsageError(
            f"{self.ref}: {self.layer} gives {shape}, neither maps (B, C, H, W) nor tokens "
            "(B, N, D)",
            fix="choose another module with --layers, or leave --pool and --layers out",
        )

    def resolve_pool(self, pool: Pooling, output: LayerOutput) -> Pooling:
        """Return the pooling that `native` stands for; native: vectors that need none.

        The network states it; else maps are averaged.
        """
        if output.positions is None:
            if pool != "native":
                raise UsageError(
                    f"--pool {pool}: {self.ref} gives one vector per image, nothing to pool",
                    fix="leave --pool out, or name a module with --layers",
                )
            return "native"
        if pool == "native":
            stated = timm_pool(self.module) or str(getattr(self.module, "pool_type", ""))
            is_torchvision = hasattr(self.module, "class_token")
            default: Pooling = "cls" if is_torchvision else "native"
            default = "avg" if output.token is None else default
            pool = STATED_POOLS.get(stated, "native") if stated else default
            if pool == "native":
                why = f"pools by {stated!r}" if stated else "states no pooling of its tokens"
                fix = "choose one with --pool cls, avg, cls+avg or max"
                raise UsageError(f"{self.ref} {why}", fix=fix)
        if "cls" in pool and output.token is None:
            raise UsageError(
                f"--pool {pool}: {self.ref} has no cls token", fix="use --pool avg or max"
            )
        return pool

    def normalise(self, vector: Tensor) -> Tensor:
        """Apply the norm that a network of timm has between its pooling and its classifier."""
        norm, head = getattr(self.module, "fc_norm", None), getattr(self.module, "head", None)
        if norm is None and hasattr(head, "global_pool"):
            norm = getattr(head, "norm", None)
        if not isinstance(norm, nn.Module) or self.layer != "last":
            return vector
        shaped = vector[..., None, None] if has_channels_first(norm) else vector
        normalised: Tensor = norm(shaped)
        return normalised.flatten(1)


def timm_pool(module: nn.Module) -> str:
    """Return what timm calls the pooling of a network: token, avg, map, ...; '' for none."""
    owners = (module, getattr(module, "head", None))
    pools = (getattr(owner, "global_pool", None) for owner in owners)
    pool = next((pool for pool in pools if pool is not None), "")
    return str(getattr(pool, "pool_type", pool if isinstance(pool, str) else ""))
