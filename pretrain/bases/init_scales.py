"""Learned initial scales: one positive factor for every parameter tensor (NIO and GradInit).

Both keep the random directions and move only norms: w_j = m_j w_j0. The gradient by m_j is
<d objective / d w_j, w_j0>, clipped to [-1, 1]; the optimizer is GradInit's Adam, with a first
moment of its own for the steps that restore the constraint on the gradient norm and one second
moment for both kinds (official codes of GradInit and NIO, gradinit_optimizers.py). Tensors whose
norm is 0 (biases) have no direction to scale: they stay 0.

Official codes stop scaling a bias once its factor has reached 0; here its derivative is still
there, and it may come back.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from fsbench.core.errors import FsbenchError, UsageError
from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training.validation import eval_mode, use_batch_statistics

KERNELS = (_ConvNd, nn.Linear)
NORMS = (nn.LayerNorm, nn.GroupNorm)
SCALED = (*KERNELS, *NORMS, _BatchNorm)
"""Modules whose tensors get a factor."""
BETAS, EPSILON, CLIP = (0.9, 0.999), 1e-8, 1.0
MIN_WEIGHT, MIN_BIAS = 0.01, 0.0
"""Smallest factors of weights and of biases."""

Named = dict[str, nn.Parameter]


def parameters_by_kind(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> Named:
    """Return `weight` and `bias` of all modules of these kinds by name; shared ones once."""
    parameters: dict[int, tuple[str, nn.Parameter]] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        owner, _, leaf = name.rpartition(".")
        if leaf in ("weight", "bias") and isinstance(model.get_submodule(owner), kinds):
            parameters.setdefault(id(tensor), (name, tensor))
    return dict(parameters.values())


@contextmanager
def search_mode(model: nn.Module) -> Iterator[None]:
    """Use eval mode (no dropout), untracked batch statistics and plain attention for the block.

    Fused attention has no double backward, so the MATH kernel runs. Afterwards the modes are
    restored, no buffer has changed, and no gradient is left.
    """
    statistics = use_batch_statistics(model, everywhere=True)
    with eval_mode(model), sdpa_kernel(SDPBackend.MATH), statistics:
        try:
            yield
        finally:
            model.zero_grad(set_to_none=True)


def gradients_of(of: Tensor, by: Sequence[Tensor], graph: bool = False) -> tuple[Tensor, ...]:
    """Return gradients, zero for tensors on which `of` does not depend; its graph is retained."""
    return torch.autograd.grad(
        of, by, create_graph=graph, retain_graph=True, materialize_grads=True
    )


class ScaleOptimizer:
    """Optimizer of factors m (J,) of named tensors, which writes them into the model at every step.

    live: the tensors with a nonzero norm, which alone are scaled. steps: counts for the objective
    and for the constraint.
    """

    def __init__(self, tensors: Named, rate: float) -> None:
        self.tensors, self.rate = tensors, rate
        self.live = {name: p for name, p in tensors.items() if bool((p.detach() != 0).any())}
        self.initial = [p.detach().clone() for p in self.live.values()]
        self.m = torch.ones(len(self.live), dtype=torch.float64)
        self.minimum = torch.tensor(
            [MIN_BIAS if name.rpartition(".")[2] == "bias" else MIN_WEIGHT for name in self.live],
            dtype=torch.float64,
        )
        self.first = torch.zeros(2, len(self.live), dtype=torch.float64)
        self.second = torch.zeros(len(self.live), dtype=torch.float64)
        self.steps = [0, 0]

    def gradient(self, objective: Tensor) -> Tensor:
        """Return d objective / d m (J,), before clipping.

        Raises FsbenchError if an operation of the network has no double backward.
        """
        try:  # not autograd.grad: it skips the nodes that once-differentiable functions raise from
            torch.autograd.backward(objective)
        except (RuntimeError, NotImplementedError) as error:
            messages = ("not implemented", "differentiate twice", "does not require grad")
            if not any(text in str(error) for text in messages):
                raise
            raise FsbenchError(
                f"an operation of this network cannot be differentiated twice: {error}",
                fix="use a network without fused or custom operations",
            ) from error
        pairs = zip(self.live.values(), self.initial, strict=True)
        zero = torch.zeros((), device=objective.device)
        dots = [(p.grad * w).sum() if p.grad is not None else zero for p, w in pairs]
        for p in self.tensors.values():
            p.grad = None
        return torch.stack(dots).double().cpu()

    @torch.no_grad()
    def descend(self, gradient: Tensor, constraint: bool) -> None:
        """Take a step of GradInit's Adam. Raises FsbenchError if the gradient is not finite."""
        if not torch.isfinite(gradient).all():
            raise FsbenchError(
                "the gradient of the initialization's objective is not finite",
                fix="lower its learning rate or its gradient norm cap",
            )
        gradient, kind = gradient.clamp(-CLIP, CLIP), int(constraint)
        self.steps[kind] += 1
        self.first[kind].lerp_(gradient, 1 - BETAS[0])
        self.second.lerp_(gradient**2, 1 - BETAS[1])
        first = self.first[kind] / (1 - BETAS[0] ** self.steps[kind])
        second = self.second / (1 - BETAS[1] ** sum(self.steps))
        step = self.rate * first / (second.sqrt() + EPSILON)
        self.m = torch.maximum(self.m - step, self.minimum)
        self.write(self.m)

    @torch.no_grad()
    def write(self, m: Tensor) -> None:
        """Set the tensors to m times their initial values."""
        for parameter, w, scale in zip(self.live.values(), self.initial, m.tolist(), strict=True):
            parameter.copy_(w * scale)

    def factors(self) -> dict[str, float]:
        """Return m by tensor name."""
        return dict(zip(self.live, self.m.tolist(), strict=True))


class ScaleSearch(Method):
    """Base of the methods that learn initial scales; scale_redraws: fresh draws get them too."""

    iterations: int
    scale_redraws: bool = False

    RANK: ClassVar = ActingOrder.INIT
    NEUTRAL: ClassVar[Neutral] = {"iterations": 0}

    def check(self, recipe: Recipe) -> None:
        if recipe.sync_bn:
            raise UsageError(
                f"{self.name} differentiates twice, which torch.nn.SyncBatchNorm cannot",
                fix="--set sync_bn=false",
            )

    def init_scales(self, memory: Mapping[str, Any]) -> Mapping[str, float]:
        return memory.get("factors", {}) if self.scale_redraws else {}
