"""The blocks of pilot_resnet at width 8 behind a 3x3 stem: runs in seconds, for demo and tests."""

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._resnet import BasicBlock, resnet, roles

ARCHITECTURE = Architecture(
    name="toy_resnet",
    factory=resnet(BasicBlock, (1, 1, 1, 1), "small"),
    roles=roles,
    default_width=8,
    input_size=32,
    summary="four stages of one basic block, 3x3 stem, width 8",
)
