"""Soft weight rescaling bounds the weights and balances the layers, epoch by epoch.

https://arxiv.org/abs/2507.04683, Theorem 2, appendices B and C, Figure 5. The paper measures the
balancedness of a 3-layer MLP on CIFAR-10 over 200 epochs with a coefficient of 1e-3 (official
script); here digits and about a tenth of the steps, so 1e-2.

Theorem 2 bounds a norm by n + d / lam, where d is the largest change of the norm by one optimizer
step. Adam moves an element by at most lr (1 - beta1) / sqrt(1 - beta2), which gives d without
measuring a step.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.panels import Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    _runs,
    _swr,
    choose_verdict,
    require_two_seeds,
)

if TYPE_CHECKING:
    from pretrain.training.context import Context

CLAIM = Claim(
    source="soft weight rescaling, Theorem 2, appendices B and C, Figure 5",
    statement="SWR bounds the weights that plain training lets grow, and balances the layers",
    rule=(
        "bound: reproduced if no layer of any seed exceeds it after any epoch, otherwise not."
        " Growth, balancedness and test accuracy (%), the last two as means over epochs as in"
        f" Figure 5: {_swr.ABOVE}"
    ),
    seeds=3,
)
EPOCHS, BATCH, LAM, LR = 80, 32, 1e-2, 1e-3
ADAM_STEP = 0.1 / 0.001**0.5
"""Largest step of an element by Adam, in learning rates: (1 - beta1) / sqrt(1 - beta2)."""
METHODS: dict[str, dict[str, object]] = {
    "vanilla": {"name": "normal"},
    "SWR": {"name": "swr", "lam": LAM},
}


class BoundsTrace(NamedTuple):
    """Norms by layer and balancedness, initial and after every epoch; test accuracy (%).

    sizes: elements of every layer.
    """

    norms: list[list[float]]
    balance: list[float]
    accuracy: list[float]
    sizes: list[int]

    @property
    def total(self) -> list[float]:
        """Norm of all layers together, per epoch."""
        return [sum(n * n for n in norms) ** 0.5 for norms in self.norms]

    @property
    def imbalance(self) -> list[float]:
        """Mean over pairs of layers of |r_t - r_0| (Definition 2), per epoch.

        r is the ratio of the norms of two layers, with the initially larger one on top.
        """
        start = self.norms[0]
        pairs = list(permutations(range(len(start)), 2))
        pairs = [(i, j) for i, j in pairs if start[i] > start[j]]
        return [
            mean(abs(norms[i] / norms[j] - start[i] / start[j]) for i, j in pairs)
            for norms in self.norms
        ]

    @property
    def late_growth(self) -> float:
        """Growth of the total norm over the last half of the epochs."""
        return self.total[-1] - self.total[len(self.total) // 2]


Runs = list[BoundsTrace]
"""Traces of all seeds of a method."""


def run(seeds: int = CLAIM.seeds, report: Reporter = SILENT) -> ClaimOutcome:
    """Run both methods over this many seeds. Raises UsageError for fewer than two."""
    require_two_seeds(seeds)
    runs = _runs.run_seeds(_trace_run, METHODS, seeds, "swr_bounds", report)
    return CLAIM.judge(
        seeds,
        judge_bounds(runs),
        panels=_build_panels(runs),
    )


def _trace_run(job: tuple[str, int]) -> BoundsTrace:
    """Train once (method, seed) and measure norms and balancedness after every epoch."""
    from pretrain.weights.surgery import frobenius_norms
    from protocols.analyses.balancedness import compute_balancedness

    method, seed = job
    trace = BoundsTrace([], [], [], [])

    def watch(ctx: Context) -> None:
        kernels = _swr.get_kernels(ctx)
        trace.norms.append(frobenius_norms(kernels).tolist())
        trace.balance.append(compute_balancedness(kernels))
        trace.sizes[:] = [kernel.numel() for kernel in kernels]

    recipe = _swr.build_swr_recipe(METHODS[method], seed, EPOCHS, BATCH, lr=LR)
    accuracies = _swr.trace_training(recipe, _runs.load_digits_source(seed), watch)
    return trace._replace(accuracy=accuracies.epochs)


def judge_bounds(runs: dict[str, Runs]) -> tuple[ClaimFigure, ...]:
    """Judge every statement of the paper by the rule."""
    vanilla, swr = runs["vanilla"], runs["SWR"]
    share = max(norm / top for trace in swr for norm, top in _pair_with_bounds(trace))
    growths = [trace.late_growth for trace in vanilla]
    comparisons: tuple[tuple[str, Runs, Runs, Callable[[BoundsTrace], float]], ...] = (
        ("growth of the norm, last half: vanilla - SWR", vanilla, swr, lambda t: t.late_growth),
        ("balancedness: SWR - vanilla", swr, vanilla, lambda t: mean(t.balance)),
        (
            "Definition 2, change of the layers' ratios: vanilla - SWR",
            vanilla,
            swr,
            lambda t: mean(t.imbalance),
        ),
        ("test accuracy: SWR - vanilla", swr, vanilla, lambda t: mean(t.accuracy)),
    )
    return (
        ClaimFigure(
            what="SWR: norms under the bound of Theorem 2",
            published="below",
            ours=f"{share:.2f} of it",
            verdict=choose_verdict(share <= 1),
        ),
        _swr.judge_difference(
            "vanilla: growth of the norm, last half", growths, [0.0] * len(growths)
        ),
        *(
            _swr.judge_difference(
                what, list(map(measure, above)), list(map(measure, below)), spec=".3f"
            )
            for what, above, below, measure in comparisons
        ),
    )


def _pair_with_bounds(trace: BoundsTrace) -> list[tuple[float, float]]:
    """Return every norm of every epoch with its layer's bound n + d / lam."""
    steps = [LR * ADAM_STEP * size**0.5 for size in trace.sizes]
    tops = [n + d / LAM for n, d in zip(trace.norms[0], steps, strict=True)]
    return [pair for norms in trace.norms for pair in zip(norms, tops, strict=True)]


def _build_panels(runs: dict[str, Runs]) -> tuple[Panel, ...]:
    """Plot norm, balancedness and test accuracy by epoch, means over seeds."""
    return (
        _swr.epoch_panel("Norm of all weights", "norm", runs, lambda trace: trace.total),
        _swr.epoch_panel(
            "Balancedness", "smallest / current norm", runs, lambda trace: trace.balance
        ),
        _swr.epoch_panel("Test accuracy", "%", runs, lambda trace: trace.accuracy, first=1),
    )
