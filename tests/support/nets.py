"""Small networks of others, which tests name as py:support.nets:FUNCTION."""

from typing import Any

import timm
import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu


class Shortcut(nn.Module):
    """Every second pixel, and zeros for the channels that are new: a shortcut without weights."""

    def __init__(self, new: int) -> None:
        super().__init__()
        self.new = new

    def forward(self, x: Tensor) -> Tensor:
        return pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.new // 2, self.new // 2))


class CifarBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = Shortcut(outputs - inputs) if stride > 1 else nn.Sequential()

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(out + self.shortcut(x))


class CifarResNet(nn.Module):
    """The CIFAR ResNet of He et al. 2016: three stages of 16, 32 and 64 channels."""

    input_size = 32

    def __init__(self, blocks: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self.stage(16, 16, blocks, 1)
        self.layer2 = self.stage(16, 32, blocks, 2)
        self.layer3 = self.stage(32, 64, blocks, 2)
        self.linear = nn.Linear(64, classes) if classes else nn.Identity()

    @staticmethod
    def stage(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Module:
        rest = (CifarBlock(outputs, outputs, 1) for _ in range(blocks - 1))
        return nn.Sequential(CifarBlock(inputs, outputs, stride), *rest)

    def forward(self, x: Tensor) -> Tensor:
        x = relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))  # type: ignore[no-any-return]


def cifar_resnet(depth: int = 20, classes: int = 0) -> nn.Module:
    return CifarResNet((depth - 2) // 6, classes)


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
