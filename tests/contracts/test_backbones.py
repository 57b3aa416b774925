"""What every architecture and every source owes; a new file is covered without a change here."""

from itertools import permutations

import pytest
import torch
from torch import nn

from fsbench import backbones
from fsbench.backbones.architectures import RoleMap, below
from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.base import weights_hash
from fsbench.backbones.loading import SOURCES, parse_reference
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import FsbenchError
from fsbench.core.seeding import stream

architectures = pytest.mark.parametrize("name", sorted(PRESETS))

WIDTH = 8


def build(name: str, classes: int = 3, width: int = WIDTH) -> nn.Module:
    with stream("contract", name):
        return load_architecture(name).build(classes, width)


@architectures
def test_features_without_a_head_logits_with_one_and_a_width(name: str) -> None:
    architecture = load_architecture(name)
    assert architecture.name == name
    assert architecture.summary
    assert architecture.features
    size = architecture.input_size
    trunk, whole = build(name, 0).eval(), build(name, 5).eval()
    images = torch.linspace(-1, 1, 2 * 3 * size * size).view(2, 3, size, size)
    with torch.no_grad():
        features, logits = trunk(images), whole(images)
    assert (features.ndim, logits.shape) == (2, (2, 5))
    assert features.std() > 0
    head, state = architecture.roles(whole).head, whole.state_dict()
    body = {n: t for n, t in state.items() if not below(n, (head,))}
    assert trunk.state_dict().keys() == body.keys()
    assert weights_hash(state, (head,)) == weights_hash(body)
    sizes = [sum(p.numel() for p in build(name, 0, width).parameters()) for width in (4, 8)]
    assert sizes[1] > 2 * sizes[0]


@architectures
def test_roles_cover_the_network_once(name: str) -> None:
    model = build(name)
    roles = load_architecture(name).roles(model)
    modules = dict(model.named_modules())
    kernels = sorted(n for n, m in modules.items() if isinstance(m, nn.Conv2d | nn.Linear))
    assert sorted(roles.layers) == kernels
    assert roles.layers[-1] == roles.head
    assert roles.head in roles.fully_connected
    assert all(isinstance(modules[n], nn.Linear) for n in roles.fully_connected)
    prefixes = [prefix for block in roles.blocks for prefix in block]
    assert {*roles.stages, *prefixes} <= modules.keys()
    for layer in {*kernels} - {*roles.fully_connected}:
        assert sum(below(layer, block) for block in roles.blocks) == 1, layer
    assert not any(below(roles.head, block) for block in roles.blocks)
    for stage in roles.stages:
        early, late = RoleMap.from_threshold(model, stage)
        assert early + late == tuple(n for n, _ in model.named_parameters())
        assert below(late[0], (stage,))
        assert not any(below(n, (stage,)) for n in early)


@architectures
def test_layers_stand_in_forward_order(name: str) -> None:
    """Between units: the order in which layers run; inside one, downsample comes last."""
    model = build(name).eval()
    roles = load_architecture(name).roles(model)
    ran: list[str] = []
    for layer in roles.layers:
        module = model.get_submodule(layer)
        module.register_forward_hook(lambda _m, _i, _o, layer=layer: ran.append(layer))
    size = load_architecture(name).input_size
    with torch.no_grad():
        model(torch.zeros(1, 3, size, size))
    main = [layer for layer in ran if "downsample" not in layer]
    assert [layer for layer in roles.layers if "downsample" not in layer] == main


@architectures
def test_a_seed_decides_all_weights_and_touches_nothing_else(name: str) -> None:
    before, ref = torch.get_rng_state(), f"fsbench/{name}@{WIDTH}"
    facts = backbones.load_backbone(ref, random_init=3).facts
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    assert backbones.load_backbone(ref, random_init=3).facts == facts
    other = backbones.load_backbone(ref, random_init=4).facts
    assert other.weights_hash != facts.weights_hash
    assert (facts.source, facts.architecture, facts.random_init) == ("fsbench", ref, 3)


@pytest.mark.parametrize("name", SOURCES.names())
@pytest.mark.parametrize("seed", [None, 0])
def test_a_source_says_how_it_is_written_and_what_is_nonsense(name: str, seed: int | None) -> None:
    """Exit code 2 or 4 with a way out, never a traceback."""
    source = SOURCES.load(name)
    assert source.FORM.startswith(source.PREFIX)
    assert (source.__doc__ or "").split("\n")[0].strip()
    if source.PREFIX:
        assert parse_reference(f"{source.PREFIX}some-name") == (name, "some-name")
    with pytest.raises(FsbenchError) as caught:
        backbones.load_backbone(f"{source.PREFIX}no-such-thing-anywhere", random_init=seed)
    assert caught.value.exit_code in {2, 4}
    assert caught.value.fix
    assert "no-such-thing" in caught.value.message


def test_prefixes_are_no_beginnings_of_each_other() -> None:
    prefixes = [source.PREFIX for _, source in SOURCES.items() if source.PREFIX]
    assert [(a, b) for a, b in permutations(prefixes, 2) if a.startswith(b)] == []
