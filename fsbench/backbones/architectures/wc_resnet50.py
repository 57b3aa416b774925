"""ResNets of the weight compander experiments, with kaiming-uniform weights, and NIO's ResNet-110.

Weight Compander (https://arxiv.org/abs/2306.16993), sections IV-A and IV-B: "ResNet networks are
initialized Kaiming-uniform", after He et al. 2015, so with the gain sqrt 2 of ReLU. Everything else
of the ResNet-50 for TinyImageNet is as in fsbench/seal_resnet50. Those for CIFAR have a 3x3 stem.
"""

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._resnet import (
    BasicBlock,
    Bottleneck,
    Kernels,
    Residual,
    resnet,
    roles,
)

ARCHITECTURE = Architecture(
    name="wc_resnet50",
    factory=resnet(Bottleneck, (3, 4, 6, 3), "imagenet", "uniform"),
    roles=roles,
    default_width=64,
    input_size=224,
    summary="ResNet-50 with the ImageNet stem and kaiming-uniform weights",
)


def cifar_resnet(
    depth: int, block: type[Residual], depths: tuple[int, ...], width: int, kernels: Kernels
) -> Architecture:
    """Return a ResNet with a 3x3 stem for images of 32 px, addressed as cifar/resnet<depth>."""
    return Architecture(
        name=f"cifar/resnet{depth}",
        factory=resnet(block, depths, "small", kernels),
        roles=roles,
        default_width=width,
        input_size=32,
        summary=f"ResNet-{depth} with a 3x3 stem, width {width}, kaiming-{kernels} weights",
    )


CIFAR_RESNETS = {
    architecture.name: architecture
    for architecture in (
        cifar_resnet(18, BasicBlock, (2, 2, 2, 2), 64, "uniform"),
        cifar_resnet(34, BasicBlock, (3, 4, 6, 3), 64, "uniform"),
        cifar_resnet(50, Bottleneck, (3, 4, 6, 3), 64, "uniform"),
        cifar_resnet(56, BasicBlock, (9, 9, 9), 16, "normal"),
        cifar_resnet(110, BasicBlock, (18, 18, 18), 16, "normal"),
    )
}
"""Networks of the weight compander's and of NIO's experiments on CIFAR by name, and ResNet-56."""
