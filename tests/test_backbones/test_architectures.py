"""Networks of the project against the papers' figures: layers, blocks, first weights, roles."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from support.cases import read_cases
from torch import nn
from torch.nn import functional

from fsbench.backbones.architectures import NORMS, RoleMap
from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from fsbench.core.seeding import stream

CASES = read_cases("backbones")


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


def test_seal_resnet50_has_16_blocks_and_the_stem_is_in_the_first(seal: nn.Module) -> None:
    roles = load_architecture("seal_resnet50").roles(seal)
    assert len(roles.blocks) == 16
    assert roles.blocks[0] == ("conv1", "bn1", "layer1.0")
    assert roles.stages == ("layer1", "layer2", "layer3", "layer4")
    convolutions = [f"layer1.0.{part}" for part in ("conv1", "conv2", "conv3", "downsample.0")]
    assert roles.layers[:5] == ("conv1", *convolutions)
    assert len(roles.layers) == 53 + 1


@pytest.mark.parametrize(("name", "classes", "millions", "features", "blocks"), CASES["sizes"])
def test_networks_have_the_published_sizes(
    name: str, classes: int, millions: float, features: int, blocks: int
) -> None:
    """Howard et al. 2017, Table 5; He et al. 2016, Table 6, whose shortcuts have no weights.

    Zagoruyko and Komodakis 2016, Table 3; Huang et al. 2017, Table 2; Simonyan and Zisserman 2015,
    Table 2.
    """
    architecture = load_architecture(name)
    with torch.device("meta"):
        model = architecture.build(classes)
        side = 64 if name == "vgg16_no_norm" else 32
        assert model(torch.zeros(2, 3, side, side)).shape == (2, classes)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)
    roles = architecture.roles(model)
    assert (len(roles.blocks), model.get_submodule(roles.head).in_features) == (blocks, features)


def test_a_shortcut_without_weights_thins_the_map_between_channels_of_zeros() -> None:
    """As `option A` in resnet.py of github.com/akamaster/pytorch_resnet_cifar10."""
    unit = load_architecture("cifar/resnet20").build(10, 2).get_submodule("layer2.0")
    images = torch.rand(1, 2, 4, 4)
    padded = functional.pad(images[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1))
    assert torch.equal(unit.get_submodule("downsample")(images), padded)
    for norm in (unit.bn1, unit.bn2):
        nn.init.zeros_(norm.weight)
    assert torch.equal(unit.eval()(images), padded)  # the branch gives zeros


@pytest.mark.parametrize("name", ["resnet110", "densenet100", "wrn28_10"])
def test_networks_without_norm_shift_where_the_others_normalise(name: str) -> None:
    """NIO, appendix B.2: with weights 1, and statistics 0 and 1, a batch norm is a shift."""
    widths = {"resnet110": 2, "densenet100": 2, "wrn28_10": 10}
    plain, normed = (
        load_architecture(f"cifar/{name}{end}").build(5, widths[name]).eval()
        for end in ("_no_norm", "")
    )
    shifts = {n: p for n, p in normed.state_dict().items() if n in plain.state_dict()}
    assert set(plain.state_dict()) == {*shifts}
    with torch.no_grad():
        for weight in (p for p in normed.parameters() if p.ndim > 1):
            weight *= 0.3  # 54 residual branches without norm would overflow
        for module in (m for m in normed.modules() if isinstance(m, nn.BatchNorm2d)):
            nn.init.normal_(module.bias)
            module.eps = 0.0
        plain.load_state_dict(shifts)
        images = torch.rand(2, 3, 32, 32)
        torch.testing.assert_close(plain(images), normed(images))


def test_a_wide_unit_computes_what_its_authors_wrote() -> None:
    """Zagoruyko and Komodakis, pytorch/resnet.py: the shortcut sees the activated input."""
    unit = load_architecture("cifar/wrn28_10").build(10, 10).eval().get_submodule("layer2.0")
    x = torch.rand(2, 10, 8, 8) - 0.5
    with torch.no_grad():
        o1 = functional.relu(unit.bn1(x))
        o2 = functional.relu(unit.bn2(functional.conv2d(o1, unit.conv1.weight, None, 2, 1)))
        z = functional.conv2d(o2, unit.conv2.weight, None, 1, 1)
        expected = z + functional.conv2d(o1, unit.downsample.weight, None, 2)
        torch.testing.assert_close(unit(x), expected)


def test_dropout_is_in_the_units_and_in_front_of_the_hidden_layers() -> None:
    for name, rates in (("wrn28_10_dropout", [0.3] * 12), ("vgg19", [0.5] * 2)):
        modules = load_architecture(f"cifar/{name}").build(10, 10).modules()
        assert [m.p for m in modules if isinstance(m, nn.Dropout)] == rates, name


STUDY = {"scnn": 4, "vgg16": 13, "mobilenet": 7, "resnet50": 16}
networks = pytest.mark.parametrize("name", STUDY)


def built(name: str, side: int = 64, width: int | None = None) -> tuple[nn.Module, RoleMap]:
    """On the meta device at full width, else with weights."""
    architecture = load_architecture(name).at(side)
    with torch.device("meta" if width is None else "cpu"), stream("study", name):
        model = architecture.build(7, width)
    return model, architecture.roles(model)


def vgg16(values: int) -> list[tuple[int, ...]]:
    """Configuration D with two dense layers, the first of which gets so many values."""
    outs = [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    convolutions = [(n_out, n_in, 3, 3) for n_in, n_out in pairwise([3, *outs])]
    return [*convolutions, (4096, values), (4096, 4096), (7, 4096)]


def mobilenet() -> list[tuple[int, ...]]:
    """Howard et al., Table 1 without five units of 512 channels."""
    channels = [32, 64, 128, 128, 256, 256, 512, 1024, 1024]
    units = [((n_in, 1, 3, 3), (n_out, n_in, 1, 1)) for n_in, n_out in pairwise(channels)]
    return [(32, 3, 3, 3), *(shape for unit in units for shape in unit), (7, 1024)]


LAYERS: dict[tuple[str, int], list[tuple[int, ...]]] = {
    ("mlp", 28): [(100, 3 * 784), (100, 100), (7, 100)],
    ("cnn", 32): [(16, 3, 5, 5), (16, 16, 5, 5), (100, 576), (7, 100)],
    ("scnn", 64): [(32, 3, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3),
                   (512, 64 * 16 * 16), (7, 512)],
    ("mobilenet", 64): mobilenet(),
    ("swr_vgg16", 64): vgg16(512 * 2 * 2),
    ("vgg16", 224): vgg16(512 * 7 * 7),
}  # fmt: skip


@pytest.mark.parametrize(("name", "side"), LAYERS)
def test_the_layers_of_plain_networks(name: str, side: int) -> None:
    model, roles = built(name, side)
    shapes = [tuple(model.get_parameter(f"{n}.weight").shape) for n in roles.layers]
    assert shapes == LAYERS[name, side]


@pytest.mark.parametrize("name", ["resnet50", "wc_resnet50"])
def test_other_resnets_have_the_layers_of_seals(name: str) -> None:
    networks = [dict(built(other)[0].named_parameters()) for other in (name, "seal_resnet50")]
    shapes = [{n: p.shape for n, p in network.items()} for network in networks]
    assert shapes[0] == shapes[1]


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
    groups = [getattr(model.get_submodule(norm), "num_groups", None) for norm in roles.norms]
    assert groups == [1] * (len(roles.layers) - 1)
    full = {"scnn": ("fc1", "fc"), "vgg16": ("fc6", "fc7", "fc")}.get(name, ("fc",))
    assert roles.fully_connected == full


@pytest.mark.parametrize(
    ("name", "is_normal"), [*((n, True) for n in (*STUDY, "seal_resnet50")), ("wc_resnet50", False)]
)
def test_initial_weights_have_the_variance_of_he(name: str, is_normal: bool) -> None:
    """With fan-in; the study's biases are zero."""
    model, roles = built(name, 32, 16)
    for layer in roles.layers:
        module: Any = model.get_submodule(layer)
        weight, bias = module.weight, module.bias
        deviation = (2 / weight[0].numel()) ** 0.5
        assert weight.std().item() == pytest.approx(deviation, rel=6 / weight.numel() ** 0.5)
        assert (weight.abs().max() > 3**0.5 * deviation) == is_normal  # where a uniform law ends
        assert bias is None or not bias.any() or name not in STUDY


def test_vgg_of_cifar_starts_as_its_paper_says() -> None:
    """Weight Compander, IV-A: kernels by fan-out and normal, linear layers kaiming-uniform."""
    model, roles = built("cifar/vgg16", 32, 64)
    for layer in roles.layers[1:]:
        module: Any = model.get_submodule(layer)
        weight, is_kernel = module.weight, module.weight.ndim == 4
        fan = 9 * len(weight) if is_kernel else weight.shape[1]
        deviation = (2 / fan) ** 0.5
        assert weight.std().item() == pytest.approx(deviation, rel=0.02), layer
        assert (weight.abs().max() > 3**0.5 * deviation) == is_kernel


NEW = ("cifar/densenet100", "cifar/wrn28_10", "cifar/vgg19", "cifar/resnet110_no_norm")


@pytest.mark.parametrize("name", [*sorted(PRESETS), *NEW])
def test_every_architecture_names_its_norms(name: str) -> None:
    model, roles = built(name, load_architecture(name).input_size)
    norms = {n for n, m in model.named_modules() if isinstance(m, NORMS)}
    assert {*roles.norms} == norms
    assert [n for n in roles.weighted if n not in norms] == list(roles.layers)
    assert name != "mlp" or roles.fully_connected == ("layer2.0", "fc")


LEAST = {"cnn": 10, "cnn_bn": 10, "swr_vgg16": 32, "scnn": 4, "vgg16": 32}


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_images_that_pooling_would_consume_are_refused(name: str, least: int) -> None:
    architecture = load_architecture(name)
    smallest = architecture.at(least).build(3, 2).eval()
    assert smallest(torch.zeros(1, 3, least, least)).shape == (1, 3)
    with pytest.raises(UsageError, match=f"at least {least} px, not {least - 1}"):
        architecture.at(least - 1).build(3, 2)
