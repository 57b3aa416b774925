"""Rescaling and LW under an L2 penalty at a weak signal (reinitialization study, Table 5).

https://arxiv.org/abs/2109.00267, appendix B: the data of Table 1 at signal 0.5. The baseline trains
in one round, the others in 5 rounds of a fifth of the steps: `rescale` restores the initial norm of
every layer; `lw` does so for the kept blocks and redraws what is above layer 1, 1, 2, 2, 2, without
normalisers. The paper does not state the number of steps, the optimizer, or the form of the
penalty. Here they are those of the best result of a search on other seeds, which means that even
this best result is no independent confirmation:

    steps       1,800, as in Table 1
    optimizer   Adam on all vectors at 1e-2; the penalty passes through its moments like a loss
    penalty     half of L2 sum w^2 over the kernels

| tried                                                          | outcome over the 18 cells       |
|----------------------------------------------------------------|---------------------------------|
| gradient descent at .05, L2 sum w^2; momentum .9; batches of   | the row without penalty; with   |
| 32; rate .5; 10,000 and 40,000 steps; He-normal weights        | one, no gain over the baseline  |
| Adam at 1e-3 and 3e-3, L2 sum w^2                              | the order of the methods, not   |
|                                                                | the size of the accuracies      |
| Adam at 1e-2, half of L2 sum w^2                               | 7 reproduced, 8 direction, 3 not|

Gradient descent as in Table 1 runs beside it, at two seeds.
"""

from statistics import mean, stdev

from fsbench.claims import _synthetic, _training, engine
from fsbench.claims.engine import ClaimFigure, ClaimJob, Runs
from pretrain.recipes.recipe import Recipe

SIGNAL, ROUNDS = 0.5, 5
STEPS = _synthetic.ROUNDS * _synthetic.STEPS
"""Optimizer steps of a run."""
PENALTIES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
PUBLISHED = {
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
ADAM, DESCENT = "adam", "sgd"
RATES = {ADAM: 1e-2, DESCENT: 0.05}
"""Learning rate by optimizer; Adam, with half of the penalty, is judged."""
HALF_DIGIT = 0.005
TABLE = [(column, penalty, ADAM) for penalty in PENALTIES for column in PUBLISHED]
NOTED = [(column, penalty, DESCENT) for penalty in (0.005, 0.02, 0.05) for column in PUBLISHED]
"""Arms: column, penalty, optimizer."""


def measure(job: ClaimJob) -> dict[str, object]:
    column, penalty, optimizer = job.arm
    recipe = build_table5_recipe(column, penalty, optimizer, job.seed)
    run = _training.train_once(recipe, _synthetic.draw_source(SIGNAL, job.seed))
    return {"test": run.stages[-1] / 100, "fit": run.train[-1]}


def build_table5_recipe(column: str, penalty: float, optimizer: str, seed: int) -> Recipe:
    """Build the recipe: the method, `l2` for a penalty; the baseline has one round."""
    methods = [METHODS[column]]
    if penalty:
        methods.append({"name": "l2", "lam": penalty, "half": optimizer == ADAM, "on": "kernels"})
    plan = {"rounds": ROUNDS, "epochs": 1, "epoch_images": STEPS // ROUNDS * _synthetic.TRAIN}
    if column == "Baseline":
        plan |= {"rounds": 1, "epochs": ROUNDS}
    lr = RATES[optimizer]
    return _synthetic.build_descent_recipe(methods, plan, seed, optimizer=optimizer, lr=lr)


def judge_mean(runs: Runs, column: str, penalty: float, optimizer: str) -> ClaimFigure:
    theirs = PUBLISHED[column][PENALTIES.index(penalty)]
    baseline, reference = "Baseline", penalty if column != "Baseline" else PENALTIES[0]
    printed = theirs - PUBLISHED[baseline][PENALTIES.index(reference)]
    arms = (column, penalty, optimizer), (baseline, reference, optimizer)
    ours, measured = runs.collect("test", arms[0]), runs.compare("test", *arms)
    return engine.judge(
        f"L2 {penalty:g}: {column}",
        f"{theirs:.2f}",
        f"{mean(ours):.2f} ± {stdev(ours):.2f}",
        abs(mean(ours) - theirs) <= 2 * stdev(ours) + HALF_DIGIT,
        measured.mean * printed > 0 and abs(measured.mean) > 2 * measured.error,
    )


CLAIM = engine.Claim(
    source="reinitialization study, Table 5 and appendix B",
    statements={
        "table": engine.ClaimStatement(
            text="an L2 penalty raises test accuracy, far more so with rescaling or LW",
            condition="without penalty the baseline learns its training vectors by heart",
            rule="a cell: reproduced if our mean is within 2 standard deviations over our seeds"
            " (plus half a printed digit) of the printed one; direction only if the difference from"
            " its reference cell (the baseline with the same penalty; for the baseline, that"
            " without penalty) has the printed sign and exceeds 2 standard errors over the paired"
            " seeds. The settings were found by a search for the printed figures: whatever the"
            " cells say, the statement stays not reproduced",
            conditions=lambda runs: [
                runs.require("training accuracy without penalty", "fit", TABLE[0])
            ],
            figures=lambda runs: [judge_mean(runs, *arm) for arm in TABLE],
            searched=True,
        )
    },
    measure=measure,
    arms=TABLE + NOTED,
    few=dict.fromkeys(NOTED, 2),
    seeds=4,
    full_seeds=100,
)
