"""Six methods on synthetic data with three signal strengths (reinitialization study, Table 1)."""

from statistics import mean

from fsbench.claims import _synthetic, _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.recipes.recipe import Recipe

METHODS: dict[str, dict[str, object]] = {
    "BL": {"name": "normal"},
    "WELSR": {"name": "welsr"},
    "DSD": {"name": "dsd", "scope": "global"},
    "WELS": {"name": "wels"},
    "FC": {"name": "fc"},
    "LW": {"name": "lw", "repeats": 3, "head_block": True},
}
"""Method and settings by column of the table."""
PUBLISHED = {
    0.5: ((20.3, 0.6), (24.6, 1.0), (22.9, 0.6), (23.1, 1.4), (23.6, 3.0), (25.2, 0.8)),
    1.0: ((50.7, 5.4), (72.9, 0.9), (53.4, 0.7), (66.1, 2.1), (68.6, 2.1), (72.3, 3.6)),
    2.0: ((94.6, 2.0), (98.2, 0.4), (90.3, 1.4), (96.8, 0.1), (99.0, 0.2), (99.8, 0.2)),
}
"""Published test accuracy (%) and its spread over seeds by signal strength, then by column."""
TABLE = [(column, signal) for signal in PUBLISHED for column in METHODS]


def measure(job: ClaimJob) -> dict[str, object]:
    column, signal = job.arm
    recipe = build_table1_recipe(column, job.seed)
    run = _training.train_once(recipe, _synthetic.draw_source(signal, job.seed))
    return {"test": run.stages[-1], "fit": run.train[-1]}


def build_table1_recipe(column: str, seed: int) -> Recipe:
    steps = {"epochs": 1, "epoch_images": _synthetic.STEPS * _synthetic.TRAIN}
    plan = {"rounds": _synthetic.ROUNDS, **steps}
    return _synthetic.build_descent_recipe([METHODS[column]], plan, seed)


def judge_methods(runs: Runs) -> Judgements:
    """Judge every method at every signal strength; the baseline has no direction."""
    baselines = [("BL", signal) for signal in PUBLISHED]
    yield runs.require("training accuracy of BL", "fit", baselines)
    for signal, row in PUBLISHED.items():
        baseline = mean(runs.collect("test", ("BL", signal)))
        for column, (theirs, spread) in zip(METHODS, row, strict=True):
            ours = engine.average_seeds(runs.collect("test", (column, signal)))
            yield engine.judge(
                f"signal {signal:g}: {column}",
                f"{theirs:.1f} ± {spread:.1f}",
                ours.show(".1f"),
                abs(theirs - ours.mean) <= 2 * (spread**2 + ours.error**2) ** 0.5,
                (theirs - row[0][0]) * (ours.mean - baseline) > 0,
            )


CLAIM = engine.Claim(
    engine.read_claim_card("reinit_table1"), {"table": judge_methods}, measure, arms=TABLE
)
