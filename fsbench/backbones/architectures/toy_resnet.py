"""The pilot net at width 8: trains in seconds on one core, for the demo and the tests."""

from __future__ import annotations

from fsbench.backbones.architectures._base import Architecture
from fsbench.backbones.architectures._resnet import BasicBlock, resnet, roles

ARCHITECTURE = Architecture(
    name="toy_resnet",
    factory=resnet(BasicBlock, (1, 1, 1, 1), "small"),
    roles=roles,
    default_width=8,
    input_size=32,
    summary="the pilot net at width 8",
)
