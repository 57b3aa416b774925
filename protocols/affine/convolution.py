"""Convolutions with frozen kernels on a CPU: packed for oneDNN once instead of in every call.

A gradient reaches the input alone. Where the window covers a small map from all its places the
convolution becomes a product of the whole map and a matrix. Both use operators that torch keeps for
its compiler; where a release lacks one of them, torch's own convolution is used.
"""

from itertools import product
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

ONEDNN = torch.ops.mkldnn
NARROW = 8
"""Channels that fill half of a vector register of AVX-512, which has 16 numbers."""
OPERATORS = (
    "_convolution_pointwise",
    "_convolution_transpose_pointwise",
    "_reorder_convolution_weight",
    "_reorder_convolution_transpose_weight",
)


class Operation(Protocol):
    """A convolution whose kernel is in oneDNN's order, and its gradient of the input."""

    def forward(self, x: Tensor) -> Tensor: ...

    def backward(self, grad: Tensor) -> Tensor: ...


class FrozenConvolution:
    """Takes the place of the `forward` of a frozen convolution on a CPU.

    PyTorch reorders a kernel for oneDNN on every call, forward and backward, which takes longer
    than a convolution of small maps itself. Here it is done once per size of the maps, with equal
    bits. The gradient is that of the input alone, and no activation is saved for it.
    """

    def __init__(self, layer: nn.Module) -> None:
        self.layer = cast("nn.Conv2d", layer)
        self.operations: dict[tuple[int, ...], Operation] = {}

    @staticmethod
    def replaces(layer: nn.Module) -> bool:
        """Return whether the layer is one that this class computes."""
        return (
            type(layer) is nn.Conv2d
            and layer.weight.device.type == "cpu"
            and layer.weight.dtype in (torch.float32, torch.bfloat16)
            and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
            and all(hasattr(ONEDNN, name) for name in OPERATORS)
            and (layer.groups, layer.padding_mode) == (1, "zeros")
            and not isinstance(layer.padding, str)
        )

    def __call__(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        side = tuple(x.shape[2:])
        if side not in self.operations:
            self.operations[side] = pack(self.layer, x)
        out: Tensor = FrozenOperation.apply(x, self.operations[side])
        return out


class FrozenOperation(torch.autograd.Function):
    """Call an operation forward, and backward with the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, operation: Operation) -> Tensor:
        ctx.operation = operation
        return operation.forward(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        grad = gradients[0].contiguous(memory_format=torch.channels_last)
        return ctx.operation.backward(grad), None


def pack(layer: nn.Conv2d, x: Tensor) -> Operation:
    """Return the layer as an operation on maps like x.

    Where the window covers the map from all its places (3x3 on 1x1 or 2x2), the convolution is a
    product of the whole map and a matrix, without a number for the padding. Its sums may be rounded
    in another order.
    """
    weight, bias = layer.weight.detach(), layer.bias
    side = list(nn.Conv2d.forward(layer, x[:1].detach()).shape[2:])
    padding = [int(p) for p in layer.padding]
    geometry = zip(x.shape[2:], side, layer.kernel_size, layer.stride, padding, strict=True)
    axes = list(zip(geometry, layer.dilation, strict=True))
    if all(d == 1 and (m - 1) * s <= p and n - 1 + p < k for (n, m, k, s, p), d in axes):
        matrix = weight.new_empty(*side, len(weight), *x.shape[2:], x.shape[1])
        for place in product(*(range(m) for m in side)):
            top, left = (p - s * o for o, s, p in zip(place, layer.stride, padding, strict=True))
            window = weight[:, :, top : top + x.shape[2], left : left + x.shape[3]]
            matrix[place] = window.permute(0, 2, 3, 1)
        bias = None if bias is None else bias.repeat(side[0] * side[1])
        return PackedProduct(matrix, bias, len(x))
    if side == list(x.shape[2:]) and side[1] % 2 == 0 and leaves_half(layer):
        return PairedColumns(layer, x)
    rest = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for (n, m, k, s, p), d in axes]
    return PackedConvolution(layer, x, side, rest)


def leaves_half(layer: nn.Conv2d) -> bool:
    """Return whether the channels of a 3x3 convolution leave half of a vector register empty."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and max(layer.in_channels, layer.out_channels) <= NARROW
        and (layer.kernel_size, layer.stride, layer.dilation) == ((3, 3), (1, 1), (1, 1))
        and layer.bias is None
    )


class PackedConvolution:
    """A convolution of maps x (., C, H, W), and of its gradient (., K, *side).

    rest: rows and columns of x that no window reaches.
    """

    def __init__(self, layer: nn.Conv2d, x: Tensor, side: list[int], rest: list[int]) -> None:
        weight, self.bias = layer.weight.detach(), layer.bias
        padding, strides = [int(p) for p in layer.padding], (layer.stride, layer.dilation, 1)
        self.geometry, self.transposed_geometry = (padding, *strides), (padding, rest, *strides)
        self.kernel = ONEDNN._reorder_convolution_weight(weight, *self.geometry, x.shape)
        self.transposed = ONEDNN._reorder_convolution_transpose_weight(
            weight, *self.transposed_geometry, [len(x), len(weight), *side]
        )

    def forward(self, x: Tensor) -> Tensor:
        return convolve(x, self.kernel, self.bias, self.geometry)

    def backward(self, grad: Tensor) -> Tensor:
        out: Tensor = ONEDNN._convolution_transpose_pointwise(
            grad, self.transposed, None, *self.transposed_geometry, "none", [], ""
        )
        return out


class PairedColumns:
    """A 3x3 convolution to few channels, two columns of its output at a time.

    A kernel of 3x4 and stride 2 gives both columns as twice the channels: a quarter of its numbers
    are zeros, but vector registers of 16 are full, and in channels-last memory pairs of columns are
    the columns. Takes .7 of the time at 8 channels, with equal bits. The gradient is the
    convolution with the kernel turned around.
    """

    GEOMETRY = ([1, 1], [1, 2], [1, 1], 1)
    """Padding, stride, dilation and groups."""

    def __init__(self, layer: nn.Conv2d, x: Tensor) -> None:
        weight = layer.weight.detach()
        self.kernel, self.turned = (
            ONEDNN._reorder_convolution_weight(
                torch.cat([pad(kernel, (0, 1)), pad(kernel, (1, 0))]),
                *self.GEOMETRY,
                [len(x), kernel.shape[1], *x.shape[2:]],
            )
            for kernel in (weight, weight.flip(2, 3).transpose(0, 1))
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.convolve(x, self.kernel)

    def backward(self, grad: Tensor) -> Tensor:
        return self.convolve(grad, self.turned)

    def convolve(self, x: Tensor, kernel: Tensor) -> Tensor:
        pairs = convolve(x, kernel, None, self.GEOMETRY).permute(0, 2, 3, 1)
        return pairs.reshape(len(x), *x.shape[2:], -1).permute(0, 3, 1, 2)


class PackedProduct:
    """A product of each whole map, channels last, and a matrix (*outputs, *inputs).

    Images are the width of one map for oneDNN, which uses a number of the matrix for several places
    of the width at a time. The order of the matrix is for exactly `rows` images; others would have
    it reordered on every call, so smaller batches are padded and larger ones cut.
    """

    GEOMETRY = ([0, 0], [1, 1], [1, 1], 1)
    """Padding, stride, dilation and groups."""

    def __init__(self, matrix: Tensor, bias: Tensor | None, rows: int) -> None:
        self.bias, self.rows, self.sizes = bias, rows, (matrix.shape[:3], matrix.shape[3:])
        flat = matrix.flatten(3).flatten(0, 2)
        self.matrix, self.transposed = (
            ONEDNN._reorder_convolution_weight(
                m[:, :, None, None].contiguous(memory_format=torch.channels_last),
                *(*self.GEOMETRY, [1, m.shape[1], rows, 1]),
            )
            for m in (flat, flat.t())
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.multiply(x, self.matrix, self.bias, self.sizes[0])

    def backward(self, grad: Tensor) -> Tensor:
        return self.multiply(grad, self.transposed, None, self.sizes[1])

    def multiply(
        self, x: Tensor, matrix: Tensor, bias: Tensor | None, size: tuple[int, ...]
    ) -> Tensor:
        rows = pad(x.permute(0, 2, 3, 1).flatten(1), (0, 0, 0, -len(x) % self.rows))
        parts = [
            convolve(part.t()[None, :, :, None], matrix, bias, self.GEOMETRY)[0, :, :, 0].t()
            for part in torch.split(rows, self.rows)
        ]
        out = parts[0] if len(parts) == 1 else torch.cat(parts)
        return out[: len(x)].reshape(len(x), *size).permute(0, 3, 1, 2)


def convolve(x: Tensor, kernel: Tensor, bias: Tensor | None, geometry: tuple[Any, ...]) -> Tensor:
    """Return the convolution of x and a kernel in oneDNN's order."""
    out: Tensor = ONEDNN._convolution_pointwise(x, kernel, bias, *geometry, "none", [], "")
    return out
