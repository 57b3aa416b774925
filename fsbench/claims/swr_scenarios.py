"""Warm start and continual learning: SWR and the comparators of its paper."""

from functools import partial
from statistics import mean

from fsbench.claims import _training, engine
from fsbench.claims._training import TrainedRun
from fsbench.claims.engine import ClaimCondition, ClaimJob, ClaimSettings, Judgements, Runs

MARGIN = 0.5
"""Percentage points."""
WARM, FULL, LIMITED = SCENARIOS = ("warm-start", "continual-full", "continual-limited")
IMAGES, EPOCHS = 1000, {WARM: 70, FULL: 20, LIMITED: 40}
"""Training images; epochs of a stage by scenario."""
METHODS: dict[str, tuple[str, tuple[float, ...]]] = {
    "vanilla": ("normal", ()),
    "cold": ("full_reset", ()),
    "L2": ("l2", (1e-2, 1e-4, 1e-3)),
    "L2 Init": ("l2_init", (1e-1, 1e-1, 1e-2)),
    "S&P": ("shrink_perturb", (0.8, 0.8, 0.2)),
    "head reset": ("head_reset", ()),
    "SWR": ("swr", (1e-1, 1e-1, 1e-2)),
}
"""Method, and its `lam` by scenario as `search_coefficients` finds it, by name in the paper."""
SEARCH_SEED, TENTHS = 0, (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
GRIDS = {"L2": TENTHS, "L2 Init": TENTHS, "S&P": (0.2, 0.4, 0.6, 0.8), "SWR": (1.0, *TENTHS[:-1])}
"""Coefficients that the paper tries (appendix D.2), by method."""
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


def is_judged(scenario: str, method: str) -> bool:
    """Return whether the runs of a method are a condition of the scenario, or compared in it."""
    return method == "vanilla" or any(method in (a, b) for _, a, _, b in COMPARISONS[scenario])


def measure(job: ClaimJob) -> dict[str, object]:
    scenario, name = job.arm
    lams = METHODS[name][1]
    run = train_method(job, scenario, name, lams[SCENARIOS.index(scenario)] if lams else None)
    return measure_stages(run, EPOCHS[scenario])


def train_method(job: ClaimJob, scenario: str, name: str, lam: float | None) -> TrainedRun:
    """Train the paper's CNN on colour images; lam: the method's coefficient, if it has one."""
    source = _training.load_colour_source(job, IMAGES)
    method = {"name": METHODS[name][0]} | ({} if lam is None else {"lam": lam})
    epochs, network = EPOCHS[scenario], {"architecture": "cnn"}
    recipe = _training.build_swr_recipe(method, source, job.seed, epochs, scenario, **network)
    return _training.train_once(recipe, source)


def search_coefficients(scenario: str, settings: ClaimSettings) -> dict[str, dict[float, float]]:
    """Return the accuracy (%) with every coefficient of the paper's grids, by method.

    It is the mean over the ends of all stages but the first, on validation images of a seed that
    the claim does not use. The highest one is chosen.
    """
    job = ClaimJob(scenario, SEARCH_SEED, settings)
    accuracies: dict[str, dict[float, float]] = {}
    for name, grid in GRIDS.items():
        stages = {lam: train_method(job, scenario, name, lam).stages for lam in grid}
        accuracies[name] = {lam: mean(ends[1:]) for lam, ends in stages.items()}
    return accuracies


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
    colour_arms=[(s, method) for s in SCENARIOS for method in METHODS if is_judged(s, method)],
    curves={
        "test accuracy (%) by stage": ("stage", range(1, 11)),
        "test accuracy (%) after the first stage": engine.FROM_FIRST,
    },
)
