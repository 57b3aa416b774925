"""Six methods on synthetic data with three signal strengths (reinitialization study, Table 1)."""

from statistics import mean, stdev

from fsbench.claims import _synthetic, _training, engine
from fsbench.claims.engine import ClaimFigure, ClaimJob, ClaimRule, Runs

PUBLISHED = {
    signal: dict(zip(_synthetic.METHODS, row, strict=True))
    for signal, row in {
        0.5: ((20.3, 0.6), (24.6, 1.0), (22.9, 0.6), (23.1, 1.4), (23.6, 3.0), (25.2, 0.8)),
        1.0: ((50.7, 5.4), (72.9, 0.9), (53.4, 0.7), (66.1, 2.1), (68.6, 2.1), (72.3, 3.6)),
        2.0: ((94.6, 2.0), (98.2, 0.4), (90.3, 1.4), (96.8, 0.1), (99.0, 0.2), (99.8, 0.2)),
    }.items()
}
"""Published test accuracy (%) and its standard error by signal strength and method."""
TABLE = [(method, signal) for signal in PUBLISHED for method in _synthetic.METHODS]
BASELINES = [arm for arm in TABLE if arm[0] == "BL"]


def measure(job: ClaimJob) -> dict[str, object]:
    method, signal = job.arm
    recipe = _synthetic.build_column_recipe(method, job.seed)
    run = _training.train_once(recipe, _synthetic.draw_source(signal, job.seed))
    return {"test": run.stages[-1], "fit": run.train[-1]}


def judge_method(runs: Runs, method: str, signal: float) -> ClaimFigure:
    """Judge one method at one signal strength by the rule; the baseline has no direction."""
    ours, baseline = (runs.collect("test", (name, signal)) for name in (method, "BL"))
    theirs, error = PUBLISHED[signal][method]
    printed, measured = theirs - PUBLISHED[signal]["BL"][0], mean(ours) - mean(baseline)
    return engine.judge(
        f"signal {signal:g}: {method}",
        f"{theirs:.1f} ± {error:.1f}",
        f"{mean(ours):.1f} ± {stdev(ours):.1f}",
        abs(theirs - mean(ours)) <= 2 * (error**2 + stdev(ours) ** 2) ** 0.5,
        printed * measured > 0,
    )


CLAIM = engine.Claim(
    engine.read_claim_card("reinit_table1"),
    {
        "table": ClaimRule(
            lambda runs: [runs.require("training accuracy of BL", "fit", BASELINES)],
            lambda runs: [judge_method(runs, *arm) for arm in TABLE],
        )
    },
    measure,
    arms=TABLE,
)
