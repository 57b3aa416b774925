"""What the four networks of the reinitialization study share: its norm, its initial weights.

"The Impact of Reinitialization on Generalization in Convolutional Neural Networks", appendix C:
layer normalisation is a group norm with one group (TensorFlow), after every convolution and every
hidden dense layer; He initialisation (He normal by its appendix E). Readings, where the study is
silent: layers in front of a norm have no bias, as in ResNet and MobileNet (soft weight rescaling is
exact then); the head's starts at zero, as in Keras; epsilon is PyTorch's. The study trains at 224
px: `--set input_size=224`.
"""

from __future__ import annotations

from torch import nn

INPUT_SIZE = 64
"""Side (px) by default: that of TinyImageNet."""


def layer_norm(channels: int) -> nn.GroupNorm:
    """Over channels and positions of one image, with scale and shift of every channel."""
    return nn.GroupNorm(1, channels)


def unit(n_in: int, n_out: int) -> list[nn.Module]:
    """3x3 convolution that keeps the size, norm, ReLU."""
    conv = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
    return [conv, layer_norm(n_out), nn.ReLU(inplace=True)]


def he(model: nn.Module) -> nn.Module:
    """The model with He-normal kernels (fan-in) and biases of zero."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model
