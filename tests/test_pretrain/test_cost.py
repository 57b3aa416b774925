"""What a run costs: FLOPs by hand, events beside steps, totals across a kill, memory of a step."""

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.methods import generate_source
from support.pretrain import equal, record, tiny, train, trainer, weights
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from fsbench.backbones.networks import load_architecture
from fsbench.core.progress import SILENT
from fsbench.data import DataRoots, SourceDataset, Split
from fsbench.data.loading import list_source
from fsbench.data.source import decode_source, take_subset
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import load_recipe, recipe_names
from pretrain.training import cost
from pretrain.training.cost import (
    Accelerator,
    FlopCounter,
    TrainingCost,
    estimate_training,
    outline_source,
    project_training,
    trace_step,
)
from pretrain.training.factory import use_precision
from pretrain.training.loop import Trainer

CPU = torch.device("cpu")
PAPER = [name for name in recipe_names() if name.startswith("paper/")]
GIGABYTE = 10**9
LARGEST_STEP = 34 * GIGABYTE
"""Counted memory of the largest step of a recipe of `paper/`, as pretrain/README.md states it."""
WORKSPACES = 2 * GIGABYTE
"""Memory of convolutions and matrix products beside what is counted."""


@pytest.mark.parametrize("subset", ["null", '{"classes": 3, "images_per_class": 4}'])
def test_the_outline_of_a_source_has_its_counts_labels_and_shapes(
    tmp_path: Path, subset: str
) -> None:
    recipe = load_recipe("toy/normal").override([f"source_subset={subset}", "width=2"])
    listing = list_source(recipe.source, DataRoots(), tmp_path)
    source = decode_source(listing, tmp_path, recipe.decoded_size)
    source = take_subset(source, recipe.source_subset) if recipe.source_subset else source
    outline = outline_source(recipe, listing)
    assert outline.facts == source.facts
    for part, decoded in ((outline.train, source.train), (outline.val, source.val)):
        assert part.labels.tolist() == decoded.labels.tolist()
        assert part.images.shape == decoded.images.shape
    costs = [estimate_training(recipe, images, "cpu") for images in (source, outline)]
    assert len({(estimate.steps, estimate.disk) for estimate in costs}) == 1


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_counts_as_torch_s_own_counter_does(tmp_path: Path, precision: str) -> None:
    made = trainer(tiny("normal", f"precision={precision}"), tmp_path / "a")
    made._open_epoch(2)
    with FlopCounterMode(display=False) as theirs:
        made._task_loss(made.ctx.loader.batch(made.ctx.clock))[0].backward()
    facts = record(train(tmp_path / "b", "normal", f"precision={precision}"))
    assert facts["flops"] == 16 * theirs.get_total_flops() > 0


def test_events_are_counted_beside_the_steps(tmp_path: Path) -> None:
    names = ("normal", "nio", "lw")
    plain, nio, lw = (record(train(tmp_path / name, name)) for name in names)
    assert plain["event_flops"] == 0
    assert nio["event_flops"] > 16 * lw["event_flops"] > 0
    assert nio["flops"] - nio["event_flops"] == lw["flops"] - lw["event_flops"] == plain["flops"]


def test_every_round_measures_its_own_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 8 steps: the first steps of both are measured, the others multiply."""
    measured = iter((100, 7))

    class Fixed(FlopCounter):
        def __exit__(self, *error: object) -> None:
            super().__exit__(*error)
            self.flops = next(measured)

    monkeypatch.setattr(TrainingCost, "event", lambda self: torch.no_grad())
    monkeypatch.setattr(cost, "FlopCounter", Fixed)
    assert record(train(tmp_path, "l2"))["flops"] == 8 * 100 + 8 * 7


def test_counting_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = ("nio", "dropout=0.5", "precision=bf16")
    train(tmp_path / "counted", *fields)
    monkeypatch.setattr(cost, "FlopCounter", lambda: torch.enable_grad())
    monkeypatch.setattr(TrainingCost, "step", lambda self, first: torch.enable_grad())
    monkeypatch.setattr(TrainingCost, "event", lambda self: torch.enable_grad())
    train(tmp_path / "plain", *fields)
    assert equal(weights(tmp_path / "counted"), weights(tmp_path / "plain"))
    assert record(tmp_path / "plain")["flops"] == 0


def test_samples_are_images_that_were_trained_on(tmp_path: Path) -> None:
    """The first stage holds 4 images, half a batch: an epoch is a step on 4, then two on 8."""
    run = train(tmp_path, "normal", 'plan.stages=[{"stop": 0.1}, {}]', "plan.rounds=1")
    assert record(run)["samples"] == 4 * (4 + 16)


def test_totals_go_on_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter((5, 3))
    monkeypatch.setattr(cost, "peak_memory", lambda device: next(peaks))
    first, second = TrainingCost(CPU), TrainingCost(CPU)
    first.seconds = 100.0
    second.resume(first.state())
    facts = second.facts()
    assert facts["peak_memory_bytes"] == 5
    assert facts["seconds"] >= 100


def test_a_step_outside_the_first_is_not_slowed(tmp_path: Path) -> None:
    """No mode is active in the steps between."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as stack

    steps: list[tuple[int, int]] = []
    made = trainer(tiny("normal"), tmp_path)
    forward = made.ctx.model
    made.ctx.forward = lambda images: (
        steps.append((made.ctx.clock.step, len(stack()))) or forward(images)  # type: ignore[func-returns-value]
    )
    for _ in range(8):
        made._epoch(lambda images: None)
    assert [step for step, modes in steps if modes] == [0, 8]


def test_projected_seconds_by_hand() -> None:
    """A layer multiplies three times a step, but the first one, whose input needs no gradient."""
    recipe = load_recipe("toy/normal").override(["architecture=mlp", "input_size=28"])
    flops = 2 * (2 * 3 * 28 * 28 * 100 + 3 * 100 * 100 + 3 * 100 * 10)
    steps = 2 * 4 * (2000 // 32)
    by_rate, by_calls = Accelerator(rate=1e9, call=0.0), Accelerator(rate=1e30, call=1.0)
    seconds = project_training(recipe, 50_000, 10, by_rate)
    assert seconds == pytest.approx(steps * 32 * flops / 1e9)
    calls = trace_step("mlp", None, 28, 10)[1]
    assert 10 < calls < 60
    assert project_training(recipe, 50_000, 10, by_calls) == steps * calls
    whole = recipe.override(["plan.epoch_images=null"])
    assert project_training(whole, 3200, 10, by_calls) == 2 * 4 * 100 * calls
    fixed = recipe.override(["plan.round_steps=10"])
    assert project_training(fixed, 50_000, 10, by_calls) == 2 * 10 * calls


def count_step_bytes(recipe: Recipe) -> int:
    """Return bytes of weights, gradients, moments, and of what the backward pass of a step reads.

    Counted on the meta device, where nothing is computed; methods may need more.
    """
    saved: dict[int, Tensor] = {}

    def save(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor
        return tensor

    side, shape = recipe.input_size, (recipe.batch_size, 3, recipe.input_size, recipe.input_size)
    with torch.device("meta"), saved_tensors_hooks(save, lambda tensor: tensor):
        model = load_architecture(recipe.architecture).at(side).build(200, recipe.width)
        model(torch.zeros(shape)).sum()
    parameters = [parameter.untyped_storage() for parameter in model.parameters()]
    activations = saved.keys() - {storage._cdata for storage in parameters}
    copies = 3 if recipe.optimizer == "sgd" else 4
    stored = copies * sum(storage.nbytes() for storage in parameters)
    return stored + sum(saved[data].untyped_storage().nbytes() for data in activations)


def make_black_source(recipe: Recipe) -> SourceDataset:
    """Return a source that gives every stage of the recipe a whole batch."""
    least = min(stage.stop - stage.start for stage in recipe.plan.stages)
    n, side = round(2 * recipe.batch_size / least), recipe.decoded_size
    split = Split(np.zeros((n, 3, side, side), np.uint8), np.arange(n, dtype=np.int64) % 200)
    return replace(generate_source(8, 2), train=split, val=split.take(np.arange(2)))


def test_a_step_of_every_paper_takes_the_memory_that_is_stated() -> None:
    sizes: dict[tuple[Any, ...], int] = {}
    for recipe in map(load_recipe, PAPER):
        key = recipe.architecture, recipe.width, recipe.input_size, recipe.batch_size
        if key not in sizes:
            sizes[key] = count_step_bytes(recipe)
    assert round(max(sizes.values()) / GIGABYTE) == LARGEST_STEP / GIGABYTE, sizes


@pytest.mark.gpu
@pytest.mark.parametrize("name", PAPER)
def test_a_step_takes_little_more_memory_than_is_counted(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Searches before the first step are as short as can be."""
    recipe, gpu = load_recipe(name), torch.device("cuda", 0)
    searches = [m.name for m in recipe.methods if "iterations" in type(m).model_fields]
    recipe = recipe.replace({f"{method}.iterations": 0 for method in searches})
    gc.collect()  # the networks of earlier tests
    with use_precision(recipe, gpu):
        made = Trainer(recipe, make_black_source(recipe), tmp_path, gpu, SILENT)
        made._start()
        made._open_epoch(1)
        torch.cuda.reset_peak_memory_stats(gpu)
        made._step(1)
    peak = torch.cuda.max_memory_allocated(gpu)
    record_property("peak memory (GB)", peak / GIGABYTE)
    assert peak <= 1.5 * count_step_bytes(recipe) + WORKSPACES
