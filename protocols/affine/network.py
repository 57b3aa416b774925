"""One network for many episodes: frozen kernels are shared, affine parameters are per episode.

A forward pass takes the images of all episodes at once, (E * b, ...) with E episodes of b images
each, so a kernel is read once for all of them; no gradient of a kernel is computed. Each
normalization layer becomes `standardize`, then one scale and shift per channel and episode, then
what timm fuses into the layer (dropout, activation). BatchNorm with the source's statistics is
itself affine and is folded into scale and shift.

On a CPU frozen kernels are packed once (protocols/affine/convolution.py) if the network's layout is
channels last. Outputs of modules that end before the first normalization begins depend on no tuned
parameter: they are computed once per support image and read in later epochs (StoredOutput).
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from fsbench.backbones.architectures import affine_layers, has_channels_first, record_outputs
from fsbench.backbones.kernels import memory_layout
from fsbench.core.errors import UsageError
from fsbench.core.specs import BnMode
from protocols.affine.convolution import FrozenConvolution

BATCH_NORM = nn.modules.batchnorm._BatchNorm


class ScaleShift(torch.autograd.Function):
    """x (B, ...) * scale + shift; both (B, ...) with sizes of 1 that are spread over x.

    One pass over x forward. Autograd's own chain of a product and a sum would take two, and keep
    their intermediate results. Computes in the dtype of x; sums over x have that of scale.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        ctx.dtype, scale, shift = scale.dtype, scale.to(x.dtype), shift.to(x.dtype)
        ctx.save_for_backward(x, scale)
        return torch.addcmul(shift, x, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, scale = ctx.saved_tensors
        [grad] = gradients
        axes = [i for i in range(1, x.ndim) if scale.shape[i] == 1]
        product = grad * x
        to_scale, to_shift = (
            t.sum(axes, keepdim=True, dtype=ctx.dtype) if axes else t.to(ctx.dtype, copy=True)
            for t in (product, grad)
        )
        if not ctx.needs_input_grad[0]:
            return None, to_scale, to_shift
        return torch.mul(grad, scale, out=product), to_scale, to_shift


class MeanOfMaps(torch.autograd.Function):
    """Mean of each map (B, C, H, W) -> (B, C, 1, 1); the gradient lies in memory as the maps do.

    Autograd's lies channel by channel, which makes the ReLU below take eight times as long.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape, ctx.strides = x.shape, x.stride()
        return x.mean((2, 3), keepdim=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        [grad] = gradients
        spread = (grad / (ctx.shape[2] * ctx.shape[3])).expand(ctx.shape)
        return grad.new_empty_strided(ctx.shape, ctx.strides).copy_(spread)


def means_maps(layer: nn.Module) -> bool:
    """Return whether the layer is one that MeanOfMaps computes."""
    return type(layer) is nn.AdaptiveAvgPool2d and layer.output_size in (1, (1, 1))


class EpisodeNorm:
    """Takes the place of `layer.forward`: the module itself, its hooks and attributes stay.

    scale and shift (B, numel of the layer's weight) are set anew before every forward pass. weight
    and bias: as the source left them; shifted: 1, or 0 for a layer that has no bias. mean and
    inverse: the statistics to fold into scale and shift, 0 and 1 where `standardize` does all.
    standardize: None where mean and inverse do all.
    """

    scale: Tensor
    shift: Tensor

    def __init__(
        self, layer: nn.Module, episodes: int, batch_statistics: bool, dtype: torch.dtype
    ) -> None:
        bias = getattr(layer, "bias", None)
        self.weight = layer.get_parameter("weight").detach()
        self.bias = torch.zeros_like(self.weight) if bias is None else bias.detach()
        self.shifted = torch.full_like(self.weight, float(bias is not None))
        self.first = has_channels_first(layer)
        self.drop, self.act = getattr(layer, "drop", None), getattr(layer, "act", None)
        self.mean, self.inverse = torch.zeros_like(self.weight), torch.ones_like(self.weight)
        self.standardize: Callable[[Tensor], Tensor] | None = None
        if not isinstance(layer, BATCH_NORM):
            self.standardize = strip_affine(layer, dtype)
        elif batch_statistics or layer.running_mean is None or layer.running_var is None:
            self.standardize = BatchStatistics(layer, episodes)
        else:
            self.mean = layer.running_mean
            self.inverse = torch.rsqrt(layer.running_var + layer.eps)

    def __call__(self, x: Tensor) -> Tensor:
        z = x if self.standardize is None else self.standardize(x)
        out: Tensor = ScaleShift.apply(z, *(self.shaped(p, z) for p in (self.scale, self.shift)))
        for fused in (self.drop, self.act):
            out = out if fused is None else fused(out)
        return out

    def shaped(self, parameters: Tensor, z: Tensor) -> Tensor:
        """(B, numel) so that it broadcasts over z (B, ...)."""
        ones, shape = (1,) * (z.ndim - 1 - self.weight.ndim), self.weight.shape
        return (
            parameters.view(-1, *shape, *ones) if self.first else parameters.view(-1, *ones, *shape)
        )


def strip_affine(layer: nn.Module, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    """Return the layer without scale, shift and fused parts, for inputs of this dtype."""
    copy = deepcopy(layer).to(dtype).requires_grad_(False)
    nn.init.ones_(copy.weight)  # type: ignore[arg-type]
    if isinstance(getattr(copy, "bias", None), Tensor):
        nn.init.zeros_(copy.bias)  # type: ignore[arg-type]
    for fused in ("drop", "act"):
        if hasattr(copy, fused):
            setattr(copy, fused, nn.Identity())
    forward: Callable[[Tensor], Tensor] = copy.forward
    return forward


class BatchStatistics:
    """BatchNorm by the statistics of each episode's own batch, as in train mode.

    Running statistics start at those of the source and follow the batches, an episode each; they
    serve where `training` is off. A layer that never kept any goes by the batch in both cases.
    """

    def __init__(self, layer: nn.modules.batchnorm._BatchNorm, episodes: int) -> None:
        self.episodes, self.eps, self.momentum = episodes, layer.eps, layer.momentum
        statistics = [layer.running_mean, layer.running_var]
        self.running = [None if s is None else s.repeat(episodes) for s in statistics]
        self.training, self.batches = True, 0

    def __call__(self, x: Tensor) -> Tensor:
        stacked = x.view(self.episodes, -1, *x.shape[1:]).transpose(0, 1)
        channels = stacked.flatten(1, 2)
        by_batch = self.training or self.running[0] is None
        if by_batch and channels.numel() == channels.shape[1]:
            raise UsageError(
                "one image of one pixel has no batch statistics (bn_mode train)",
                fix="a larger --input-size, or --bn-mode eval",
            )
        self.batches += self.training
        rate = 1 / max(1, self.batches) if self.momentum is None else self.momentum
        mean, variance = self.running
        z = batch_norm(channels, mean, variance, None, None, by_batch, rate, self.eps)
        return z.view(stacked.shape).transpose(0, 1).flatten(0, 1)


STORED_BYTES = 2**30
"""Most memory of the stored outputs of a network; what does not fit is computed in every step."""


class StoredOutput:
    """Takes the place of the `forward` of a module whose output no tuned parameter changes.

    Keeps a row for every support image, and reads them once all are there. rows: those of the
    images in the forward pass that begins, None for other images.
    """

    def __init__(self, layer: nn.Module, images: int) -> None:
        self.forward: Callable[..., Tensor] = layer.forward
        self.images, self.missing, self.stored = images, set(range(images)), torch.empty(0)
        self.rows: Tensor | None = None

    def __call__(self, *inputs: Any, **options: Any) -> Tensor:
        rows, self.rows = self.rows, None  # a second call in this pass has other inputs
        if rows is not None and not self.missing:
            return take_rows(self.stored, rows)
        output = self.forward(*inputs, **options)
        if rows is not None:
            if not len(self.stored):
                self.stored = output[rows.new_zeros(self.images)]  # laid out like the output
            self.stored[rows] = output
            self.missing.difference_update(rows.tolist())
        return output


def take_rows(stacked: Tensor, rows: Tensor) -> Tensor:
    """Return stacked[rows], with the same layout in memory; images of channels-last memory whole.

    Indexing takes them number by number.
    """
    if stacked.ndim != 4 or not stacked.is_contiguous(memory_format=torch.channels_last):
        return stacked[rows]
    maps = stacked.permute(0, 2, 3, 1)
    taken = maps.flatten(1).index_select(0, rows).view(-1, *maps.shape[1:])
    return taken.permute(0, 3, 1, 2)


def store_outputs(
    module: nn.Module, batch: Tensor, images: int
) -> tuple[Tensor, list[StoredOutput]]:
    """Return the module's output for a batch, and replace what can be stored from now on.

    What ends before the first normalization with a scale begins depends on no tuned parameter. Of
    these modules, the largest that have parameters and return one row per image are replaced.
    """

    tuned_calls: list[nn.Module] = []

    def image_bytes(output: object) -> int:
        if tuned_calls or not isinstance(output, Tensor) or output.shape[:1] != batch.shape[:1]:
            return 0
        return output.nbytes // len(batch)

    handles = [
        layer.register_forward_pre_hook(lambda layer, inputs: tuned_calls.append(layer))
        for layer in affine_layers(module).values()
    ]
    parts = [n for n, m in module.named_modules() if n and next(m.parameters(), None) is not None]
    with record_outputs(module, parts, image_bytes, prepend=True) as sizes:
        result: Tensor = module(batch)
    for handle in handles:
        handle.remove()
    room, stored = STORED_BYTES, []
    constant = [name for name, size in sizes.items() if size]
    for name in constant:
        is_inner = any(name.startswith(f"{outer}.") for outer in constant)
        if not is_inner and images * sizes[name] <= room:
            room -= images * sizes[name]
            layer = module.get_submodule(name)
            stored.append(StoredOutput(layer, images))
            layer.forward = stored[-1]
    return result, stored


class EpisodeNetwork:
    """A copy of a backbone's module for E episodes.

    weight, bias (E, P): scales and shifts of all layers, one after the other, as they are trained;
    both start at the source's. A layer without shift keeps 0 there. bn_mode: whether BatchNorm
    keeps the source's statistics (eval) or goes by each episode's batches while it trains (train).
    reference: sets device and dtype; dtype: of kernels and activations, where it differs. images:
    number of support images of all episodes.
    """

    def __init__(
        self,
        module: nn.Module,
        episodes: int,
        bn_mode: BnMode,
        reference: Tensor,
        images: int = 0,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.episodes, self.images, self.dtype = episodes, images, dtype or reference.dtype
        layout = memory_layout(module)
        self.module = deepcopy(module).to(reference.dtype).to(memory_format=layout)
        self.stored: list[StoredOutput] | None = None
        layers = affine_layers(self.module).values()
        by_batch = bn_mode == "train"
        self.norms = [EpisodeNorm(layer, episodes, by_batch, self.dtype) for layer in layers]
        self.sizes = [norm.weight.numel() for norm in self.norms]
        self.weight = self.tuned(_flat([norm.weight for norm in self.norms], reference))
        self.bias = self.tuned(_flat([norm.bias for norm in self.norms], reference))
        self.mean = _flat([norm.mean for norm in self.norms], reference)
        self.inverse = _flat([norm.inverse for norm in self.norms], reference)
        self.shifted = _flat([norm.shifted for norm in self.norms], reference)
        self.module.to(self.dtype)
        for layer, norm in zip(layers, self.norms, strict=True):
            layer.forward = norm
        for layer in self.module.modules():
            if layout is torch.channels_last and FrozenConvolution.replaces(layer):
                layer.forward = FrozenConvolution(layer)
            elif means_maps(layer):
                layer.forward = MeanOfMaps.apply

    def tuned(self, start: Tensor) -> Tensor:
        return start.repeat(self.episodes, 1).requires_grad_()

    def __call__(self, images: Tensor, rows: Tensor | None = None) -> Tensor:
        """Features (E, b, D) of images (E * b, ...), episode by episode.

        rows: the places of the images among all support images, in training.
        """
        scale = self.weight * self.inverse
        shift = torch.addcmul(self.bias * self.shifted, self.mean, scale, value=-1)
        parts = (
            self.per_image(p, len(images)).split_with_sizes(self.sizes, 1) for p in (scale, shift)
        )
        for norm, of_scale, of_shift in zip(self.norms, *parts, strict=True):
            norm.scale, norm.shift = of_scale, of_shift
        images = images.to(self.dtype)
        if rows is not None and self.stored is None:
            features, self.stored = store_outputs(self.module, images, self.images)
        else:
            for output in self.stored or ():
                output.rows = rows
            features = self.module(images)
        return features.view(self.episodes, -1, features.shape[1]).to(self.weight.dtype)

    def per_image(self, parameters: Tensor, images: int) -> Tensor:
        """Return the parameters (E, P) of the episode of every image, (images, P)."""
        of_episode = images // self.episodes
        return parameters[:, None].expand(-1, of_episode, -1).flatten(0, 1)

    def finish(self) -> None:
        """End training: queries are scored with fixed statistics in both modes."""
        for norm in self.norms:
            if isinstance(norm.standardize, BatchStatistics):
                norm.standardize.training = False


def _flat(parts: list[Tensor], reference: Tensor) -> Tensor:
    """Return all numbers of the parts, (P,)."""
    return torch.cat(
        [reference.new_empty(0), *(part.detach().to(reference).flatten() for part in parts)]
    )
