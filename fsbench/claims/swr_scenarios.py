"""Warm start and continual learning: SWR and the comparators of its paper."""

from functools import partial
from statistics import mean

from fsbench.claims import _training, engine
from fsbench.claims._training import TrainedRun
from fsbench.claims.engine import ClaimCondition, ClaimJob, Judgements, Runs

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
COMPARISONS: dict[str, list[tuple[str, str, str, str | None]]] = {
    WARM: [
        *(("final", method, "above", "vanilla") for method in ("cold", "SWR", *RESETS)),
        *(("final", method, "above", "cold") for method in PENALTIES),
        *(("final", "SWR", "comparable to", method) for method in (*PENALTIES, *RESETS)),
    ],
    FULL: [
        *(("later", method, "above", "vanilla") for method in (*PENALTIES, *RESETS, "SWR")),
        *(("drop", method, "above", None) for method in RESETS),
    ],
    LIMITED: [
        *(("switch", "SWR", "above", method) for method in PENALTIES),
        *(("later", "S&P", "comparable to", method) for method in PENALTIES),
    ],
}
"""Quantity and two methods (None: 0) that the paper compares, by scenario."""


def measure(job: ClaimJob) -> dict[str, object]:
    scenario, name = job.arm
    images, epochs = SETUPS[scenario]
    source = _training.load_digits_source(job.seed, images, noise=_training.NOISE)
    method = build_method_settings(scenario, name)
    recipe = _training.build_swr_recipe(method, source, job.seed, epochs, scenario)
    return measure_stages(_training.train_once(recipe, source), epochs)


def build_method_settings(scenario: str, name: str) -> dict[str, object]:
    (method, lams), factor = METHODS[name], FACTORS[scenario] if name == "SWR" else 1
    lam = {"lam": lams[SCENARIOS.index(scenario)] * factor} if lams else {}
    return {"name": method, **lam}


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


def judge_scenario(scenario: str, runs: Runs) -> Judgements:
    """Judge a scenario in which plain training ends a stage with its images learned by heart."""
    stage = "first" if scenario == WARM else "last"
    what = f"training accuracy of vanilla, end of the {stage} stage"
    yield runs.require(what, f"{stage} fit", (scenario, "vanilla"))
    if scenario == WARM:
        gap = runs.compare("final", (WARM, "cold"), (WARM, "vanilla"))
        what = "gap that a warm start leaves: final accuracy, cold - vanilla"
        required, ours = "above 2 standard errors", f"{gap}"
        yield ClaimCondition(what=what, required=required, ours=ours, holds=gap.is_clear)
    for quantity, a, relation, b in COMPARISONS[scenario]:
        gain = runs.compare(quantity, (scenario, a), (scenario, b) if b else None)
        what = f"{scenario}, {quantity}: {a} {relation} {b or 0}"
        if relation == "above":
            yield gain.judge(what)
        else:
            yield engine.judge(what, f"at least -{MARGIN}", f"{gain}", gain.mean >= -MARGIN)


CLAIM = engine.Claim(
    engine.read_claim_card("swr_scenarios"),
    {scenario: partial(judge_scenario, scenario) for scenario in SCENARIOS},
    measure,
    arms=[(scenario, method) for scenario in SCENARIOS for method in METHODS],
    curves={
        "test accuracy (%) by stage": ("stage", range(1, 11)),
        "test accuracy (%) after the first stage": engine.FROM_FIRST,
    },
)
