"""BatchNorm statistics of networks with random weights, from images of the toy source.

A fresh BatchNorm layer states mean 0 and variance 1 whatever its input is, so signals grow or fade
with depth, and a head that trains at a fixed rate on their features predicts one class. Passes over
generated images, none of a target, set the statistics as training would. They are in float64 and
their result is rounded to 12 bits, so every processor gets the same bits.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.core.specs import Triple
from fsbench.data.toy import SOURCE_FACTS, Style, toy_image

PER_CLASS = 2
"""Images of each of the 20 classes; a forward pass has one of each."""
SIDE = 128
"""Largest side (px): at 64 px the deep maps of EfficientNets are so small that padding rules their
statistics, and features at 224 px have norms of 300; 224 px takes three times as long."""
BITS = 12
"""Of the mantissa; the sampling error of the statistics is far larger than 2**-12."""


def calibrate(network: nn.Module, size: int, mean: Triple, std: Triple) -> str | None:
    """Set the statistics of all BatchNorm layers; return how, None for a network without them.

    size: the network's own (px), taken if it is smaller than SIDE or if no other fits; mean, std:
    normalisation of the images. The network stays in eval mode.
    """
    modules = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    layers = {layer: layer.momentum for layer in modules if layer.running_mean is not None}
    if not layers:
        return None
    network.double().eval()
    side = min(SIDE, size)
    try:
        with torch.no_grad():
            network(torch.zeros(2, 3, side, side, dtype=torch.double))
    except (AssertionError, RuntimeError, ValueError):
        side = size
    for layer in layers:
        layer.reset_running_stats()
        layer.train().momentum = None  # the average over the passes
    with torch.no_grad():
        for rank in range(PER_CLASS):
            network(draw_images(rank, side, mean, std))
    for layer, momentum in layers.items():
        layer.eval().momentum = momentum
        for statistic in (layer.running_mean, layer.running_var):
            if statistic is not None:
                statistic.copy_(round_mantissa(statistic))
    network.float()
    n = PER_CLASS * len(SOURCE_FACTS.classes)
    return f"BatchNorm statistics of {n} images of {SOURCE_FACTS.name} at {side} px"


def draw_images(rank: int, side: int, mean: Triple, std: Triple) -> Tensor:
    """Return image `rank` of each class, normalised: (20, 3, side, side) float64."""
    name, pairs = SOURCE_FACTS.name, SOURCE_FACTS.classes
    pixels = np.stack([toy_image(name, Style(), pair, rank, side) for pair in pairs])
    images = torch.from_numpy(pixels).double().div_(255)
    normalised = (images - images.new_tensor(mean)) / images.new_tensor(std)
    return normalised.permute(0, 3, 1, 2).contiguous()


def round_mantissa(values: Tensor) -> Tensor:
    """Return the values rounded to BITS bits of their mantissa."""
    mantissa, exponent = torch.frexp(values)
    return torch.ldexp(torch.round(mantissa * 2**BITS) / 2**BITS, exponent)
