"""Convolutions with frozen kernels on a CPU: packed for oneDNN once instead of in every call.

A gradient reaches the input alone. Where much of a small map's surroundings would be padding, or a
stride leaves most of a map unread, products of matrices take the place of a convolution (`pack`).
All use operators that torch keeps for its compiler; where a release lacks one of them, torch's own
convolution is used.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

ONEDNN = torch.ops.mkldnn
OPERATORS = (
    "_convolution_pointwise",
    "_convolution_transpose_pointwise",
    "_reorder_convolution_weight",
    "_reorder_convolution_transpose_weight",
    "_linear_pointwise",
    "_reorder_linear_weight",
)
NARROW = 8
"""Channels that fill half of a vector register of AVX-512, which has 16 numbers."""
MOST_WINDOWS = 4
"""Most different windows of a map that are multiplied one by one."""


class Operation(Protocol):
    """A convolution whose kernel is in oneDNN's order, and its gradient of the input."""

    def forward(self, x: Tensor) -> Tensor: ...

    def backward(self, grad: Tensor) -> Tensor: ...


class FrozenConvolution:
    """Takes the place of the `forward` of a frozen convolution on a CPU.

    PyTorch reorders a kernel for oneDNN on every call, forward and backward, which takes longer
    than a convolution of small maps itself. Here it is done once per size of the maps. The gradient
    is that of the input alone, and no activation is saved for it.
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
        return operation.forward(x).data  # no view: a layer may change it in place

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        grad = gradients[0].contiguous(memory_format=torch.channels_last)
        return ctx.operation.backward(grad), None


class Axis(NamedTuple):
    """Rows, or columns, of a convolution: of its map, its output and its kernel."""

    size: int
    positions: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    def windows(self) -> list[tuple[slice, slice]]:
        """Return each different part of the map, without padding, and the outputs that read it."""
        readers: dict[tuple[int, int], list[int]] = defaultdict(list)
        for position in range(self.positions):
            low = position * self.stride - self.padding
            readers[max(0, low), min(self.size, low + self.kernel)].append(position)
        return [(slice(*part), slice(p[0], p[-1] + 1)) for part, p in readers.items()]

    def taps(self, part: slice, position: int) -> slice:
        """Return the taps of the kernel that this output lays on this part of the map."""
        low = position * self.stride - self.padding
        return slice(part.start - low, part.stop - low)

    def rest(self) -> int:
        """Return how many rows at the end of the padded map no output reads."""
        reach = (self.positions - 1) * self.stride + self.dilation * (self.kernel - 1) + 1
        return self.size + 2 * self.padding - reach


def axes_of(layer: nn.Conv2d, x: Tensor) -> tuple[Axis, Axis]:
    """Return the rows and the columns of the layer on maps like x."""
    side = nn.Conv2d.forward(layer, x[:1].detach()).shape[2:]
    padding = [int(p) for p in layer.padding]
    geometry = (x.shape[2:], side, layer.kernel_size, layer.stride, padding, layer.dilation)
    rows, columns = (Axis(*sizes) for sizes in zip(*geometry, strict=True))
    return rows, columns


def pack(layer: nn.Conv2d, x: Tensor) -> Operation:
    """Return the layer as an operation on maps like x. Sums may be rounded in another order."""
    rows, columns = axes = axes_of(layer, x)
    if all(axis.dilation == 1 and axis.padding < axis.kernel for axis in axes):
        one_tap = rows.kernel == columns.kernel == 1
        windows = len(rows.windows()) * len(columns.windows())
        if windows == 1 or (windows <= MOST_WINDOWS and not one_tap):
            return window_products(layer, rows, columns)
        if one_tap and rows.stride * columns.stride > 1:
            return point_products(layer, rows, columns)
    if leaves_half(layer) and columns.positions == columns.size and columns.size % 2 == 0:
        return PairedColumns(layer, x)
    return PackedConvolution(layer, x, axes)


def leaves_half(layer: nn.Conv2d) -> bool:
    """Return whether the channels of a 3x3 convolution leave half of a vector register empty."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and max(layer.in_channels, layer.out_channels) <= NARROW
        and (layer.kernel_size, layer.stride, layer.dilation) == ((3, 3), (1, 1), (1, 1))
        and layer.bias is None
    )


class PackedConvolution:
    """A convolution of maps like x, and of its gradient."""

    def __init__(self, layer: nn.Conv2d, x: Tensor, axes: Sequence[Axis]) -> None:
        weight, self.bias = layer.weight.detach(), layer.bias
        padding, strides = [axis.padding for axis in axes], (layer.stride, layer.dilation, 1)
        self.geometry = (padding, *strides)
        self.transposed_geometry = (padding, [axis.rest() for axis in axes], *strides)
        self.kernel = ONEDNN._reorder_convolution_weight(weight, *self.geometry, x.shape)
        positions = [axis.positions for axis in axes]
        self.transposed = ONEDNN._reorder_convolution_transpose_weight(
            weight, *self.transposed_geometry, [len(x), len(weight), *positions]
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


def convolve(x: Tensor, kernel: Tensor, bias: Tensor | None, geometry: tuple[Any, ...]) -> Tensor:
    """Return the convolution of x and a kernel in oneDNN's order."""
    out: Tensor = ONEDNN._convolution_pointwise(x, kernel, bias, *geometry, "none", [], "")
    return out


ALL = slice(None)
Part = tuple[slice, slice, slice]
"""Images, rows and columns of maps (B, H, W, C)."""


class PackedMatrix:
    """A product of rows and a matrix (outputs of a row, inputs of a row) in oneDNN's order."""

    def __init__(self, matrix: Tensor, bias: Tensor | None = None) -> None:
        self.bias, self.inputs = bias, matrix.shape[1]
        self.packed = ONEDNN._reorder_linear_weight(matrix.contiguous())

    def __call__(self, maps: Tensor) -> Tensor:
        """Return the product of what these maps (B, H, W, C) hold, cut into rows."""
        rows = maps.reshape(-1, self.inputs)
        out: Tensor = ONEDNN._linear_pointwise(rows, self.packed, self.bias, "none", [], "")
        return out


class Product:
    """A part of a convolution: outputs `written`, which a matrix makes of what they read."""

    def __init__(
        self, read: Part, written: Part, matrix: Tensor, bias: Tensor | None = None
    ) -> None:
        self.read, self.written = read, written
        self.matrix, self.transposed = PackedMatrix(matrix, bias), PackedMatrix(matrix.t())


class Products:
    """A convolution as products of matrices, which together write every output once."""

    def __init__(self, parts: Sequence[Product], layer: nn.Conv2d, axes: Sequence[Axis]) -> None:
        self.parts = parts
        self.map = (*(axis.size for axis in axes), layer.in_channels)
        self.output = (*(axis.positions for axis in axes), layer.out_channels)
        whole = (ALL, *(slice(0, axis.size) for axis in axes))
        self.is_whole = [part.read for part in parts] == [whole]

    def forward(self, x: Tensor) -> Tensor:
        maps = x.permute(0, 2, 3, 1)
        if len(self.parts) == 1:
            out = self.parts[0].matrix(maps[self.parts[0].read]).view(len(x), *self.output)
        else:
            out = x.new_empty(len(x), *self.output)
            for part in self.parts:
                written = out[part.written]
                written.copy_(part.matrix(maps[part.read]).view(written.shape))
        return out.permute(0, 3, 1, 2)

    def backward(self, grad: Tensor) -> Tensor:
        outputs = grad.permute(0, 2, 3, 1)
        if self.is_whole:
            out = self.parts[0].transposed(outputs).view(len(grad), *self.map)
        else:
            out = grad.new_zeros(len(grad), *self.map)
            for part in self.parts:
                read = out[part.read]
                read.add_(part.transposed(outputs[part.written]).view(read.shape))
        return out.permute(0, 3, 1, 2)


def window_products(layer: nn.Conv2d, rows: Axis, columns: Axis) -> Products:
    """Return a product for each different window of the map, without a number for the padding.

    Where all outputs read the whole map (3x3 on 1x1 or 2x2) there is one.
    """
    weight, parts = layer.weight.detach(), []
    for (top, i), (left, j) in product(rows.windows(), columns.windows()):
        positions = list(product(range(i.start, i.stop), range(j.start, j.stop)))
        matrix = torch.cat(
            [
                weight[:, :, rows.taps(top, y), columns.taps(left, x)].permute(0, 2, 3, 1)
                for y, x in positions
            ]
        )
        bias = None if layer.bias is None else layer.bias.repeat(len(positions))
        parts.append(Product((ALL, top, left), (ALL, i, j), matrix.flatten(1), bias))
    return Products(parts, layer, (rows, columns))


def point_products(layer: nn.Conv2d, rows: Axis, columns: Axis) -> Products:
    """Return a 1x1 convolution with a stride as the product of the pixels that it reads."""
    read = (ALL, slice(None, None, rows.stride), slice(None, None, columns.stride))
    matrix = layer.weight.detach().flatten(1)
    return Products([Product(read, (ALL, ALL, ALL), matrix, layer.bias)], layer, (rows, columns))
