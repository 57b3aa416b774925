"""Forgetting in SEAL: training accuracy falls to chance in the ascent and recovers.

https://arxiv.org/abs/2304.04858, section 3.2, states this of a ResNet-50 on TinyImageNet without a
number. Here: a small residual network on the digits of scikit-learn, 3 generations of 16 epochs.
The accuracy is that of log.jsonl: over an epoch's batches, each before its step.

The paper ascends for 40 epochs of 3,125 steps per generation with S = 0.01. A run of seconds has a
few hundredths of these steps, so the same S would hardly change the early layers. `match_factor`
returns the S for which S times the sum of the learning rates over an ascent equals that of the
paper.

Tried on other seeds: generations of 8 epochs, where the descent of 6 epochs ends at 98.1 %, so that
the next ascent does not start from images learned by heart (falls to 32 and 46 %).
"""

from statistics import mean
from typing import TYPE_CHECKING

from fsbench.claims import (
    FITTED,
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    ClaimVerdict,
    _runs,
    choose_verdict,
    require_at_least,
)
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

CLAIM = Claim(
    source="SEAL, section 3.2",
    statements={
        "forgetting": ClaimStatement(
            text="gradient ascent on early layers drops training accuracy to chance, descent"
            " restores it",
            condition="the images are learned by heart before every ascent",
            rule="means over seeds, generations 2 and 3, with S such that S times the sum of"
            " learning rates over an ascent is that of the paper. Fall: reproduced if the last"
            " epoch of the ascent has at most twice chance (20 %), direction only if it has at most"
            " half of the epoch before the ascent. Return: reproduced if the last epoch of the"
            " generation is at most 5 points below the epoch before the ascent, direction only if"
            " half of the loss is regained",
        )
    },
    seeds=2,
    full_seeds=10,
    first_seed=110,
)
PAPERS_S, PAPERS_IMAGES = 0.01, 100_000
GENERATIONS, BATCH = 3, 32
EPOCHS, IMAGES = 16, _runs.IMAGES - _runs.VALIDATION
ASCENT = EPOCHS // 4
CHANCE = 100 / _runs.CLASSES
STRONGER = 3.0
"""Second strength of the notes, in units of the matched one."""


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Train with three strengths of the ascent; judge the matched one."""
    matched = match_factor(EPOCHS, IMAGES)
    strengths = (PAPERS_S, matched, STRONGER * matched)
    traces = _runs.run_seeds(trace_accuracy, strengths, settings, "seal_ascent", report)
    means = {s: [mean(epoch) for epoch in zip(*rows, strict=True)] for s, rows in traces.items()}
    before = [extract_moments(g, means[matched])[0] for g in range(1, GENERATIONS)]
    figures = [f for g in range(1, GENERATIONS) for f in _judge_generation(g, means[matched])]
    condition = require_at_least("training accuracy before an ascent", before, FITTED)
    return CLAIM.judge(
        settings,
        {"forgetting": ([condition], figures)},
        notes=(
            f"judged at S = {matched:.2f}",
            *(_describe_strength(s, trace) for s, trace in means.items()),
        ),
        panels=(_accuracy_panel(means),),
    )


def build_seal_recipe(
    method: str, epochs: int, seed: int, factor: float = PAPERS_S, generations: int = GENERATIONS
) -> "Recipe":
    """Build the recipe of a method; factor: S, for `seal` only."""
    settings = {"ascent_factor": factor} if method == "seal" else {}
    return _runs.build_claim_recipe(
        [{"name": method, **settings}],
        {"rounds": generations, "epochs": epochs},
        seed,
        architecture="toy_resnet",
        batch_size=BATCH,
        lr=0.1,
        channels_last=False,
        validate_every=epochs,
    )


def match_factor(epochs: int, images: int) -> float:
    """Return the S that makes an ascent as long as the paper's, for these epochs and images."""
    return scale_factor(build_seal_recipe("seal", epochs, 0), images)


def scale_factor(seal: "Recipe", images: int) -> float:
    """Return the S that makes the ascents of a recipe as long as the paper's."""
    from pretrain.recipes import registry
    from pretrain.recipes.schedules import sum_rates

    papers = registry.load_recipe("paper/seal")
    theirs = sum_rates(papers, papers.plan.epochs // 4, PAPERS_IMAGES)
    return PAPERS_S * theirs / sum_rates(seal, seal.plan.epochs // 4, images)


def trace_accuracy(job: tuple[float, int]) -> list[float]:
    """Train once with (S, seed); return the training accuracy (%) of every epoch."""
    strength, seed = job
    chosen = build_seal_recipe("seal", EPOCHS, seed, strength)
    log = _runs.train_once(chosen, _runs.load_digits_source(seed, IMAGES)).log
    return [100 * line["train_accuracy"] for line in log]


def extract_moments(generation: int, trace: list[float]) -> tuple[float, float, float]:
    """Return the accuracy before an ascent, in its last epoch, and at the generation's end."""
    start = generation * EPOCHS
    return trace[start - 1], trace[start + ASCENT - 1], trace[start + EPOCHS - 1]


def _judge_generation(generation: int, trace: list[float]) -> tuple[ClaimFigure, ClaimFigure]:
    """Judge fall and return of a generation by the rule."""
    before, low, after = extract_moments(generation, trace)
    what = f"generation {generation + 1}"
    fall = ClaimFigure(
        what=f"{what}: accuracy after the ascent",
        published="completely random",
        ours=f"{low:.1f} % (before {before:.1f} %, chance {CHANCE:.0f} %)",
        verdict=judge_fall(before, low),
    )
    back = ClaimFigure(
        what=f"{what}: accuracy at its end",
        published="trained again",
        ours=f"{after:.1f} %",
        verdict=judge_return(before, low, after),
    )
    return fall, back


def judge_fall(before: float, low: float) -> ClaimVerdict:
    """Return the verdict on a fall by the rule."""
    return choose_verdict(low <= 2 * CHANCE, low <= before / 2)


def judge_return(before: float, low: float, after: float) -> ClaimVerdict:
    """Return the verdict on a return by the rule; without a fall there is none."""
    if low >= before:
        return "not reproduced"
    return choose_verdict(after >= before - 5, after - low >= (before - low) / 2)


def _describe_strength(strength: float, trace: list[float]) -> str:
    """Describe the effect of an ascent of this strength."""
    moments = [extract_moments(g, trace) for g in range(1, GENERATIONS)]
    parts = [f"{before:.0f} -> {low:.0f} -> {after:.0f} %" for before, low, after in moments]
    return f"S = {strength:.2f}: {', then '.join(parts)}"


def _accuracy_panel(means: dict[float, list[float]]) -> Panel:
    """Plot training accuracy over all epochs."""
    epochs = tuple(float(e + 1) for e in range(GENERATIONS * EPOCHS))
    curves = tuple(Curve(label=f"S = {s:.2f}", x=epochs, y=tuple(t)) for s, t in means.items())
    return Panel(title="ascent and descent", x="epoch", y="training accuracy (%)", curves=curves)
