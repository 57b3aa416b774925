"""Features of a network: the layers that are read, and the pooling of their outputs.

`FeatureSpec` (fsbench/core/specs.py) states the choice. A network with `forward_features`, as in
timm, gives its last tokens or maps there, and `forward_intermediates` gives those of its blocks;
the output of any module is read by its name. Tokens (B, N, D) start with `num_prefix_tokens` ones
that are no patches, the cls token first where the network has a `cls_token` (torchvision:
`class_token`).

The last 4 blocks are those of a transformer, or the stages of a convolutional network. As in the
linear evaluation of DINOv2 (Oquab et al. 2023, https://arxiv.org/abs/2304.07193, and its code,
dinov2/eval/linear.py), their cls tokens are concatenated, and `cls+avg` adds the average of the
last block's patches alone.
"""

import inspect
from collections.abc import Sequence
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
N_BLOCKS = 4
LAST_BLOCKS = f"last{N_BLOCKS}"


class LayerOutput(NamedTuple):
    """Output of a layer: its cls token (B, D), if any, and its positions (B, N, D).

    A layer that gives one vector per image has no positions: the vector is its token.
    """

    token: Tensor | None
    positions: Tensor | None


class FeatureReader(nn.Module):
    """A network followed by the pooling of the layers that a FeatureSpec names.

    blocks: names of the modules whose outputs are those of the last blocks, for networks without
    `forward_intermediates`; size: side (px) of a test image, which decides what `native` means.
    Raises UsageError if the network cannot give such features.
    """

    def __init__(
        self, module: nn.Module, spec: FeatureSpec, ref: str, size: int, blocks: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.module, self.layers, self.ref = module, spec.layers, ref
        self.names: tuple[str, ...] = ()  # modules whose outputs are read
        if spec.layers == LAST_BLOCKS and not hasattr(module, "forward_intermediates"):
            self.names = tuple(blocks)[-N_BLOCKS:]
            if not blocks:
                raise UsageError(
                    f"--layers {LAST_BLOCKS}: {ref} does not say which modules are its blocks",
                    fix="name one of its modules with --layers",
                )
        elif spec.layers not in {"last", LAST_BLOCKS}:
            self.names, names = (spec.layers,), [name for name, _ in module.named_modules() if name]
            if spec.layers not in names:
                raise UnknownName(f"layer of {ref}", spec.layers, names)
        with torch.no_grad():
            outputs = self.outputs(torch.zeros(2, 3, size, size))
        self.pool = self.resolve_pool(spec.pool, outputs)

    @property
    def description(self) -> str:
        """Pooling and layers in words, e.g. 'global max pooling of layer3'."""
        where = f"the last {N_BLOCKS} blocks" if self.layers == LAST_BLOCKS else self.layers
        pool = POOL_NAMES.get(self.pool, "output")
        return pool if self.layers == "last" else f"{pool} of {where}"

    def forward(self, images: Tensor) -> Tensor:
        """Return the vectors (B, D) of all layers, side by side."""
        outputs = self.outputs(images)
        vectors = [output.token for output in outputs if output.token is not None]
        positions = [output.positions for output in outputs if output.positions is not None]
        if self.pool == "cls+avg":
            vectors.append(positions[-1].mean(1))
        elif self.pool in {"avg", "max"}:
            vectors = [x.amax(1) if self.pool == "max" else x.mean(1) for x in positions]
        if self.pool != "native":
            vectors = [self.normalise(vector) for vector in vectors]
        return torch.cat(vectors, dim=1)

    def outputs(self, images: Tensor) -> list[LayerOutput]:
        if self.names:
            outputs = self.named_outputs(images)
        elif self.layers == LAST_BLOCKS:
            outputs = self.intermediates(images)
        else:
            outputs = [getattr(self.module, "forward_features", self.module)(images)]
        return [self.split(output) for output in outputs]

    def intermediates(self, images: Tensor) -> list[Any]:
        """Return the outputs of the last blocks, after the last norm where that is one of tokens.

        Maps (B, C, H, W), or pairs of them with the tokens that are no patches.
        """
        forward: Any = self.module.forward_intermediates
        options: dict[str, Any] = {"indices": N_BLOCKS, "intermediates_only": True}
        parameters = inspect.signature(forward).parameters
        if "return_prefix_tokens" in parameters:
            options |= {"return_prefix_tokens": True, "norm": True}
        if "output_extra_tokens" in parameters:  # open_clip
            options |= {"output_extra_tokens": True, "normalize_intermediates": True}
        try:
            outputs = forward(images, **options)
        except AssertionError:  # timm
            outputs = []
        if isinstance(outputs, dict):
            maps = outputs["image_intermediates"]
            prefixes = outputs.get("image_intermediates_prefix")
            outputs = maps if prefixes is None else zip(maps, prefixes, strict=True)
        outputs = list(outputs)
        if len(outputs) < N_BLOCKS:
            raise UsageError(
                f"--layers {LAST_BLOCKS}: {self.ref} has fewer than {N_BLOCKS} blocks",
                fix="leave --layers out, or name a module",
            )
        return outputs

    def named_outputs(self, images: Tensor) -> list[Any]:
        """Return copies of the outputs of the modules `names`, in their order."""

        def clone(output: Any) -> Any:
            return output.clone() if isinstance(output, Tensor) else output

        with record_outputs(self.module, self.names, clone) as outputs:
            self.module(images)
        if unused := [name for name in self.names if name not in outputs]:
            raise UsageError(
                f"--layers {unused[0]}: {self.ref} does not call this module",
                fix="name another one",
            )
        return [outputs[name] for name in self.names]

    def split(self, output: Any) -> LayerOutput:
        """Separate cls token and positions of an output. Raise UsageError for unusable ones."""
        if isinstance(output, tuple) and len(output) == 2 and output[0].ndim == 4:
            maps, prefix = output
            token = prefix[:, 0] if self.has_token and prefix.shape[1] else None
            return LayerOutput(token, maps.flatten(2).transpose(1, 2))
        ndim = output.ndim if isinstance(output, Tensor) else 0
        if ndim == 2:
            return LayerOutput(output, None)
        if ndim == 3:
            n_prefix = getattr(self.module, "num_prefix_tokens", int(self.has_token))
            plain = not hasattr(self.module, "forward_features")  # its user says what is first
            token = output[:, 0] if self.has_token or plain else None
            return LayerOutput(token, output[:, n_prefix:])
        if ndim == 4:
            is_last = getattr(self.module, "output_fmt", "NCHW") == "NHWC"
            if is_last and self.layers != LAST_BLOCKS:
                return LayerOutput(None, output.flatten(1, 2))
            return LayerOutput(None, output.flatten(2).transpose(1, 2))
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise UsageError(
            f"{self.ref}: {self.layers} gives {shape}, neither maps (B, C, H, W) nor tokens "
            "(B, N, D)",
            fix="choose another module with --layers, or leave --pool and --layers out",
        )

    @property
    def has_token(self) -> bool:
        """Whether the first of the network's tokens is its cls token."""
        names = ("cls_token", "class_token", "class_embedding")
        return any(getattr(self.module, name, None) is not None for name in names)

    def resolve_pool(self, pool: Pooling, outputs: Sequence[LayerOutput]) -> Pooling:
        """Return the pooling that `native` stands for; native: vectors that need none.

        The network states it; else maps are averaged.
        """
        if any(output.positions is None for output in outputs):
            if pool != "native":
                raise UsageError(
                    f"--pool {pool}: {self.ref} gives one vector per image, nothing to pool",
                    fix="leave --pool out, or name a module with --layers",
                )
            return "native"
        lacks_token = [output.token is None for output in outputs]
        if pool == "native":
            stated = timm_pool(self.module) or str(getattr(self.module, "pool_type", ""))
            has_class_token = hasattr(self.module, "class_token")  # torchvision
            default: Pooling = "avg" if lacks_token[-1] else "cls" if has_class_token else "native"
            pool = STATED_POOLS.get(stated, "native") if stated else default
            if pool == "native":
                why = f"pools by {stated!r}" if stated else "states no pooling of its tokens"
                fix = "choose one with --pool cls, avg, cls+avg or max"
                raise UsageError(f"{self.ref} {why}", fix=fix)
        if "cls" in pool and any(lacks_token):
            raise UsageError(
                f"--pool {pool}: {self.ref} has no cls token", fix="use --pool avg or max"
            )
        return pool

    def normalise(self, vector: Tensor) -> Tensor:
        """Apply the norm that a network of timm has between its pooling and its classifier."""
        norm, head = getattr(self.module, "fc_norm", None), getattr(self.module, "head", None)
        if norm is None and self.layers == "last" and hasattr(head, "global_pool"):
            norm = getattr(head, "norm", None)
        if not isinstance(norm, nn.Module) or self.layers not in {"last", LAST_BLOCKS}:
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
