"""Six methods on synthetic data with three signal strengths (reinitialization study, Table 1).

https://arxiv.org/abs/2109.00267, section 1.1. The data, and the choices that the paper leaves open,
are in _synthetic.py. Every cell is the mean over seeds of training runs with the methods' own
files. The notes show how much the baseline depends on the distribution of the initial weights,
which the paper does not state.
"""

from collections.abc import Sequence
from itertools import groupby
from statistics import mean, stdev
from typing import NamedTuple

from fsbench.claims import (
    FITTED,
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    ClaimVerdict,
    _runs,
    _synthetic,
    choose_verdict,
    require_at_least,
    require_two_seeds,
)
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter

CLAIM = Claim(
    source="reinitialization study, Table 1",
    statements={
        "table": ClaimStatement(
            text="redrawing weights in rounds raises test accuracy on synthetic data, LW most",
            condition="the baseline learns its training vectors by heart",
            rule="a cell: reproduced if our mean is within 2 sqrt(s^2 + e^2) of the printed one (s:"
            " standard deviation over our seeds, e: printed error); direction only if at least the"
            " sign of its difference from BL is as printed",
        )
    },
    seeds=4,
    full_seeds=20,
)


class MeanAndSpread(NamedTuple):
    """Test accuracy (%) and its spread: printed error, or standard deviation over our seeds."""

    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.spread:.1f}"


PUBLISHED: dict[float, dict[str, MeanAndSpread]] = {
    signal: dict(zip(_synthetic.METHODS, (MeanAndSpread(*cell) for cell in cells), strict=True))
    for signal, cells in {
        0.5: ((20.3, 0.6), (24.6, 1.0), (22.9, 0.6), (23.1, 1.4), (23.6, 3.0), (25.2, 0.8)),
        1.0: ((50.7, 5.4), (72.9, 0.9), (53.4, 0.7), (66.1, 2.1), (68.6, 2.1), (72.3, 3.6)),
        2.0: ((94.6, 2.0), (98.2, 0.4), (90.3, 1.4), (96.8, 0.1), (99.0, 0.2), (99.8, 0.2)),
    }.items()
}
"""Published accuracy by signal strength and method."""

INITIAL = {
    "Glorot-uniform (as above)": "study_mlp",
    "He-normal": "study_mlp_he",
    "PyTorch's default": "study_mlp_torch",
}
"""Architecture by distribution of the initial weights."""

LAW_SEEDS = 5
"""Largest number of seeds for the other distributions, which differ clearly."""

Table1Job = tuple[str, float, int, str]
"""Method, signal strength, seed, architecture."""


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Run all cells over the seeds. Raises UsageError for fewer than two."""
    require_two_seeds(settings.seeds)
    runs = _list_jobs(settings.seed_range)
    scores = _run_table_jobs(runs, settings, report)
    ours = _average_by_cell(runs, scores)
    table = {s: {m: ours[m, s, "study_mlp"] for m in row} for s, row in PUBLISHED.items()}
    fitted = [
        score.train
        for (method, _, _, network), score in zip(runs, scores, strict=True)
        if (method, network) == ("BL", "study_mlp")
    ]
    figures = [_judge_table_cell(s, m, row) for s, row in table.items() for m in row]
    return CLAIM.judge(
        settings,
        {"table": ([require_at_least("training accuracy of BL", fitted, FITTED)], figures)},
        notes=(
            *(f"BL at signal 1, {law}: {ours['BL', 1.0, a]}" for law, a in INITIAL.items()),
            f"the last two over at most {LAW_SEEDS} seeds",
        ),
        panels=(_method_panel(table, method) for method in _synthetic.METHODS),
    )


def _list_jobs(seeds: Sequence[int]) -> list[Table1Job]:
    """List the runs of the table, then those with other initial weights, LAW_SEEDS at most."""
    others = [a for a in INITIAL.values() if a != "study_mlp"]
    return [
        *((m, s, seed, "study_mlp") for seed in seeds for s in PUBLISHED for m in PUBLISHED[s]),
        *(("BL", 1.0, seed, a) for seed in seeds[:LAW_SEEDS] for a in others),
    ]


def _average_by_cell(
    runs: Sequence[Table1Job], scores: Sequence[_synthetic.Accuracies]
) -> dict[tuple[str, float, str], MeanAndSpread]:
    """Return mean and deviation over seeds by method, signal and architecture."""
    accuracies: dict[tuple[str, float, str], list[float]] = {}
    for (method, signal, _, network), score in zip(runs, scores, strict=True):
        accuracies.setdefault((method, signal, network), []).append(score.test)
    return {key: MeanAndSpread(mean(values), stdev(values)) for key, values in accuracies.items()}


def _run_table_jobs(
    runs: Sequence[Table1Job], settings: ClaimSettings, report: Reporter
) -> list[_synthetic.Accuracies]:
    """Return the accuracies in order; neighbouring runs share one draw of the data."""
    groups = [tuple(group) for _, group in groupby(runs, key=lambda run: run[1:])]
    scores_by_group = _runs.run_jobs(
        _together, groups, settings, "reinit_table1", report, unit="draws of data"
    )
    return [score for scores in scores_by_group for score in scores]


def _together(runs: Sequence[Table1Job]) -> list[_synthetic.Accuracies]:
    """Run jobs that differ in their method alone."""
    return _synthetic.train_columns([run[0] for run in runs], *runs[0][1:])


def _judge_table_cell(signal: float, method: str, ours: dict[str, MeanAndSpread]) -> ClaimFigure:
    """Judge one cell of the table by the rule."""
    theirs = PUBLISHED[signal]
    return ClaimFigure(
        what=f"signal {signal:g}: {method}",
        published=str(theirs[method]),
        ours=str(ours[method]),
        verdict=judge_cell(method, theirs, ours),
    )


def _method_panel(ours: dict[float, dict[str, MeanAndSpread]], method: str) -> Panel:
    """Plot a column of the table: accuracy against signal, ours and printed."""
    signals = tuple(PUBLISHED)
    measured = tuple(ours[signal][method].mean for signal in signals)
    printed = tuple(PUBLISHED[signal][method].mean for signal in signals)
    return Panel(
        title=method,
        x="signal strength",
        y="test accuracy (%)",
        curves=(
            Curve(label="ours", x=signals, y=measured),
            Curve(label="paper", x=signals, y=printed, published=True),
        ),
    )


def judge_cell(
    method: str, theirs: dict[str, MeanAndSpread], ours: dict[str, MeanAndSpread]
) -> ClaimVerdict:
    """Return the verdict on a cell by the rule; the baseline has no direction."""
    a, b = theirs[method], ours[method]
    near = abs(a.mean - b.mean) <= 2 * (a.spread**2 + b.spread**2) ** 0.5
    signs = [cells[method].mean - cells["BL"].mean for cells in (theirs, ours)]
    return choose_verdict(near, signs[0] * signs[1] > 0)
