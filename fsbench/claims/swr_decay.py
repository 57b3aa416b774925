"""Soft weight rescaling with learning-rate decay: norms collapse unless they are re-anchored."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.weights.surgery import frobenius_norms

EPOCHS, LAM, DROPS = 80, 1e-2, (0.5, 0.75)
METHODS: dict[str, dict[str, object]] = {
    "vanilla": {"name": "normal"},
    "SWR": {"name": "swr", "lam": LAM},
    "SWR + re-init": {"name": "swr_reanchor", "lam": LAM},
}
GROWN, ROOM = {"vanilla": 25.0, "SWR": 5.0, "SWR + re-init": 5.0}, 95.0
"""Least growth of the norm (%) by method; accuracy (%) above which nothing is gained."""


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with a method; measure the norm of all weights and the test accuracy (%)."""
    source = _training.load_digits_source(job.seed)
    drops: dict[str, Any] = {"schedule": "step", "milestones": DROPS, "gamma": 0.1}
    recipe = _training.build_swr_recipe(METHODS[job.arm], source, job.seed, EPOCHS, **drops)
    run = _training.train_once(
        recipe, source, lambda ctx: float(frobenius_norms(_training.get_kernels(ctx)).norm())
    )
    return {
        "norm": run.watched,
        "test accuracy (%)": run.test,
        "best": max(run.test),
        "final": run.test[-1],
        **measure_growth(run.watched),
    }


def measure_growth(norms: Sequence[float]) -> dict[str, float]:
    """Measure the growth until the first drop (%), and the part of it that is left at the end."""
    early = norms[round(DROPS[0] * (len(norms) - 1))] / norms[0] - 1
    return {"early growth": 100 * early, "kept": (norms[-1] / norms[0] - 1) / early}


def judge_growth(runs: Runs) -> Judgements:
    for method, least in GROWN.items():
        yield runs.require(f"{method}: growth until the first drop", "early growth", method, least)
        kept, swr = (runs.collect("kept", arm) for arm in (method, "SWR"))
        falls, growth = method == "SWR", mean(kept)
        yield engine.judge(
            f"{method}: growth of the norm kept",
            "drops toward 0" if falls else "no drop",
            f"{growth:.2f} ± {stdev(kept):.2f}",
            growth <= 0.5 if falls else growth >= 0.95,
            growth < 1 if falls else growth > mean(swr),
        )


def judge_reanchoring(runs: Runs) -> Judgements:
    accuracies = runs.collect("best", "SWR")
    yield engine.require("best test accuracy of SWR", "at most", ROOM, accuracies)
    what, published = "test accuracy: SWR + re-init - SWR", f"{98.29 - 97.96:+.2f} (MNIST)"
    yield runs.compare("final", "SWR + re-init", "SWR").judge(what, published)


CLAIM = engine.Claim(
    engine.read_claim_card("swr_decay"),
    {"norms": judge_growth, "accuracy": judge_reanchoring},
    measure,
    arms=METHODS,
    curves={"norm": engine.FROM_START, "test accuracy (%)": engine.FROM_FIRST},
)
