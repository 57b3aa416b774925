"""The simple CNN of the reinitialization study: four convolutions, one dense layer (_layers.py).

Appendix C: 32, 32, pooling, 64, 64, pooling, dense 512, head; K = 4. The paper
does not state the kernel size, here 3x3. At another width the dense layer scales along.
"""

from torch import nn

from fsbench.backbones.architectures import Architecture, _layers

LEAST = 4
"""Side (px) that leaves one pixel after both poolings."""


def scnn(num_classes: int, width: int, side: int) -> nn.Module:
    """Build the network. Raise UsageError for images under 4 px."""
    if side < LEAST:
        raise _layers.small_image_error("scnn", side, LEAST)
    stages: list[nn.Module] = [
        nn.Sequential(
            *_layers.normed_conv(n_in, n_out), *_layers.normed_conv(n_out, n_out), nn.MaxPool2d(2)
        )
        for n_in, n_out in ((3, width), (width, 2 * width))
    ]
    values = 2 * width * (side // 4) ** 2
    hidden = [("fc1", 16 * width)]
    return _layers.initialize_he(
        _layers.Chain(stages, hidden, num_classes, side, values, layer_norm=True)
    )


ARCHITECTURE = Architecture(
    name="scnn",
    factory=scnn,
    roles=_layers.chain_unit_roles,
    default_width=32,
    input_size=_layers.INPUT_SIZE,
    summary="four 3x3 convolutions and a dense layer of 512 units, layer norm",
    features="last hidden layer",
    fixed_input=True,
)
