"""Cost of a run, measured (TrainingCost) or estimated before it starts (estimate_training).

FLOPs are those of matrix products and convolutions by the formulas of torch.utils.flop_counter (a
multiply-add is two). They include the training steps, forward and backward with everything that
methods add, as the first step of every round times the steps of the round, and the work of hooks
between steps (NIO's search, layerwise statistics). Validation and elementwise operations are not
counted. With several processes the FLOPs of steps are summed; the work of hooks, which every
process repeats, counts once. Seconds and memory are those of the process that writes.
"""

import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fsbench.backbones.networks import load_architecture
from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.process import peak_memory, reset_peak_memory
from fsbench.core.progress import WorkEstimate
from fsbench.data.source import SourceDataset, SourceListing, Split, take_subset
from pretrain.recipes.recipe import Recipe, fit_round_steps
from pretrain.training.context import Context
from pretrain.training.episodes import meta_learner_of
from pretrain.training.factory import build_context, deterministic_kernels, use_precision
from pretrain.training.streaming import describe_memory
from pretrain.training.validation import autocast

TOTALS = ("samples", "flops", "event_flops", "step_flops", "seconds", "peak_memory_bytes")


class FlopCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counter of the floating-point operations of a block, which it does not change.

    calls: of operators. torch's FlopCounterMode also tracks modules by tensor hooks, which costs
    memory.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls += 1
        formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=out)
        return out


class TrainingCost:
    """Totals of a run so far; peak memory: of the GPU, or of the process on a CPU."""

    def __init__(self, device: torch.device, ranks: Ranks = ALONE) -> None:
        self.device, self.ranks = device, ranks
        self.samples = self.flops = self.event_flops = self.step_flops = 0
        self.seconds, self.peak_memory_bytes = 0.0, 0
        self._last = time.monotonic()
        reset_peak_memory(str(device))

    @contextmanager
    def event(self) -> Iterator[None]:
        """Count the operations of hooks between steps."""
        with FlopCounter() as counter:
            yield
        self.event_flops += counter.flops

    @contextmanager
    def step(self, first: bool) -> Iterator[None]:
        """Count a training step; only the first one of a round is measured."""
        if first:
            with FlopCounter() as counter:
                yield
            self.step_flops = sum(self.ranks.collect(counter.flops, self.device))
        else:
            yield
        self.flops += self.step_flops

    @property
    def unsaved(self) -> float:
        """Seconds since the last checkpoint."""
        return time.monotonic() - self._last

    def state(self) -> dict[str, float]:
        """Return the totals up to now, for a checkpoint."""
        now = time.monotonic()
        self.seconds, self._last = self.seconds + now - self._last, now
        self.peak_memory_bytes = max(self.peak_memory_bytes, peak_memory(str(self.device)))
        return {name: getattr(self, name) for name in TOTALS}

    def resume(self, state: dict[str, float]) -> None:
        """Continue from the totals of a checkpoint."""
        for name in TOTALS:
            setattr(self, name, state[name])

    def facts(self) -> dict[str, float]:
        """Return the totals for the run's record; flops includes event_flops, those of hooks."""
        totals = self.state()
        del totals["step_flops"]
        totals["flops"] += totals["event_flops"]
        return totals | {"seconds": round(self.seconds, 3)}


TIMED_STEPS = 4
FORWARD_SHARE = 1 / 3
"""Cost of a forward pass relative to a training step on the same image."""


def outline_source(recipe: Recipe, listing: SourceListing) -> SourceDataset:
    """Return what an estimate needs of a source, without decoding it: all images are one noise."""
    side = recipe.decoded_size
    noise = seeding.uniforms((3, side, side), "outline", below=256).astype(np.uint8)
    splits = {}
    for name, part in listing.parts.items():
        images = as_strided(noise, (len(part), *noise.shape), (0, *noise.strides))
        splits[name] = Split(images, np.array([image.label for image in part], dtype=np.int64))
    facts = listing.facts
    source = SourceDataset(facts.name, facts, splits["train"], splits["val"], fingerprint="")
    return take_subset(source, recipe.source_subset) if recipe.source_subset else source


def estimate_training(recipe: Recipe, source: SourceDataset, device: str) -> WorkEstimate:
    """Return the cost of a whole run, from a few timed steps; hooks of methods may add to it.

    Raises FsbenchError if a step does not fit into the memory of the device.
    """
    recipe, target = fit_round_steps(recipe, source), torch.device(device)
    with use_precision(recipe, target), deterministic_kernels(recipe.deterministic):
        ctx = build_context(recipe, source, target, lambda rewrite: None)
        for method in recipe.methods:
            if "training_step" in method.hooks:
                ctx.call_method(method, "setup")
        ctx.rebuild_optimizer("all")
        with seeding.stream(*recipe.stream("estimate")):  # of dropout
            seconds = measure_step(ctx)
    images = float(len(source.val))
    if recipe.loader == "episodes":  # adapting to a task costs as much as training on it
        learner = meta_learner_of(recipe)
        images = learner.val_episodes * learner.task_images / FORWARD_SHARE
    steps, epochs = ctx.loader.total_steps, recipe.plan.total_epochs
    validated = images * epochs / recipe.validate_every
    validation = validated * seconds / recipe.batch_size * FORWARD_SHARE
    size = sum(t.numel() * t.element_size() for t in ctx.model.state_dict().values())
    # weights, momentum and the export; two checkpoints exist while one replaces the other
    buffers = 1 if recipe.optimizer == "sgd" else 2
    disk = size * (2 * (1 + buffers) + 1)
    memory = describe_memory(source, target)
    return WorkEstimate(memory, seconds=steps * seconds + validation, steps=steps, disk=disk)


def measure_step(ctx: Context) -> float:
    """Return the seconds of one training step: the fastest of a few; the first warms up."""
    return min(timeit.repeat(lambda: _take_step(ctx), number=1, repeat=TIMED_STEPS))


def _take_step(ctx: Context) -> None:
    """Take one training step; its results are discarded."""
    batch = ctx.loader.batch(ctx.clock)
    with autocast(ctx.recipe, ctx.device):
        losses = ctx.call("training_step", batch)
        if not losses:
            losses = [functional.cross_entropy(ctx.model(batch.images), batch.labels)]
    torch.autograd.backward(losses[0])
    ctx.optimizer.step()
    losses[0].item()  # waits for the device


class Accelerator(NamedTuple):
    """A device by two assumptions: operations per second, and seconds until an operator starts."""

    rate: float
    call: float


H100 = Accelerator(rate=40e12, call=20e-6)
"""Assumed, not measured: 1/12 of the TF32 peak, .6 of the FP32 peak; pace of Python and CUDA."""


@cache
def trace_step(architecture: str, width: int | None, side: int, classes: int) -> tuple[float, int]:
    """Return operations per image, and calls of operators, of a step of a plain network.

    side: of the images (px). The network is on the meta device, so nothing is computed.
    """
    sample = 2  # operations grow with the images of a step, calls do not
    with torch.device("meta"):
        model = load_architecture(architecture).at(side).build(classes, width)
        images = torch.zeros(sample, 3, side, side)
        with FlopCounter() as counter:
            torch.autograd.backward(model(images).sum())
    return counter.flops / sample, counter.calls


def project_training(recipe: Recipe, images: int, classes: int, device: Accelerator) -> float:
    """Return the seconds that a source of so many training images and classes would take.

    A step takes the larger of its operations over the rate and its calls times their time.
    Validation, hooks of methods and early ends of rounds are left out.
    """
    plan, batch = recipe.plan, recipe.batch_size
    flops, calls = trace_step(recipe.architecture, recipe.width, recipe.input_size, classes)
    steps = plan.round_steps or plan.epochs * ((plan.epoch_images or images) // batch)
    return plan.total_rounds * steps * max(flops * batch / device.rate, calls * device.call)
