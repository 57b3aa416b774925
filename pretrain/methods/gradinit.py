"""GradInit: before training, learn tensor norms with which one step lowers the loss most.

GradInit: Learning to Initialize Neural Networks for Stable and Efficient Training. C. Zhu, R. Ni,
Z. Xu, K. Kong, W. R. Huang, T. Goldstein, NeurIPS 2021.
Paper: https://arxiv.org/abs/2102.08098, Algorithm 1
Code:  https://github.com/zhuchen03/gradinit
Here as the comparator of NIO (nio.py).

    g = gradient on the batch S = (S0, S1), |g| its norm
    |g| > gamma:  minimise |g|                                          (constraint step)
    else:         minimise L(w - eta g / |g|; (S0, S2)) / eta           (S2 fresh: half overlaps)

over one factor m_j > 0 per tensor. The step's direction is a constant of the objective (the
official code detaches it). For Adam it is sign(g), and |g| is the sum of absolute values. Unlike in
NIO, the gradients of batch norm's parameters count.

| setting    | official code (CIFAR)                     | here |
|------------|-------------------------------------------|------|
| eta        | .1                                        | .1   |
| gamma      | 1                                         | 1    |
| normalise  | on in the launch script                   | on   |
| rate       | 1e-3 (ResNet-110, BN) to 1e-1 (VGG-19 BN) | 1e-3 |
| batch_size | 128, in two halves                        | 128  |
| iterations | 390                                       | 390  |

Differences: none known; the paper reports no accuracy on TinyImageNet.
"""

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from pretrain.bases import init_scales
from pretrain.bases.init_scales import SCALED, ScaleOptimizer, ScaleSearch
from pretrain.methods.nio import PROBES, LearnedScales, log_scales, measure_gradients
from pretrain.training.batches import Batch
from pretrain.training.context import Context

PROBE_PARTS, PROBE_OVERLAP = 4, 0.2
"""Parts and overlap for measuring GC and GN before and after: NIO's defaults."""


def join_halves(a: Batch, b: Batch) -> tuple[Tensor, Tensor]:
    """Return the images and labels of both halves."""
    return torch.cat([a.images, b.images]), torch.cat([a.labels, b.labels])


def compute_total_norm(gradients: tuple[Tensor, ...], adam: bool) -> Tensor:
    """Return the norm of all gradients: Euclidean for SGD, sum of absolute values for Adam."""
    if adam:
        return torch.stack([g.abs().sum() for g in gradients]).sum()
    return torch.stack([g.square().sum() for g in gradients]).sum().sqrt()


def compute_step_objective(
    model: nn.Module, halves: tuple[Batch, Batch, Batch], gradinit: "Gradinit", adam: bool
) -> tuple[Tensor, bool]:
    """Return the value that this iteration minimises, and whether it is the constraint."""
    tensors = init_scales.parameters_by_kind(model, SCALED)
    images, labels = join_halves(halves[0], halves[1])
    loss = functional.cross_entropy(model(images), labels)
    gradients = init_scales.gradients_of(loss, list(tensors.values()), graph=True)
    norm = compute_total_norm(gradients, adam)
    if norm > gradinit.gamma:
        return norm, True
    length = norm.detach() if gradinit.normalise else 1
    detached = zip(tensors, (g.detach() for g in gradients), strict=True)
    direction = {name: g.sign() if adam else g / length for name, g in detached}
    moved = {name: p - gradinit.eta * direction[name] for name, p in tensors.items()}
    images, labels = join_halves(halves[0], halves[2])
    logits = functional_call(model, moved, (images,))
    return functional.cross_entropy(logits, labels) / gradinit.eta, False


def learn_step_scales(
    model: nn.Module,
    halves: Iterator[Batch],
    probes: list[Batch],
    gradinit: "Gradinit",
    adam: bool = False,
) -> LearnedScales:
    """Learn the factors of a network's tensors in place; the network needs a double backward."""
    scales = ScaleOptimizer(init_scales.parameters_by_kind(model, SCALED), gradinit.rate)
    with init_scales.search_mode(model):
        before = measure_gradients(model, probes, PROBE_PARTS, PROBE_OVERLAP)
        for _ in range(gradinit.iterations):
            drawn = next(halves), next(halves), next(halves)
            objective, bound = compute_step_objective(model, drawn, gradinit, adam)
            scales.descend(scales.gradient(objective), bound)
        after = measure_gradients(model, probes, PROBE_PARTS, PROBE_OVERLAP)
    return LearnedScales(scales.factors(), before, after, (scales.steps[0], scales.steps[1]))


class Gradinit(ScaleSearch):
    """Settings of GradInit; iterations: 0 leaves the network as it is."""

    eta: float = Field(0.1, gt=0)
    gamma: float = Field(1.0, gt=0)
    normalise: bool = True
    rate: float = Field(1e-3, gt=0)
    batch_size: int = Field(128, ge=8)
    iterations: int = Field(390, ge=0)

    SOURCE: ClassVar = "GradInit (Zhu et al. 2021), Algorithm 1; official code zhuchen03/gradinit"
    TOY: ClassVar = {"gradinit.iterations": 5, "gradinit.rate": 0.02}

    def setup(self, ctx: Context) -> None:
        if ctx.resumed or self.iterations == 0:
            return
        names = (*ctx.recipe.stream("method"), self.name)
        half = self.batch_size // 2
        probes = list(islice(ctx.loader.passes(half, 0, (*names, "probes")), PROBES))
        adam = ctx.recipe.optimizer != "sgd"
        halves = ctx.loader.passes(half, 0, names)
        log_scales(ctx, learn_step_scales(ctx.model, halves, probes, self, adam))
