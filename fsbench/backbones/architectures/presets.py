"""The networks of this project: `fsbench/NAME`, and `cifar/NAME` for those with a 3x3 stem."""

from functools import partial

from torch import nn

from fsbench.backbones.architectures import Architecture
from fsbench.backbones.architectures._chains import (
    chain_roles,
    deep_cnn,
    layer_norm,
    perceptron,
    perceptron_roles,
    small_cnn,
    study_perceptron,
    unit_roles,
)
from fsbench.backbones.architectures._mobilenet import mobilenet, mobilenet_roles
from fsbench.backbones.architectures._resnet import (
    BasicBlock,
    Bottleneck,
    layer_norm_resnet50,
    resnet,
    resnet_roles,
)

RESNET50 = (3, 4, 6, 3)
SIDE = 64
"""Side (px) of TinyImageNet."""
VGG16 = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))
"""Channels as a multiple of the width, and number of convolutions, per stage of configuration D."""

chain = partial(Architecture, features="last hidden layer", fixed_input=True)
residual = partial(Architecture, roles=resnet_roles)
study_mlp = partial(chain, roles=perceptron_roles, default_width=32, input_size=8, least=7)

# Soft Weight Rescaling, appendix D.1, and its official code. The perceptron is 784-100-100-10 on
# MNIST; here the input has 3 s s values for images of side s. The released VGG-16 is a stub. Our
# reading: batch norm because the paper's two lambdas are for networks with it, convolutions without
# bias as in its CNN-BN; at 64 px the classifier receives 512 x 2 x 2 values.
SOFT_WEIGHT_RESCALING = (
    chain(
        name="mlp",
        factory=perceptron,
        roles=perceptron_roles,
        default_width=100,
        input_size=28,
        summary="two hidden layers of 100 units on the flattened image",
    ),
    chain(
        name="cnn",
        factory=small_cnn,
        roles=chain_roles,
        default_width=16,
        input_size=32,
        least=10,
        summary="two 5x5 convolutions of 16 channels, 100 hidden units",
    ),
    chain(
        name="cnn_bn",
        factory=partial(small_cnn, norm=nn.BatchNorm2d),
        roles=chain_roles,
        default_width=16,
        input_size=32,
        least=10,
        summary="the cnn with batch norm after both convolutions",
    ),
    chain(
        name="swr_vgg16",
        factory=partial(deep_cnn, stages=VGG16, hidden={"fc6": 64, "fc7": 64}, norm=nn.BatchNorm2d),
        roles=unit_roles,
        default_width=64,
        input_size=64,
        least=32,
        summary="VGG-16 with batch norm and a 4096-4096 classifier without dropout",
    ),
)

# The reinitialization study, appendix C: K = 4, 13, 16 and 7 blocks. It does not state the kernel
# size of the simple CNN, here 3x3. Its perceptron (section 1.1 and Table 1, 128-32-32-8) reads the
# first 128 values of the flattened image, so vectors are stored as images of 8 px. Weights are
# Glorot-uniform and biases zero, Keras' defaults: the paper does not say, and PyTorch's defaults do
# not reproduce its table. Every layer is a block, including the head where a method counts it
# (`lw.head_block`).
REINITIALIZATION = (
    chain(
        name="scnn",
        factory=partial(deep_cnn, stages=((1, 2), (2, 2)), hidden={"fc1": 16}, norm=layer_norm),
        roles=unit_roles,
        default_width=32,
        input_size=SIDE,
        least=4,
        summary="four 3x3 convolutions and a dense layer of 512 units, layer norm",
    ),
    chain(
        name="vgg16",
        factory=partial(deep_cnn, stages=VGG16, hidden={"fc6": 64, "fc7": 64}, norm=layer_norm),
        roles=unit_roles,
        default_width=64,
        input_size=SIDE,
        least=32,
        summary="VGG-16 with layer norm and a 4096-4096 classifier",
    ),
    residual(
        name="resnet50",
        factory=layer_norm_resnet50,
        default_width=64,
        input_size=SIDE,
        summary="ResNet-50 with the ImageNet stem and layer norm",
    ),
    Architecture(
        name="mobilenet",
        factory=mobilenet,
        roles=mobilenet_roles,
        default_width=32,
        input_size=SIDE,
        summary="shallow MobileNet: a stem and 8 separable units, layer norm",
    ),
    study_mlp(
        name="study_mlp",
        factory=partial(study_perceptron, law="glorot"),
        summary="two hidden layers of 32 units on the first 128 values of the image",
    ),
    study_mlp(
        name="study_mlp_he",
        factory=partial(study_perceptron, law="he"),
        summary="study_mlp with He-normal weights",
    ),
    study_mlp(
        name="study_mlp_torch",
        factory=partial(study_perceptron, law="torch"),
        summary="study_mlp with PyTorch's default weights",
    ),
)

# toy_resnet runs in seconds, for demo and tests; a run of pilot_resnet takes minutes on two cores.
# Its stem of stride 2 halves 32 px before the first block. Without the stride a training image
# costs about three times as much; with the ImageNet stem (8 px left) a third, but the network
# learns less. seal_resnet50: models/resnet.py of SEAL's official code; the paper's L = 23 is the
# 23rd convolution without downsample convolutions, which is the first of `layer3`. Weight Compander
# (https://arxiv.org/abs/2306.16993), sections IV-A and IV-B: "ResNet networks are initialized
# Kaiming-uniform", after He et al. 2015, so with the gain sqrt 2 of ReLU.
RESNETS = (
    residual(
        name="toy_resnet",
        factory=resnet(BasicBlock, (1, 1, 1, 1), "small"),
        default_width=8,
        input_size=32,
        summary="four stages of one basic block, 3x3 stem, width 8",
    ),
    residual(
        name="pilot_resnet",
        factory=resnet(BasicBlock, (1, 1, 1, 1), "strided"),
        default_width=32,
        input_size=32,
        summary="four stages of one basic block, 3x3 stem of stride 2, width 32",
    ),
    residual(
        name="seal_resnet50",
        factory=resnet(Bottleneck, RESNET50, "imagenet"),
        default_width=64,
        input_size=SIDE,
        summary="ResNet-50 with the ImageNet stem and SEAL's initialisation",
    ),
    residual(
        name="wc_resnet50",
        factory=resnet(Bottleneck, RESNET50, "imagenet", "uniform"),
        default_width=64,
        input_size=224,
        summary="ResNet-50 with the ImageNet stem and kaiming-uniform weights",
    ),
)
PRESETS = {net.name: net for net in (*SOFT_WEIGHT_RESCALING, *REINITIALIZATION, *RESNETS)}

CIFAR_RESNETS = {
    f"cifar/resnet{depth}": residual(
        name=f"cifar/resnet{depth}",
        factory=factory,
        default_width=width,
        input_size=32,
        summary=f"ResNet-{depth} with a 3x3 stem, width {width}, kaiming-{law} weights",
    )
    for depth, factory, width, law in (
        (18, resnet(BasicBlock, (2, 2, 2, 2), "small", "uniform"), 64, "uniform"),
        (34, resnet(BasicBlock, RESNET50, "small", "uniform"), 64, "uniform"),
        (50, resnet(Bottleneck, RESNET50, "small", "uniform"), 64, "uniform"),
        (56, resnet(BasicBlock, (9, 9, 9), "small"), 16, "normal"),
        (110, resnet(BasicBlock, (18, 18, 18), "small"), 16, "normal"),
    )
}
"""Networks of the weight compander's and of NIO's experiments on CIFAR by name, and ResNet-56."""
