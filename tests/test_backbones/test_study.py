"""The networks of the reinitialization study: layer lists, K, layer norm, He's initial weights."""

import pytest
import torch
from torch import nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.core.seeding import stream

STUDY = {"scnn": 4, "vgg16": 13, "mobilenet": 7, "resnet50": 16}
networks = pytest.mark.parametrize("name", STUDY)


def built(name: str, side: int = 64, width: int | None = None) -> tuple[nn.Module, RoleMap]:
    """On the meta device at full width, else with weights."""
    architecture = load_architecture(name).at(side)
    with torch.device("meta" if width is None else "cpu"), stream("study", name):
        model = architecture.build(7, width)
    return model, architecture.roles(model)


def kernels(name: str, side: int = 64) -> list[tuple[int, ...]]:
    model, roles = built(name, side)
    return [tuple(model.get_parameter(f"{n}.weight").shape) for n in roles.layers]


def test_the_layers_of_scnn() -> None:
    convolutions = [(32, 3, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3)]
    assert kernels("scnn") == [*convolutions, (512, 64 * 16 * 16), (7, 512)]
    assert kernels("scnn", 224)[4] == (512, 64 * 56 * 56)


def test_the_layers_of_vgg16() -> None:
    layers = kernels("vgg16", 224)
    outs = [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    assert [shape[0] for shape in layers] == [*outs, 4096, 4096, 7]
    assert [shape[1] for shape in layers] == [3, *outs[:-1], 512 * 7 * 7, 4096, 4096]


def test_the_layers_of_mobilenet() -> None:
    """Howard et al., Table 1 without five units of 512 channels."""
    layers = kernels("mobilenet")
    assert layers[0] == (32, 3, 3, 3)
    assert layers[1:-1:2] == [(c, 1, 3, 3) for c in (32, 64, 128, 128, 256, 256, 512, 1024)]
    assert [shape[0] for shape in layers[2:-1:2]] == [64, 128, 128, 256, 256, 512, 1024, 1024]
    assert layers[-1] == (7, 1024)


def test_the_layers_of_resnet50_are_those_of_seals() -> None:
    with torch.device("meta"):
        seal = load_architecture("seal_resnet50").build(7)
    ours, _ = built("resnet50")
    trained = {n: p.shape for n, p in ours.named_parameters()}
    assert trained == {n: p.shape for n, p in seal.named_parameters()}


@pytest.mark.parametrize(("name", "millions"), [("mobilenet", 2.9), ("resnet50", 25.6)])
def test_parameters_with_a_head_of_1000_classes_are_as_published(
    name: str, millions: float
) -> None:
    """Howard et al. 2017, Table 5; ResNet-50 has 25.557 million."""
    with torch.device("meta"):
        model = load_architecture(name).build(1000)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)


@networks
def test_the_blocks_are_the_studys_and_their_last_module_gives_the_output(name: str) -> None:
    model, roles = built(name, 32, 4)
    model.eval()
    assert len(roles.blocks) == STUDY[name]
    widths: list[int] = []
    taken: list[int] = []
    for block, after in zip(roles.blocks, roles.blocks[1:], strict=False):
        last, first = model.get_submodule(block[-1]), model.get_submodule(after[0])
        last.register_forward_hook(lambda m, i, o: widths.append(o.data_ptr()))
        first.register_forward_pre_hook(lambda m, i: taken.append(i[0].data_ptr()))
    pooled = sum(isinstance(m, nn.MaxPool2d) for m in model.modules()) - (name == "resnet50")
    with torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    between = max(pooled - 1, 0)  # the last pooling comes after the last block
    assert len(widths) == len(taken) == STUDY[name] - 1
    assert sum(a != b for a, b in zip(widths, taken, strict=True)) == between


@networks
def test_every_layer_but_the_head_has_a_layer_norm(name: str) -> None:
    model, roles = built(name)
    norms = [m for m in model.modules() if isinstance(m, nn.GroupNorm)]
    assert len(norms) == len(roles.layers) - 1
    assert {m.num_groups for m in norms} == {1}
    assert not any(isinstance(m, nn.BatchNorm2d) for m in model.modules())
    assert roles.norms
    full = {"scnn": ("fc1", "fc"), "vgg16": ("fc6", "fc7", "fc")}.get(name, ("fc",))
    assert roles.fully_connected == full


@networks
def test_initial_weights_are_hes_and_biases_zero(name: str) -> None:
    model, roles = built(name, 32, 16)
    for layer in roles.layers:
        module = model.get_submodule(layer)
        weight, bias = module.weight, module.bias
        assert isinstance(weight, nn.Parameter)
        fan_in = weight[0].numel()
        tolerance = 6 / weight.numel() ** 0.5
        assert weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=tolerance)
        assert bias is None or not bias.any()  # type: ignore[operator]


def test_the_mlp_resets_its_last_two_layers() -> None:
    assert built("mlp", 32, 4)[1].fully_connected == ("layer2.0", "fc")
