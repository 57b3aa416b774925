"""Soft weight rescaling with learning-rate decay: norms collapse unless they are re-anchored."""

from collections.abc import Sequence
from typing import Any

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.weights.surgery import frobenius_norms

DIGITS, COLOUR = "digits", "colour images"
EPOCHS, LAM, DROPS = 80, 1e-2, (0.5, 0.75)
NETWORKS = {DIGITS: "mlp", COLOUR: "cnn"}
METHODS = {"vanilla": "normal", "SWR": "swr", "SWR + re-init": "swr_reanchor"}
RESCALED = ("SWR", "SWR + re-init")
GROWN, ROOM = {"vanilla": 25.0, "SWR": 5.0, "SWR + re-init": 5.0}, 95.0
"""Least growth of the norm (%) by method; accuracy (%) above which nothing is gained."""


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with a method; measure the norm of all weights and the test accuracy (%)."""
    images, name = job.arm
    if images == COLOUR:
        source = _training.load_colour_source(job, 1000)
    else:
        source = _training.load_digits_source(job.seed)
    method = {"name": METHODS[name]} | ({"lam": LAM} if name in RESCALED else {})
    drops: dict[str, Any] = {"schedule": "step", "milestones": DROPS, "gamma": 0.1}
    fields = drops | {"architecture": NETWORKS[images]}
    recipe = _training.build_swr_recipe(method, source, job.seed, EPOCHS, **fields)
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
        arm = (DIGITS, method)
        yield runs.require(f"{method}: growth until the first drop", "early growth", arm, least)
        kept, swr = (runs.compare("kept", (DIGITS, name)) for name in (method, "SWR"))
        falls = method == "SWR"
        yield engine.judge(
            f"{method}: growth of the norm kept",
            "drops toward 0" if falls else "no drop",
            kept.show(),
            kept.mean <= 0.5 if falls else kept.mean >= 0.95,
            kept.mean < 1 if falls else kept.mean > swr.mean,
        )


def judge_reanchoring(runs: Runs) -> Judgements:
    swr, reanchored = ((COLOUR, name) for name in RESCALED)
    what = "SWR: growth until the first drop"
    yield runs.require(what, "early growth", swr, GROWN["SWR"])
    accuracies = runs.collect("best", swr)
    yield engine.require("best test accuracy of SWR", "at most", ROOM, accuracies)
    what, published = "test accuracy: SWR + re-init - SWR", f"{72.69 - 69.25:+.2f} (CIFAR-10)"
    yield runs.compare("final", reanchored, swr).judge(what, published)


CLAIM = engine.Claim(
    engine.read_claim_card("swr_decay"),
    {"norms": judge_growth, "accuracy": judge_reanchoring},
    measure,
    arms=[(DIGITS, name) for name in METHODS],
    colour_arms=[(COLOUR, name) for name in RESCALED],
    curves={"norm": engine.FROM_START, "test accuracy (%)": engine.FROM_FIRST},
)
