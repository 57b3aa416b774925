"""What bounds affine tuning on a CPU: `python -m benchmarks.convolutions`.

One thread times every frozen convolution of a network, forward and backward, on the images of a
whole step (4 of each episode of a piece), then the step itself, and a product of two matrices of
1,024 x 1,024 as what the core can do. Times are the fastest of several; rates count every
multiplication of the kernel and every addition, those of the padding included.
"""

from collections.abc import Callable
from functools import partial

import torch
from benchmarks.affine import ROWS, Case, channels_last
from benchmarks.pairing import make_parser, seconds
from torch import Tensor, nn

from protocols.affine.convolution import FrozenConvolution
from protocols.episodic.affine import exact_kernels


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Return seconds of the fastest of so many repeats, after one that does not count."""
    work()
    return min(seconds(work) for _ in range(repeats))


def product_rate(repeats: int) -> float:
    """Return operations a second of a large product of matrices."""
    square = torch.randn(1024, 1024)
    return 2 * 1024**3 / fastest(lambda: square @ square, repeats)


class Convolution:
    """A frozen convolution of a network, on maps of one size."""

    def __init__(self, layer: nn.Conv2d, side: tuple[int, ...], images: int) -> None:
        forward = layer.forward
        self.operation = forward.operations[side]
        self.x = channels_last(torch.randn(images, layer.in_channels, *side))
        self.grad = torch.randn_like(self.operation.forward(self.x))
        kernel = layer.kernel_size[0] * layer.kernel_size[1]
        self.operations = 2 * self.grad.numel() * layer.in_channels * kernel
        self.name = f"{layer.in_channels} to {layer.out_channels} channels, {side[0]} px"
        self.name += f", {layer.kernel_size[0]}x{layer.kernel_size[1]} by {layer.stride[0]}"

    def seconds(self, repeats: int) -> list[float]:
        """Return seconds forward and backward."""
        sides: list[tuple[Callable[[Tensor], Tensor], Tensor]]
        sides = [(self.operation.forward, self.x), (self.operation.backward, self.grad)]
        return [fastest(partial(f, x), repeats) for f, x in sides]


def convolutions(case: Case) -> list[Convolution]:
    """Return those that a step computes, in the network's order, after a step has packed them."""
    module, images = case.block[0].network.module, case.episodes * len(case.batches[0])
    return [
        Convolution(layer, side, images)
        for layer in module.modules()
        if isinstance(layer, nn.Conv2d) and isinstance(layer.forward, FrozenConvolution)
        for side in layer.forward.operations
    ]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    torch.set_num_threads(1)
    for number in options.rows:
        row = ROWS[number]
        case = Case(row)
        case.batches = case.batches[:1] * case.steps
        step = fastest(case.ours, options.repeats)
        with exact_kernels("cpu", case.spec), torch.no_grad():
            parts = convolutions(case)
            times = [part.seconds(options.repeats) for part in parts]
        step /= case.steps
        print(f"{row.ref}, {row.side} px: operations a second in 1e9, forward and backward")
        for part, both in zip(parts, times, strict=True):
            rates = "".join(f"{part.operations / t / 1e9:6.0f}" for t in both)
            print(f"  {part.name:40} {1e3 * sum(both):6.2f} ms {rates}")
        total, operations = sum(map(sum, times)), sum(2 * part.operations for part in parts)
        print(f"  {'all':40} {1e3 * total:6.2f} ms {operations / total / 1e9:6.0f}")
        print(f"  {'step':40} {1e3 * step:6.2f} ms {operations / step / 1e9:6.0f}")
        print(f"  {'product of matrices':49} {product_rate(options.repeats) / 1e9:6.0f}")


if __name__ == "__main__":
    main()
