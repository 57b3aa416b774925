"""The soft-weight-rescaling paper's networks: shapes, roles, initial weights, fixed input size."""

import pytest
import torch
from torch import nn

from fsbench.backbones.architectures import NORMS
from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from fsbench.core.seeding import stream

CHAINS = ("cnn", "cnn_bn", "mlp", "swr_vgg16")


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


def test_the_cnn_with_batch_norm_has_no_convolution_bias() -> None:
    plain, normed = shapes("cnn", 10), shapes("cnn_bn", 10)
    norms = {f"layer{i}.1.{part}": (16,) for i in (1, 2) for part in ("weight", "bias")}
    parameters = {n: s for n, s in plain.items() if n not in ("layer1.0.bias", "layer2.0.bias")}
    assert normed == parameters | norms


def test_vgg16_has_the_13_convolutions_of_configuration_d() -> None:
    layers = shapes("swr_vgg16", 200)
    channels = [s[0] for s in layers.values() if len(s) == 4]
    assert channels == [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    assert layers["fc6.weight"] == (4096, 512 * 2 * 2)
    assert layers["fc7.weight"] == (4096, 4096)
    assert layers["fc.weight"] == (200, 4096)


@pytest.mark.parametrize("name", CHAINS)
def test_logits_features_and_roles(name: str) -> None:
    architecture = load_architecture(name).at(32)
    model, trunk = architecture.build(5, 4).eval(), architecture.build(0, 4).eval()
    images = torch.zeros(2, 3, 32, 32)
    with torch.no_grad():
        assert model(images).shape == (2, 5)
        assert trunk(images).shape == (2, model.fc.in_features)  # type: ignore[union-attr]
    roles = architecture.roles(model)
    assert roles.chain
    assert roles.layers[-1] == roles.head == roles.fully_connected[-1] == "fc"
    assert len(roles.blocks) == {"swr_vgg16": 13}.get(name, 2)


@pytest.mark.parametrize("name", CHAINS)
def test_registration_order_is_forward_order(name: str) -> None:
    architecture = load_architecture(name).at(32)
    model = architecture.build(3, 4).eval()
    order: list[str] = []
    for layer in architecture.roles(model).weighted:
        model.get_submodule(layer).register_forward_hook(lambda *_, name=layer: order.append(name))
    with torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    assert tuple(order) == architecture.roles(model).weighted


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_architecture_names_its_norms(name: str) -> None:
    architecture = load_architecture(name)
    with torch.device("meta"):
        model = architecture.build(3, 4)
    roles = architecture.roles(model)
    norms = [n for n, m in model.named_modules() if isinstance(m, NORMS)]
    assert sorted(roles.norms) == sorted(norms)
    assert [n for n in roles.weighted if n not in norms] == list(roles.layers)


def test_initial_weights_are_pytorchs_defaults() -> None:
    with stream("x"):
        model = load_architecture("mlp").build(10)
    with stream("x"):
        theirs = [nn.Linear(3 * 784, 100), nn.Linear(100, 100), nn.Linear(100, 10)]
    ours = list(model.parameters())
    assert all(
        torch.equal(a, b)
        for a, b in zip(ours, (p for m in theirs for p in m.parameters()), strict=True)
    )


@pytest.mark.parametrize(("name", "least"), [("cnn", 10), ("cnn_bn", 10), ("swr_vgg16", 32)])
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
