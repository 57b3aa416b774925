"""The networks of this project: `fsbench/NAME`, and `cifar/NAME` for those with a 3x3 stem."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import nn

from fsbench.backbones.architectures import Architecture, _chains, _mobilenet, _resnet
from fsbench.backbones.architectures._chains import cnn, perceptron
from fsbench.backbones.architectures._resnet import ResNet

SIDE = 64
"""Side (px) of TinyImageNet."""
ONES, FIFTY = (1, 1, 1, 1), (3, 4, 6, 3)
"""Units per stage."""


def chain(
    name: str,
    factory: Callable[..., nn.Module],
    width: int,
    side: int,
    least: int,
    summary: str,
    blocks: Literal["stages", "units"] = "stages",
) -> Architecture:
    """Return a plain network for images of `side` px, `least` px at least."""
    roles = partial(_chains.chain_roles, blocks=blocks)
    features = "last hidden layer"
    return Architecture(name, factory, roles, width, side, summary, features, True, least)


def vgg16(norm: Callable[[int], nn.Module]) -> Callable[..., nn.Module]:
    """Return the factory of configuration D with a norm."""
    stages = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))
    return partial(cnn, stages=stages, hidden={"fc6": 64, "fc7": 64}, norm=norm)


def residual(
    name: str, factory: Callable[..., nn.Module], width: int, side: int, summary: str
) -> Architecture:
    return Architecture(name, factory, _resnet.resnet_roles, width, side, summary)


# Soft Weight Rescaling, appendix D.1, and its official code. The perceptron is 784-100-100-10 on
# MNIST; here the input has 3 s s values for images of side s. The released VGG-16 is a stub. Our
# reading: batch norm because the paper's two lambdas are for networks with it, convolutions without
# bias as in its CNN-BN; at 64 px the classifier receives 512 x 2 x 2 values.
SMALL_CNN = partial(cnn, stages=((1, 1), (1, 1)), hidden={"fc1": 100 / 16}, kernel=5)
SOFT_WEIGHT_RESCALING = (
    chain("mlp", perceptron, 100, 28, 1, "two hidden layers of 100 units on the flattened image"),
    chain("cnn", SMALL_CNN, 16, 32, 10, "two 5x5 convolutions of 16 channels, 100 hidden units"),
    chain("cnn_bn", partial(SMALL_CNN, norm=nn.BatchNorm2d), 16, 32, 10,
          "the cnn with batch norm after both convolutions"),
    chain("swr_vgg16", vgg16(nn.BatchNorm2d), 64, 64, 32,
          "VGG-16 with batch norm and a 4096-4096 classifier without dropout", "units"),
)  # fmt: skip

# The reinitialization study, appendix C: K = 4, 13, 16 and 7 blocks. It does not state the kernel
# size of the simple CNN, here 3x3. Its perceptron (section 1.1 and Table 1, 128-32-32-8) reads the
# first 128 values of the flattened image, so vectors are stored as images of 8 px. Weights are
# Glorot-uniform and biases zero, Keras' defaults: the paper does not say, and PyTorch's defaults do
# not reproduce its table. Every layer is a block, including the head where a method counts it
# (`lw.head_block`).
REINITIALIZATION = (
    chain("scnn",
          partial(cnn, stages=((1, 2), (2, 2)), hidden={"fc1": 16}, norm=_chains.layer_norm),
          32, SIDE, 4, "four 3x3 convolutions and a dense layer of 512 units, layer norm", "units"),
    chain("vgg16", vgg16(_chains.layer_norm), 64, SIDE, 32,
          "VGG-16 with layer norm and a 4096-4096 classifier", "units"),
    residual("resnet50", _resnet.layer_norm_resnet50, 64, SIDE,
             "ResNet-50 with the ImageNet stem and layer norm"),
    Architecture("mobilenet", _mobilenet.mobilenet, _mobilenet.mobilenet_roles, 32, SIDE,
                 "shallow MobileNet: a stem and 8 separable units, layer norm"),
    chain("study_mlp", partial(perceptron, law="glorot"), 32, 8, 7,
          "two hidden layers of 32 units on the first 128 values of the image"),
)  # fmt: skip

# toy_resnet runs in seconds, for demo and tests; a run of pilot_resnet takes minutes on two cores.
# Its stem of stride 2 halves 32 px before the first block. Without the stride a training image
# costs about three times as much; with the ImageNet stem (8 px left) a third, but the network
# learns less. seal_resnet50: models/resnet.py of SEAL's official code; the paper's L = 23 is the
# 23rd convolution without downsample convolutions, which is the first of `layer3`. Weight Compander
# (https://arxiv.org/abs/2306.16993), sections IV-A and IV-B: "ResNet networks are initialized
# Kaiming-uniform", after He et al. 2015, so with the gain sqrt 2 of ReLU.
RESNETS = (
    residual("toy_resnet", partial(ResNet, depths=ONES, stem="small"), 8, 32,
             "four stages of one basic block, 3x3 stem, width 8"),
    residual("pilot_resnet", partial(ResNet, depths=ONES, stem="strided"), 32, 32,
             "four stages of one basic block, 3x3 stem of stride 2, width 32"),
    residual("seal_resnet50", partial(ResNet, depths=FIFTY, stem="imagenet", bottleneck=True), 64,
             SIDE, "ResNet-50 with the ImageNet stem and SEAL's initialisation"),
    residual("wc_resnet50",
             partial(ResNet, depths=FIFTY, stem="imagenet", kernels="uniform", bottleneck=True),
             64, 224, "ResNet-50 with the ImageNet stem and kaiming-uniform weights"),
)  # fmt: skip
PRESETS = {net.name: net for net in (*SOFT_WEIGHT_RESCALING, *REINITIALIZATION, *RESNETS)}

CIFAR: tuple[tuple[int, tuple[int, ...], int, _resnet.Kernels], ...] = (
    (18, (2, 2, 2, 2), 64, "uniform"),
    (34, FIFTY, 64, "uniform"),
    (50, FIFTY, 64, "uniform"),
    (56, (9, 9, 9), 16, "normal"),
    (110, (18, 18, 18), 16, "normal"),
)
CIFAR_RESNETS = {
    f"cifar/resnet{depth}": residual(
        f"cifar/resnet{depth}",
        partial(ResNet, depths=units, stem="small", kernels=law, bottleneck=depth == 50),
        width,
        32,
        f"ResNet-{depth} with a 3x3 stem, width {width}, kaiming-{law} weights",
    )
    for depth, units, width, law in CIFAR
}
"""Networks of the weight compander's and of NIO's experiments on CIFAR by name, and ResNet-56."""
