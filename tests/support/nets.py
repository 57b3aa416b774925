"""Small networks of others, which tests name as py:support.nets:FUNCTION."""

from collections import OrderedDict
from typing import Any

import timm
import torch
from torch import nn

from fsbench.backbones.networks import load_architecture


def cifar_resnet(depth: int = 20, classes: int = 0) -> nn.Module:
    """Return the CIFAR ResNet of He et al. 2016 with a classifier called linear."""
    trunk = load_architecture(f"cifar/resnet{depth}").build(0)
    linear = nn.Linear(64, classes) if classes else nn.Identity()
    net: Any = nn.Sequential(OrderedDict(trunk=trunk, linear=linear))
    net.input_size = 32
    return net


def resnet(classes: int = 0) -> nn.Module:
    """A residual network with the modules of torchvision, and few channels."""
    from timm.models.resnet import BasicBlock, ResNet

    channels = {"stem_width": 8, "channels": (8, 16, 32, 64)}
    net: Any = ResNet(BasicBlock, (1, 1, 1, 1), num_classes=classes, **channels)
    net.input_size = 32
    return net


def make_vit(classes: int, **options: Any) -> nn.Module:
    """Return timm's vision transformer for images of 32 px, with a width of 64."""
    from timm.models.vision_transformer import VisionTransformer

    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 1}
    net: Any = VisionTransformer(num_classes=classes, **sizes, **options)
    net.input_size = 32
    return net


def clip_vit(classes: int = 0) -> nn.Module:
    """The transformer of CLIP."""
    return make_vit(classes, pre_norm=True, norm_layer=nn.LayerNorm, act_layer="quick_gelu")


def register_vit(classes: int = 0, scale: bool = True) -> nn.Module:
    """The transformer of DINOv2 with registers."""
    values = 1e-5 if scale else None
    return make_vit(classes, reg_tokens=4, no_embed_class=True, init_values=values)


def vit(classes: int = 0) -> nn.Module:
    net: Any = timm.create_model("test_vit", num_classes=classes)
    return net


def randomise(net: nn.Module) -> nn.Module:
    """Give norm layers statistics, scales and shifts that differ from those of a fresh network."""
    for name, tensor in net.state_dict().items():
        if tensor.is_floating_point() and tensor.ndim == 1:
            low = 0.5 if "var" in name or "weight" in name else -0.2
            tensor.copy_(torch.rand_like(tensor) * 0.5 + low)
    return net.eval()
