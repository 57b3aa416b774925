"""The simple CNN of the reinitialization study: four convolutions, one dense layer (_study.py).

Appendix C: 32, 32, pooling, 64, 64, pooling, dense 512, head; K = 4. The kernels' size is not
stated: 3x3. At another width the dense layer scales along.
"""

from __future__ import annotations

from torch import nn

from fsbench.backbones.architectures import _chain, _study
from fsbench.backbones.architectures._base import Architecture

LEAST = 4
"""Side (px) that leaves one pixel after both poolings."""


def scnn(num_classes: int, width: int, side: int) -> nn.Module:
    """Raises UsageError for images under 4 px."""
    if side < LEAST:
        raise _chain.too_small("scnn", side, LEAST)
    stages: list[nn.Module] = [
        nn.Sequential(*_study.unit(n_in, n_out), *_study.unit(n_out, n_out), nn.MaxPool2d(2))
        for n_in, n_out in ((3, width), (width, 2 * width))
    ]
    values = 2 * width * (side // 4) ** 2
    hidden = [("fc1", 16 * width)]
    return _study.he(_chain.Chain(stages, hidden, num_classes, side, values, layer_norm=True))


ARCHITECTURE = Architecture(
    name="scnn",
    factory=scnn,
    roles=_chain.unit_roles,
    default_width=32,
    input_size=_study.INPUT_SIZE,
    summary="four 3x3 convolutions and a dense layer of 512 units, layer norm",
    features="last hidden layer",
    fixed_input=True,
)
