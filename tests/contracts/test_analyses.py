"""Every analysis follows the contract of protocols/analyses/__init__.py, on a tiny run."""

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import numpy as np
import pytest
import torch
from support.analyses import classifier
from support.pretrain import equal, source, tiny
from support.reporters import Recorder

from fsbench import backbones
from fsbench.core.schema import Finding
from fsbench.data import Split
from pretrain.training.loop import train_recipe
from protocols.analyses import ANALYSES, Need, NotApplicable
from protocols.analyses.inputs import AnalysisInput, AnalysisSettings

NAMES = ANALYSES.names()
SMALL = {"images": 16, "batch_size": 8, "smallest": 4, "draws": 2, "sigmas": (0.01, 0.1), "top": 2}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> AnalysisInput:
    """A chain of layers, which every analysis has something to look at in."""
    run = tmp_path_factory.mktemp("runs") / "run"
    train_recipe(
        tiny("normal", "architecture=mlp", "plan.epochs=1", "plan.rounds=1"), source(), run
    )
    ref = f"run:{run}"
    return AnalysisInput(backbones.load_backbone(ref), backbones.load_classifier(ref), source())


def settings(name: str, **more: object) -> AnalysisSettings:
    kind = ANALYSES.load(name).SETTINGS
    chosen = {k: v for k, v in {**SMALL, **more}.items() if k in kind.model_fields}
    return kind.model_validate(chosen)


def run_analysis(name: str, inputs: AnalysisInput, **more: object) -> Finding:
    return ANALYSES.load(name).run(inputs, settings(name, **more), Recorder())


every = pytest.mark.parametrize("name", NAMES)


@every
def test_it_is_deterministic_does_not_change_the_network_and_names_its_measures(
    name: str, inputs: AnalysisInput
) -> None:
    """Nor does it look at what it does not need; its file states source, needs and settings."""
    file = ANALYSES.load(name)
    assert len(file.SOURCE) > 10
    assert (sys.modules[f"protocols.analyses.{name}"].__doc__ or "").count("\n") > 3
    assert set(file.NEEDS) <= set(get_args(Need))
    assert ("images" in file.NEEDS) == ("images" in file.SETTINGS.model_fields)
    made = file.SETTINGS()
    assert type(made).model_validate_json(made.model_dump_json()) == made
    models = (inputs.backbone.module, inputs.network.model)
    before = [{n: t.clone() for n, t in model.state_dict().items()} for model in models]
    torch.manual_seed(1)
    finding = run_analysis(name, inputs)
    torch.manual_seed(2)
    classifier = inputs.classifier if "head" in file.NEEDS else None
    images = inputs.source if "images" in file.NEEDS else None
    bare = AnalysisInput(inputs.backbone, classifier, images)
    assert run_analysis(name, bare) == finding
    for model, state in zip(models, before, strict=True):
        assert equal(model.state_dict(), state)
        hooks = [hook for m in model.modules() for hook in (m._forward_hooks, m._forward_pre_hooks)]
        assert not any([*hooks, *(module.training for module in model.modules())])
        assert all(parameter.grad is None for parameter in model.parameters())
    names = [measure.name for measure in finding.measures]
    assert len(set(names)) == len(names)
    assert all(0 <= measure.value <= 1 for measure in finding.measures if measure.share)
    assert Finding.model_validate_json(finding.model_dump_json()) == finding
    assert len({view.title for view in finding.views}) == len(finding.views) > 0


@contextmanager
def watched_images(inputs: AnalysisInput) -> Iterator[list[torch.Tensor]]:
    """The batches of images that the networks are given in the block."""
    batches: list[torch.Tensor] = []
    models = {inputs.backbone.module, inputs.network.model}
    handles = [m.register_forward_pre_hook(lambda _, args: batches.append(args[0])) for m in models]
    yield batches
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("name", [n for n in NAMES if "images" in ANALYSES.load(n).NEEDS])
def test_it_uses_as_many_images_as_it_estimates(name: str, inputs: AnalysisInput) -> None:
    report = Recorder()
    with watched_images(inputs) as batches:
        ANALYSES.load(name).run(inputs, settings(name), report)
    _, totals, _, done = zip(*report.tasks, strict=True)
    assert sum(done) == sum(totals) > 0, "progress reaches its end"
    assert not report.lines
    estimate, images = settings(name).count_passes(inputs), sum(map(len, batches))
    if name == "hessian":
        assert estimate >= 10 * images, "a product costs several passes"
    else:
        probe = 1 if name == "knn_depth" else 0  # one image tells how large its features are
        assert images == estimate + probe


PARTED = [n for n in NAMES if "part" in ANALYSES.load(n).SETTINGS.model_fields]


@pytest.mark.parametrize("name", PARTED)
def test_the_part_of_the_source_is_a_setting(name: str, inputs: AnalysisInput) -> None:
    chosen = settings(name, part="val", images=None)
    assert chosen.count_passes(inputs) == 12
    finding = ANALYSES.load(name).run(inputs, chosen, Recorder())
    assert {m.name: m.value for m in finding.measures}["images"] == 12


SEEDED = [n for n in NAMES if "seed" in ANALYSES.load(n).SETTINGS.model_fields]


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_chooses_other_images(name: str, inputs: AnalysisInput) -> None:
    sums = []
    for seed in (0, 1):
        with watched_images(inputs) as batches:
            run_analysis(name, inputs, seed=seed)
        sums.append({float(x) for batch in batches for x in batch.double().sum(dim=(1, 2, 3))})
    assert sums[0] != sums[1]


@pytest.mark.parametrize("broken", ["residual", "no chain", "a norm between"])
def test_only_plain_chains_are_balanced(broken: str) -> None:
    backbone = backbones.load_backbone("fsbench/toy_resnet", random_init=0)
    network = classifier("mlp")
    assert run_analysis("balancedness", AnalysisInput(backbone, network))
    first, *rest = network.roles.fully_connected
    changes = {"chain": False} if broken == "no chain" else {"weighted": (first, "norm", *rest)}
    other = dataclasses.replace(network, roles=dataclasses.replace(network.roles, **changes))
    other = classifier("toy_resnet") if broken == "residual" else other
    with pytest.raises(NotApplicable, match="does not end in a plain chain"):
        run_analysis("balancedness", AnalysisInput(backbone, other))


def test_sampled_images_are_random_sorted_and_equal_for_all_networks() -> None:
    split = Split(np.arange(40, dtype=np.uint8)[:, None, None, None], np.arange(40))
    backbone = backbones.load_backbone("fsbench/toy_resnet", random_init=0)
    inputs = AnalysisInput(backbone, None, dataclasses.replace(source(), train=split))
    some = inputs.sample("train", 10, 0)
    assert sorted(set(some.labels)) == list(some.labels) != list(range(10))
    assert len(some) == 10
    assert np.array_equal(some.images[:, 0, 0, 0], some.labels)
    assert np.array_equal(inputs.sample("train", 10, 0).labels, some.labels)
    assert not np.array_equal(inputs.sample("train", 10, 1).labels, some.labels)
    assert inputs.sample("train", None, 0) is split
