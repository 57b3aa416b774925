"""Four-stage residual net with basic blocks for 32 px: a pilot run takes minutes on two cores.

The stem of stride 2 halves 32 px before the first block. Without the stride a training image costs
about three times as much; with the ImageNet stem (8 px left) a third, but the network learns less.
"""

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._resnet import BasicBlock, resnet, roles

ARCHITECTURE = Architecture(
    name="pilot_resnet",
    factory=resnet(BasicBlock, (1, 1, 1, 1), "strided"),
    roles=roles,
    default_width=32,
    input_size=32,
    summary="four stages of one basic block, 3x3 stem of stride 2, width 32",
)
