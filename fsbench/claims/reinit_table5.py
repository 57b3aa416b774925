"""Rescaling and LW under an L2 penalty at a weak signal (reinitialization study, Table 5)."""

from fsbench.claims import _synthetic, _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.recipes.recipe import Recipe

SIGNAL, ROUNDS = 0.5, 5
STEPS = _synthetic.ROUNDS * _synthetic.STEPS
"""Optimizer steps of a run."""
PENALTIES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
BASELINE = "Baseline"
PUBLISHED = {
    BASELINE: (0.19, 0.51, 0.54, 0.58, 0.77, 0.59),
    "Rescaling": (0.21, 0.67, 0.89, 0.87, 0.78, 0.63),
    "LW": (0.25, 0.82, 0.85, 0.86, 0.79, 0.64),
}
"""Published test accuracy (fraction, mean of 100 runs) by column, then by penalty."""
METHODS: dict[str, dict[str, object]] = {
    BASELINE: {"name": "normal"},
    "Rescaling": {"name": "rescale"},
    "LW": {"name": "lw", "order": (1, 1, 2, 2, 2), "normalize": False},
}
HALF_DIGIT, PAPERS_RUNS = 0.005, 100
TABLE = [(column, penalty) for penalty in PENALTIES for column in PUBLISHED]


def measure(job: ClaimJob) -> dict[str, object]:
    column, penalty = job.arm
    recipe = build_table5_recipe(column, penalty, job.seed)
    run = _training.train_once(recipe, _synthetic.draw_source(SIGNAL, job.seed))
    return {"test": run.stages[-1] / 100, "fit": run.train[-1]}


def build_table5_recipe(column: str, penalty: float, seed: int) -> Recipe:
    """Build the recipe: the method, `l2` for a penalty; the baseline has one round."""
    methods = [METHODS[column]]
    if penalty:
        methods.append({"name": "l2", "lam": penalty, "half": True, "on": "kernels"})
    rounds, epochs = (1, ROUNDS) if column == BASELINE else (ROUNDS, 1)
    images = STEPS // ROUNDS * _synthetic.TRAIN
    plan = {"rounds": rounds, "epochs": epochs, "epoch_images": images}
    return _synthetic.build_descent_recipe(methods, plan, seed, optimizer="adam", lr=1e-2)


def judge_penalties(runs: Runs) -> Judgements:
    """Judge every mean, and its difference from the baseline with the same penalty or with none.

    The printed means are over 100 runs, whose deviation is taken to be that of ours.
    """
    yield runs.require("training accuracy without penalty", "fit", TABLE[0])
    for i, penalty in enumerate(PENALTIES):
        for column, theirs in PUBLISHED.items():
            j = 0 if column == BASELINE else i
            accuracies = runs.collect("test", (column, penalty))
            ours = engine.average_seeds(accuracies)
            error = ours.error * (1 + len(accuracies) / PAPERS_RUNS) ** 0.5
            measured = runs.compare("test", (column, penalty), (BASELINE, PENALTIES[j]))
            yield engine.judge(
                f"L2 {penalty:g}: {column}",
                f"{theirs[i]:.2f}",
                ours.show(".3f"),
                abs(ours.mean - theirs[i]) <= 2 * error + HALF_DIGIT,
                measured.mean * (theirs[i] - PUBLISHED[BASELINE][j]) > 0
                and abs(measured.mean) > 2 * measured.error,
            )


CLAIM = engine.Claim(
    engine.read_claim_card("reinit_table5"), {"table": judge_penalties}, measure, arms=TABLE
)
