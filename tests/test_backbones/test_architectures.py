"""Residual networks against the papers' figures and torchvision's names; roles at thresholds."""

import pytest
import torch
from torch import nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.seeding import stream


@pytest.fixture(scope="module")
def seal() -> nn.Module:
    with stream("seal"):
        return load_architecture("seal_resnet50").build(200)


def test_seal_resnet50_computes_what_torchvision_computes(seal: nn.Module) -> None:
    """With the same names and shapes."""
    from torchvision.models import resnet50

    theirs = resnet50(num_classes=200).eval()
    theirs.load_state_dict(seal.state_dict())
    images = torch.linspace(-1, 1, 2 * 3 * 64 * 64).view(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(seal.eval()(images), theirs(images))


def test_layer_23_is_the_first_convolution_of_layer3(seal: nn.Module) -> None:
    """SEAL, models/resnet.py: 1 stem + 3*3 + 4*3 = 22 convolutions, downsample excluded."""
    early, late = RoleMap.from_threshold(seal, "layer3")
    assert len([n for n in early if "conv" in n]) == 22
    assert late[0] == "layer3.0.conv1.weight"
    assert "layer2.0.downsample.1.bias" in early
    assert early + late == tuple(n for n, _ in seal.named_parameters())


def test_initial_weights_are_kaiming_normal_with_fan_in(seal: nn.Module) -> None:
    for name, fan_in in (("layer4.0.conv2", 512 * 9), ("layer3.0.downsample.0", 512), ("fc", 2048)):
        weight = seal.get_submodule(name).weight
        assert weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.01)
        assert weight.abs().max().item() > 3 * weight.std().item()  # a uniform would end at 1.73
    assert torch.equal(seal.get_submodule("layer4.2.bn3").weight, torch.ones(2048))


def test_seal_resnet50_has_16_blocks_and_the_stem_is_in_the_first(seal: nn.Module) -> None:
    roles = load_architecture("seal_resnet50").roles(seal)
    assert len(roles.blocks) == 16
    assert roles.blocks[0] == ("conv1", "bn1", "layer1.0")
    assert roles.stages == ("layer1", "layer2", "layer3", "layer4")
    convolutions = [f"layer1.0.{part}" for part in ("conv1", "conv2", "conv3", "downsample.0")]
    assert roles.layers[:5] == ("conv1", *convolutions)
    assert len(roles.layers) == 53 + 1


def test_thresholds_at_both_ends_and_at_no_module() -> None:
    model = load_architecture("toy_resnet").build(3)
    assert RoleMap.from_threshold(model, "conv1")[0] == ()
    assert RoleMap.from_threshold(model, "fc")[1] == ("fc.weight", "fc.bias")
    with pytest.raises(UnknownName, match="did you mean 'layer3'"):
        RoleMap.from_threshold(model, "layr3")
    with pytest.raises(UnknownName):
        RoleMap.from_threshold(model, "layer")  # a part of a name is no name


@pytest.mark.parametrize(("classes", "width"), [(-1, 8), (3, 0)])
def test_impossible_sizes_are_refused(classes: int, width: int) -> None:
    with pytest.raises(UsageError, match="toy_resnet"):
        load_architecture("toy_resnet").build(classes, width)


def test_wc_resnet50_is_kaiming_uniform_and_otherwise_seals() -> None:
    ours, seals = (load_architecture(name).build(5, 8) for name in ("wc_resnet50", "seal_resnet50"))
    shapes = [{n: t.shape for n, t in net.state_dict().items()} for net in (ours, seals)]
    assert shapes[0] == shapes[1]
    for name, weight in ours.named_parameters():
        if weight.ndim > 1:
            bound = (6 / weight[0].numel()) ** 0.5
            assert weight.abs().max() <= bound, name
            assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.2), name


@pytest.mark.parametrize(
    ("depth", "millions", "features", "blocks"),
    [(18, 11.2, 512, 8), (34, 21.3, 512, 16), (50, 23.5, 2048, 16), (110, 1.73, 64, 54)],
)
def test_cifar_resnets_have_the_published_sizes(
    depth: int, millions: float, features: int, blocks: int
) -> None:
    """He et al. 2016, Table 6, for 110 layers; usual versions of the others with a 3x3 stem."""
    architecture = load_architecture(f"cifar/resnet{depth}")
    with torch.device("meta"):
        model = architecture.build(10)
        assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)
    roles = architecture.roles(model)
    assert (len(roles.blocks), model.get_submodule(roles.head).in_features) == (blocks, features)
