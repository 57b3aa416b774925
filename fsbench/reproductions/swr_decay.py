"""Learning-rate decay: SWR's pull stays when the rate drops, so norms collapse; re-anchoring helps.

Appendix E: 200 epochs at 1e-3, a tenth at epochs 100 and 150. Here 80 epochs on digits with drops
at 40 and 60. The printed accuracies are those of MNIST's MLP (Table 5); norms are described in
words only.
"""

from __future__ import annotations

from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.panels import Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import _digits, _swr
from fsbench.reproductions._outcome import (
    OVERALL,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    judge_claim,
)
from fsbench.reproductions._pool import run_jobs

if TYPE_CHECKING:
    from pretrain.training.context import Context

SOURCE = "soft weight rescaling, appendix E, Table 5"
CLAIM = "when the learning rate drops SWR pulls norms back to their start, re-anchored SWR does not"
RULE = (
    "growth kept: mean over seeds of the norm's growth since the start, at the end over before the"
    " first drop. SWR, drops toward the initial norm: reproduced when at most 0.5, direction only"
    " below 1. Re-anchored SWR and vanilla, no drop: reproduced when at least 0.95, direction only"
    f" when above SWR's. Accuracy (%, last epoch): {_swr.ABOVE}; {OVERALL}"
)
SEEDS = 3
EPOCHS, BATCH, LAM = 80, 32, 1e-2
"""LAM as in swr_bounds."""
DROPS = (0.5, 0.75)
COLLAPSED, KEPT = 0.5, 0.95
METHODS: dict[str, dict[str, object]] = {
    "vanilla": {"name": "normal"},
    "SWR": {"name": "swr", "lam": LAM},
    "SWR + re-init": {"name": "swr_reanchor", "lam": LAM},
}
PUBLISHED = {"vanilla": 97.98, "SWR": 97.96, "SWR + re-init": 98.29}
"""Test accuracy (%) of MNIST's MLP, Table 5."""

DecayJob = tuple[str, int]
"""Method, seed."""


class DecayTrace(NamedTuple):
    """Norm of all weights per epoch, the start included, and test accuracy (%) after each."""

    norm: list[float]
    accuracy: list[float]

    @property
    def kept(self) -> float:
        """Growth since the start: at the end over before the first drop."""
        start, before = self.norm[0], self.norm[round(DROPS[0] * (len(self.norm) - 1))]
        return (self.norm[-1] - start) / (before - start)


def run(seeds: int = SEEDS, report: Reporter = SILENT) -> ClaimOutcome:
    """The three methods over this many seeds. Raises UsageError below two."""
    _swr.require_two_seeds(seeds)
    jobs: list[DecayJob] = [(method, seed) for method in METHODS for seed in range(seeds)]
    seen = run_jobs(_trace_run, jobs, "swr_decay", report)
    runs = {m: seen[i * seeds : (i + 1) * seeds] for i, m in enumerate(METHODS)}
    figures = (*(_judge_method_growth(method, runs) for method in METHODS), _judge_accuracy(runs))
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=judge_claim(figures),
        panels=(
            _epoch_panel(
                "Norm of all weights", "norm", {m: [s.norm for s in r] for m, r in runs.items()}
            ),
            _epoch_panel(
                "Test accuracy", "%", {m: [s.accuracy for s in r] for m, r in runs.items()}, 1
            ),
        ),
    )


def _trace_run(job: DecayJob) -> DecayTrace:
    from pretrain.weights import scaling

    method, seed = job
    norms: list[float] = []

    def watch(ctx: Context) -> None:
        norms.append(float(scaling.norms(_swr.forward_kernels(ctx)).norm()))

    recipe = _swr.swr_recipe(
        METHODS[method], seed, EPOCHS, BATCH, schedule="step", milestones=DROPS, gamma=0.1
    )
    found = _swr.train_recipe(recipe, _digits.load_digits_source(seed), watch)
    return DecayTrace(norms, found.epochs)


def _judge_method_growth(method: str, runs: dict[str, list[DecayTrace]]) -> ClaimFigure:
    """How much of its growth a method keeps through both drops."""
    kept = {name: mean(seen.kept for seen in r) for name, r in runs.items()}
    spread = stdev(seen.kept for seen in runs[method])
    return ClaimFigure(
        what=f"{method}: growth of the norm kept",
        published="drops toward 0" if method == "SWR" else "no drop",
        ours=f"{kept[method]:.2f} ± {spread:.2f}",
        verdict=judge_growth(method, kept),
    )


def judge_growth(method: str, kept: dict[str, float]) -> ClaimVerdict:
    """The verdict on the kept growth by RULE."""
    if method == "SWR":
        reached, directed = kept["SWR"] <= COLLAPSED, kept["SWR"] < 1
    else:
        reached, directed = kept[method] >= KEPT, kept[method] > kept["SWR"]
    return "reproduced" if reached else "direction only" if directed else "not reproduced"


def _judge_accuracy(runs: dict[str, list[DecayTrace]]) -> ClaimFigure:
    """Re-anchored over plain SWR at the end."""
    sides = [[seen.accuracy[-1] for seen in runs[m]] for m in ("SWR + re-init", "SWR")]
    found = _swr.paired_difference(*sides)
    printed = PUBLISHED["SWR + re-init"] - PUBLISHED["SWR"]
    return ClaimFigure(
        what="test accuracy: SWR + re-init - SWR",
        published=f"{printed:+.2f} (MNIST)",
        ours=str(found),
        verdict=_swr.judge_above(found),
    )


def _epoch_panel(title: str, y: str, runs: dict[str, list[list[float]]], first: int = 0) -> Panel:
    """One quantity by epoch, means over seeds."""
    curves = tuple(_swr.mean_curve(m, values, first) for m, values in runs.items())
    return Panel(title=title, x="epoch", y=y, curves=curves)
