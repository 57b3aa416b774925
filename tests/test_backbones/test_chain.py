"""The soft-weight-rescaling paper's networks: shapes, roles, initial weights, fixed input size."""

import pytest
import torch

from fsbench.backbones.architectures import NORMS
from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError


def shapes(name: str, classes: int, side: int | None = None) -> dict[str, tuple[int, ...]]:
    architecture = load_architecture(name)
    with torch.device("meta"):
        model = architecture.at(side or architecture.input_size).build(classes)
    return {n: tuple(p.shape) for n, p in model.named_parameters()}


def test_the_mlp_has_two_hidden_layers_of_100_units() -> None:
    assert shapes("mlp", 10) == {
        "layer1.1.weight": (100, 3 * 784),
        "layer1.1.bias": (100,),
        "layer2.0.weight": (100, 100),
        "layer2.0.bias": (100,),
        "fc.weight": (10, 100),
        "fc.bias": (10,),
    }


def test_the_cnn_sees_576_values_of_a_32_px_image() -> None:
    assert shapes("cnn", 10) == {
        "layer1.0.weight": (16, 3, 5, 5),
        "layer1.0.bias": (16,),
        "layer2.0.weight": (16, 16, 5, 5),
        "layer2.0.bias": (16,),
        "fc1.weight": (100, 576),
        "fc1.bias": (100,),
        "fc.weight": (10, 100),
        "fc.bias": (10,),
    }


def test_vgg16_has_the_13_convolutions_of_configuration_d() -> None:
    layers = shapes("swr_vgg16", 200)
    channels = [s[0] for s in layers.values() if len(s) == 4]
    assert channels == [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    assert layers["fc6.weight"] == (4096, 512 * 2 * 2)
    assert layers["fc7.weight"] == (4096, 4096)
    assert layers["fc.weight"] == (200, 4096)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_architecture_names_its_norms(name: str) -> None:
    architecture = load_architecture(name)
    with torch.device("meta"):
        model = architecture.build(3, 4)
    roles = architecture.roles(model)
    norms = [n for n, m in model.named_modules() if isinstance(m, NORMS)]
    assert sorted(roles.norms) == sorted(norms)
    assert [n for n in roles.weighted if n not in norms] == list(roles.layers)


LEAST = {"cnn": 10, "cnn_bn": 10, "swr_vgg16": 32, "scnn": 4, "vgg16": 32}


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_images_that_pooling_would_consume_are_refused(name: str, least: int) -> None:
    architecture = load_architecture(name)
    smallest = architecture.at(least).build(3, 2).eval()
    assert smallest(torch.zeros(1, 3, least, least)).shape == (1, 3)
    with pytest.raises(UsageError, match=f"at least {least} px, not {least - 1}"):
        architecture.at(least - 1).build(3, 2)


def test_images_of_another_size_are_refused_with_the_right_one() -> None:
    with pytest.raises(UsageError, match="built for 28 px, the images have 32 x 32") as caught:
        load_architecture("mlp").build(3)(torch.zeros(1, 3, 32, 32))
    assert "--input-size 28" in caught.value.fix
