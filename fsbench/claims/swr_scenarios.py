"""Warm start and continual learning: SWR and the comparators of its paper.

https://arxiv.org/abs/2507.04683, sections 4.1 and 4.2, Figures 2 to 4. The MLP on digits of which
40 % have a wrong label in training, with the coefficients that the paper chose for its CNN on
CIFAR-10 (Tables 2 and 3): like that CNN, and unlike the paper's MLP on MNIST, the network loses by
learning its images by heart. SWR's coefficient acts once per step; it is multiplied by the ratio of
the paper's steps to ours (ScenarioSetup.factor).

All effects need a network that fits its images. Tried on other seeds, with wrong labels: 40 and 8
epochs per stage and SWR at 50 times its coefficient (14 of 21 figures reproduced, none in the
limited scenario; but the first stage ends at 84 and 47 % training accuracy, so a new start wins
because it has no time to learn wrong labels); 120 epochs in the warm start, where the gap that a
warm start leaves is .7 points; 30 epochs in the other two, 60 in the last. The epochs below are the
smallest of these at which plain training fits.

Why a head reset lowers no accuracy at a switch here, against the paper: the head has learned wrong
labels, and a new one is better on right ones after a single epoch. With right labels accuracy falls
at a switch, by 1.4 points with a reset and .9 without (one other seed).
"""

from collections.abc import Iterator
from statistics import mean

from fsbench.claims import _training, engine
from fsbench.claims._training import TrainedRun
from fsbench.claims.engine import ClaimCondition, ClaimFigure, ClaimJob, Runs

MARGIN = 0.5
"""Percentage points."""
WARM, FULL, LIMITED = SCENARIOS = ("warm-start", "continual-full", "continual-limited")
SETUPS = {WARM: (500, 120), FULL: (1437, 30), LIMITED: (1437, 60)}
"""Training images and epochs per stage."""
FACTORS = {WARM: 11, FULL: 15, LIMITED: 7}
"""Factor of SWR's coefficient."""
METHODS: dict[str, tuple[str, tuple[float, ...]]] = {
    "vanilla": ("normal", ()),
    "cold": ("full_reset", ()),
    "L2": ("l2", (1e-2, 1e-2, 1e-2)),
    "L2 Init": ("l2_init", (1e-2, 1e-2, 1e-2)),
    "S&P": ("shrink_perturb", (0.8, 0.8, 0.4)),
    "head reset": ("head_reset", ()),
    "SWR": ("swr", (1e-3, 1e-3, 1e-1)),
}
"""Method, and its `lam` by scenario as printed for the CNN on CIFAR-10, by name in the paper."""
PENALTIES, RESETS = ("L2", "L2 Init"), ("S&P", "head reset")


def measure(job: ClaimJob) -> dict[str, object]:
    scenario, name = job.arm
    images, epochs = SETUPS[scenario]
    source = _training.load_digits_source(job.seed, images, noise=_training.NOISE)
    method = build_method_settings(scenario, name)
    recipe = _training.build_swr_recipe(method, source, job.seed, epochs, scenario)
    return measure_stages(_training.train_once(recipe, source), epochs)


def build_method_settings(scenario: str, name: str) -> dict[str, object]:
    method, lams = METHODS[name]
    if not lams:
        return {"name": method}
    lam = lams[SCENARIOS.index(scenario)]
    return {"name": method, "lam": lam * (FACTORS[scenario] if name == "SWR" else 1)}


def measure_stages(run: TrainedRun, epochs: int) -> dict[str, object]:
    """Return the measures of the rule (%); epochs: of a stage."""
    firsts = run.test[epochs::epochs]
    switch = mean(b - a for a, b in zip(run.stages[:-1], firsts, strict=True))
    return {
        "final": run.stages[-1],
        "later": mean(run.stages[1:]),
        "switch": switch,
        "drop": -switch,
        "first fit": run.train[epochs - 1],
        "last fit": run.train[-1],
        "test accuracy (%) by stage": run.stages,
        "test accuracy (%) after the first stage": run.test[epochs:],
    }


def judge_pair(
    runs: Runs, scenario: str, quantity: str, a: str, b: str | None, comparable: bool = False
) -> ClaimFigure:
    """Judge by the rule whether a is above b (None: above 0), or comparable to it."""
    arms = (scenario, a), (scenario, b) if b else None
    what = f"{scenario}, {quantity}: {a} {'comparable to' if comparable else 'above'} {b or 0}"
    if not comparable:
        return runs.judge_above(what, quantity, *arms)
    gain = runs.compare(quantity, *arms)
    return engine.judge(what, f"at least -{MARGIN}", f"{gain}", gain.mean >= -MARGIN)


def judge_warm_start(runs: Runs) -> Iterator[ClaimFigure]:
    pairs = [("cold", "vanilla"), ("SWR", "vanilla"), *((a, "cold") for a in PENALTIES)]
    for a, b in (*pairs, *((a, "vanilla") for a in RESETS)):
        yield judge_pair(runs, WARM, "final", a, b)
    for b in PENALTIES + RESETS:
        yield judge_pair(runs, WARM, "final", "SWR", b, comparable=True)


def judge_full(runs: Runs) -> Iterator[ClaimFigure]:
    for a in (*PENALTIES, *RESETS, "SWR"):
        yield judge_pair(runs, FULL, "later", a, "vanilla")
    for a in RESETS:
        yield judge_pair(runs, FULL, "drop", a, None)


def judge_limited(runs: Runs) -> Iterator[ClaimFigure]:
    for b in PENALTIES:
        yield judge_pair(runs, LIMITED, "switch", "SWR", b)
    for b in PENALTIES:
        yield judge_pair(runs, LIMITED, "later", "S&P", b, comparable=True)


def require_learned_stage(runs: Runs, scenario: str, stage: str) -> ClaimCondition:
    """Require that plain training ends this stage with its images learned by heart."""
    what = f"training accuracy of vanilla, end of the {stage} stage"
    return runs.require(what, f"{stage} fit", (scenario, "vanilla"))


def require_gap(runs: Runs) -> ClaimCondition:
    gap = runs.compare("final", (WARM, "cold"), (WARM, "vanilla"))
    what = "gap that a warm start leaves: final accuracy, cold - vanilla"
    required, ours = "above 2 standard errors", f"{gap}"
    return ClaimCondition(what=what, required=required, ours=ours, holds=gap.is_clear)


RULE = (
    f"{engine.ABOVE}. A comparable to B: reproduced if the mean of A - B is at least -{MARGIN}"
    " percentage points, otherwise not. Final: test accuracy (%) after the last stage; later:"
    " mean over the ends of all stages but the first; switch: accuracy after the first epoch of a"
    " stage minus that before it, mean over stages"
)
CLAIM = engine.Claim(
    source="soft weight rescaling, sections 4.1 and 4.2, Figures 2 to 4",
    statements={
        WARM: engine.ClaimStatement(
            "after half of the images, SWR is comparable to or better than resets, penalties",
            "the first stage is learned by heart, and costs accuracy: a new start gains",
            RULE,
            lambda runs: [require_learned_stage(runs, WARM, "first"), require_gap(runs)],
            judge_warm_start,
        ),
        FULL: engine.ClaimStatement(
            "where images arrive in ten parts, resets, penalties and SWR beat plain training",
            "plain training learns all images by heart by the last stage",
            RULE,
            lambda runs: [require_learned_stage(runs, FULL, "last")],
            judge_full,
        ),
        LIMITED: engine.ClaimStatement(
            "where past images are gone, SWR loses less at a change than penalties do",
            "plain training learns its images by heart by the last stage",
            RULE,
            lambda runs: [require_learned_stage(runs, LIMITED, "last")],
            judge_limited,
        ),
    },
    measure=measure,
    arms=[(scenario, method) for scenario in SCENARIOS for method in METHODS],
    curves={
        "test accuracy (%) by stage": ("stage", range(1, 11)),
        "test accuracy (%) after the first stage": engine.FROM_FIRST,
    },
    seeds=3,
    full_seeds=20,
)
