"""Dropout in front of the head, precision during a run, and what a lack of memory says."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.pretrain import equal, record, source, tiny, train, weights
from torch import Tensor

from fsbench.backbones import load_backbone, load_classifier
from fsbench.core.errors import FsbenchError
from fsbench.data import Split
from pretrain.recipes import registry
from pretrain.training.cost import estimate_training
from pretrain.training.factory import build_context

STUDY = ("scnn", "vgg16", "mobilenet", "resnet50")
SIDES = {"scnn": 8, "vgg16": 32, "mobilenet": 32, "resnet50": 32}


@pytest.mark.parametrize("name", STUDY)
def test_it_acts_in_front_of_the_head_of_the_study_s_networks(name: str) -> None:
    """What reaches the head has zeros in training, and the names of the weights are as ever."""
    side = SIDES[name]
    fields = [f"architecture={name}", f"input_size={side}", "width=2", "batch_size=8"]
    recipe = registry.load_recipe("toy/normal").override([*fields, "dropout=0.25"])
    plain = recipe.override(["dropout=0"])
    images = Split(np.zeros((40, 3, side, side), np.uint8), source().train.labels)
    data = replace(source(), train=images)
    made, without = (
        build_context(r, data, torch.device("cpu"), lambda rewrite: None) for r in (recipe, plain)
    )
    assert equal(made.model.state_dict(), without.model.state_dict())
    assert [n for n, _ in made.model.named_modules()] == [
        n for n, _ in without.model.named_modules()
    ]
    features: list[Tensor] = []
    head = made.model.get_submodule(made.roles.head)
    head.register_forward_pre_hook(lambda module, inputs: features.append(inputs[0]))
    batch = torch.randn(16, 3, side, side, generator=torch.Generator().manual_seed(1))
    with torch.random.fork_rng():
        made.model.train()(batch)
        made.model.eval()(batch)
        assert torch.equal(made.model(batch), without.model.eval()(batch))
    dropped, whole = features[:2]
    assert float((dropped[whole != 0] == 0).float().mean()) == pytest.approx(0.25, abs=0.15)
    positions = dropped != 0
    assert torch.allclose(dropped[positions], whole[positions] / 0.75, rtol=1e-5)


def test_it_changes_training_and_the_run_exports_a_plain_network(tmp_path: Path) -> None:
    runs = [train(tmp_path / rate, "normal", f"dropout={rate}") for rate in ("0", "0.25")]
    without, dropped = map(weights, runs)
    assert dropped.keys() == without.keys()
    assert not equal(dropped, without)
    run = f"run:{runs[1]}"
    images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    assert torch.equal(load_backbone(run).features(images), load_backbone(run).features(images))
    assert not load_classifier(run).model.get_submodule("fc")._forward_pre_hooks


def test_deterministic_kernels_have_the_workspace_that_torch_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the estimate, whose first product is the only one at which torch looks for it."""
    for enabled, workspace in ((False, None), (True, ":4096:8")):
        fields = ("normal", *SHORT, f"deterministic={enabled}".lower())
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
        estimate_training(tiny(*fields), source(), "cpu")
        assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == workspace
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
        train(tmp_path / str(enabled), *fields)
        assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == workspace
    assert not torch.are_deterministic_algorithms_enabled()


BACKENDS: Any = torch.backends
SHORT = ("plan.rounds=1", "plan.epochs=1")


def read_precisions() -> list[str]:
    """How a GPU would multiply and convolve, and how this CPU multiplies."""
    operations = BACKENDS.cuda.matmul, BACKENDS.cudnn.conv, BACKENDS.mkldnn.matmul
    return [operation.fp32_precision for operation in operations]


@pytest.mark.parametrize(
    ("precision", "on_gpu"), [("fp32", "ieee"), ("tf32", "tf32"), ("bf16", "ieee")]
)
def test_a_run_multiplies_as_its_recipe_says_and_restores_the_host_s_choice(
    precision: str, on_gpu: str, tmp_path: Path
) -> None:
    before, during, fields = read_precisions(), [], ("normal", f"precision={precision}", *SHORT)
    run = train(tmp_path / "run", *fields, watch=lambda ctx: during.append(read_precisions()))
    assert during == [[on_gpu, on_gpu, "ieee"]] * 2
    assert record(run)["precision"] == "ieee", "on this CPU"

    def exhaust(ctx: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(FsbenchError, match="8 images of 8 px, does not fit") as caught:
        train(tmp_path / "stopped", *fields, watch=exhaust)
    assert ("precision=bf16" in caught.value.fix) == (precision != "bf16")
    assert "torchrun --nproc-per-node 2" in caught.value.fix
    assert "batch_size=4" in caught.value.fix
    assert read_precisions() == before
