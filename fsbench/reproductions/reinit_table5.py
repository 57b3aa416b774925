"""Rescaling and LW under an L2 penalty at a weak signal (reinitialization study, Table 5).

https://arxiv.org/abs/2109.00267, appendix B: the data of Table 1 at signal 0.5. The baseline trains
in one round, the others in 5 rounds of a fifth of the steps: `rescale` restores the initial norm of
every layer; `lw` does so for the kept blocks and redraws what is above layer 1, 1, 2, 2, 2, without
normalisers. The paper does not state

    the number of steps      here that of Table 1
    the form of the penalty  here L2 sum w^2 over the kernels, as in Keras: `l2` without factor 1/2
    the optimizer            here the gradient descent of Table 1; the notes show Adam, where the
                             penalty passes through the moments like a loss
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    _runs,
    _synthetic,
    choose_verdict,
    require_two_seeds,
)

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

CLAIM = Claim(
    source="reinitialization study, Table 5 and appendix B",
    statement="an L2 penalty raises test accuracy, far more so with rescaling or LW",
    rule=(
        "a cell: reproduced if our mean is within 2 standard deviations over our seeds (plus half a"
        " printed digit) of the printed one; direction only if the difference from its reference"
        " cell (the baseline with the same penalty; for the baseline, that without penalty) has the"
        " printed sign and exceeds 2 standard errors over the paired seeds"
    ),
    seeds=20,
)

SIGNAL, ROUNDS = 0.5, 5
STEPS = _synthetic.ROUNDS * _synthetic.STEPS
"""Optimizer steps of a run."""
PENALTIES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
PUBLISHED: dict[str, tuple[float, ...]] = {
    "Baseline": (0.19, 0.51, 0.54, 0.58, 0.77, 0.59),
    "Rescaling": (0.21, 0.67, 0.89, 0.87, 0.78, 0.63),
    "LW": (0.25, 0.82, 0.85, 0.86, 0.79, 0.64),
}
"""Published test accuracy (fraction, mean of 100 runs) by column, then by penalty."""
METHODS: dict[str, dict[str, object]] = {
    "Baseline": {"name": "normal"},
    "Rescaling": {"name": "rescale"},
    "LW": {"name": "lw", "order": (1, 1, 2, 2, 2), "normalize": False},
}
OPTIMIZERS = {"sgd": 0.05, "adam": 3e-3}
"""Learning rate by optimizer."""
ADAM_PENALTIES, ADAM_SEEDS = (0.005, 0.02, 0.05), 2
"""Penalties of the runs with Adam, and their largest number of seeds."""
HALF_DIGIT = 0.005


class Table5Job(NamedTuple):
    """One run: a cell of the table, an optimizer, a seed."""

    column: str
    penalty: float
    optimizer: str
    seed: int


AccuraciesByCell = dict[tuple[str, float, str], tuple[float, ...]]
"""Test accuracy (fraction) of every seed, by column, penalty and optimizer."""


def run(seeds: int = CLAIM.seeds, report: Reporter = SILENT) -> ClaimOutcome:
    """Run all cells over this many seeds. Raises UsageError for fewer than two."""
    require_two_seeds(seeds)
    scores = group_by_cell(_list_jobs(seeds), report)
    return CLAIM.judge(
        seeds,
        (judge_table_cell(scores, row, c) for row in range(len(PENALTIES)) for c in PUBLISHED),
        notes=_describe_adam(scores),
        panels=(
            _penalty_panel(scores, "sgd", PENALTIES),
            _penalty_panel(scores, "adam", ADAM_PENALTIES),
        ),
    )


def _list_jobs(seeds: int) -> list[Table5Job]:
    """List the runs of the table, then those with Adam, ADAM_SEEDS seeds at most."""
    adam_seeds = min(seeds, ADAM_SEEDS)
    parts = (("sgd", PENALTIES, seeds), ("adam", ADAM_PENALTIES, adam_seeds))
    return [
        Table5Job(column, penalty, optimizer, seed)
        for optimizer, penalties, n_seeds in parts
        for seed in range(n_seeds)
        for penalty in penalties
        for column in PUBLISHED
    ]


def group_by_cell(runs: Sequence[Table5Job], report: Reporter) -> AccuraciesByCell:
    """Run the jobs; return accuracies by cell and optimizer, in the order of the seeds."""
    accuracies: dict[tuple[str, float, str], tuple[float, ...]] = {}
    scores = _runs.run_jobs(_train_job, runs, "reinit_table5", report)
    for job, score in zip(runs, scores, strict=True):
        key = job.column, job.penalty, job.optimizer
        accuracies[key] = (*accuracies.get(key, ()), score)
    return accuracies


def _train_job(job: Table5Job) -> float:
    """Train one job and return its test accuracy (fraction)."""
    return _synthetic.train_and_score(build_table5_recipe(job), SIGNAL)


def build_table5_recipe(job: Table5Job) -> Recipe:
    """Build the recipe: the method, `l2` for a penalty; the baseline has one round."""
    methods = [METHODS[job.column]]
    if job.penalty:
        methods.append({"name": "l2", "lam": job.penalty, "half": False, "on": "kernels"})
    plan = {"rounds": ROUNDS, "epochs": 1, "epoch_images": STEPS // ROUNDS * _synthetic.TRAIN}
    if job.column == "Baseline":
        plan |= {"rounds": 1, "epochs": ROUNDS}
    lr = OPTIMIZERS[job.optimizer]
    return _synthetic.build_descent_recipe(methods, plan, job.seed, optimizer=job.optimizer, lr=lr)


def judge_table_cell(scores: AccuraciesByCell, row: int, column: str) -> ClaimFigure:
    """Judge one cell of the table by the rule."""
    penalty, theirs = PENALTIES[row], PUBLISHED[column][row]
    ours = scores[column, penalty, "sgd"]
    against = find_reference_cell(row, column)
    verdict = judge_closeness(theirs, ours)
    if verdict != "reproduced" and against is not None:
        printed = theirs - PUBLISHED[against[0]][PENALTIES.index(against[1])]
        verdict = judge_direction(printed, ours, scores[*against, "sgd"])
    return ClaimFigure(
        what=f"L2 {penalty:g}: {column}",
        published=f"{theirs:.2f}",
        ours=f"{mean(ours):.2f} ± {stdev(ours):.2f}",
        verdict=verdict,
    )


def find_reference_cell(row: int, column: str) -> tuple[str, float] | None:
    """Return the cell that sets the direction of this one; None for the first of the baseline."""
    if column != "Baseline":
        return "Baseline", PENALTIES[row]
    return ("Baseline", PENALTIES[0]) if row else None


def judge_closeness(theirs: float, ours: Sequence[float]) -> ClaimVerdict:
    """Return whether our mean equals the printed one, by the rule."""
    return choose_verdict(abs(mean(ours) - theirs) <= 2 * stdev(ours) + HALF_DIGIT)


def judge_direction(
    printed: float, ours: Sequence[float], against: Sequence[float]
) -> ClaimVerdict:
    """Return whether our paired difference clearly has the printed sign, by the rule."""
    differences = [a - b for a, b in zip(ours, against, strict=True)]
    error = stdev(differences) / len(differences) ** 0.5
    clear = mean(differences) * printed > 0 and abs(mean(differences)) > 2 * error
    return choose_verdict(False, clear)


def _describe_adam(scores: AccuraciesByCell) -> tuple[str, ...]:
    """Describe the results of Adam and the choices that the table leaves open."""
    rows = (
        f"Adam, L2 {p:g}: " + ", ".join(f"{c} {mean(scores[c, p, 'adam']):.2f}" for c in PUBLISHED)
        for p in ADAM_PENALTIES
    )
    return (
        *rows,
        f"Adam at learning rate {OPTIMIZERS['adam']:g}, over at most {ADAM_SEEDS} seeds; the"
        " verdicts are those of gradient descent",
        f"L2 is the strength of L2 sum w^2 over kernels; {STEPS} steps per run; neither is printed",
    )


def _penalty_panel(scores: AccuraciesByCell, optimizer: str, penalties: tuple[float, ...]) -> Panel:
    """Plot accuracy against penalty, ours and printed."""
    ours = (
        Curve(
            label=column,
            x=penalties,
            y=tuple(mean(scores[column, penalty, optimizer]) for penalty in penalties),
        )
        for column in PUBLISHED
    )
    printed = (
        Curve(label=f"{column} (paper)", x=PENALTIES, y=values, published=True)
        for column, values in PUBLISHED.items()
    )
    title = {"sgd": "gradient descent", "adam": "Adam"}[optimizer]
    return Panel(title=title, x="L2 penalty", y="test accuracy", curves=(*ours, *printed))
