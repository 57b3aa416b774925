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

from collections.abc import Iterator, Sequence

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimFigure, ClaimJob, Runs
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.schedules import sum_rates

PAPERS_S, PAPERS_IMAGES = 0.01, 100_000
GENERATIONS, EPOCHS, IMAGES = 3, 16, _training.IMAGES - _training.VALIDATION
CHANCE = 100 / _training.CLASSES
ARMS = {"paper's": 0.0, "matched": 1.0, "stronger": 3.0}
"""Strength S of the ascent in units of the matched one, which is judged; 0: the paper's own."""


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with a strength of the ascent; measure the training accuracy (%) of every epoch."""
    strength = ARMS[job.arm] * match_factor(EPOCHS, IMAGES) or PAPERS_S
    recipe = build_seal_recipe("seal", EPOCHS, job.seed, strength)
    run = _training.train_once(recipe, _training.load_digits_source(job.seed, IMAGES))
    return {"S": strength, "training accuracy (%)": run.train}


def build_seal_recipe(
    method: str, epochs: int, seed: int, factor: float = PAPERS_S, generations: int = GENERATIONS
) -> Recipe:
    """Build the recipe of a method; factor: S, for `seal` only."""
    return _training.build_claim_recipe(
        [{"name": method} | ({"ascent_factor": factor} if method == "seal" else {})],
        {"rounds": generations, "epochs": epochs},
        seed,
        architecture="toy_resnet",
        batch_size=32,
        lr=0.1,
        channels_last=False,
        validate_every=epochs,
    )


def match_factor(epochs: int, images: int) -> float:
    """Return the S that makes an ascent as long as the paper's, for these epochs and images."""
    return scale_factor(build_seal_recipe("seal", epochs, 0), images)


def scale_factor(seal: Recipe, images: int) -> float:
    """Return the S that makes the ascents of a recipe as long as the paper's."""
    papers = registry.load_recipe("paper/seal")
    theirs = sum_rates(papers, papers.plan.epochs // 4, PAPERS_IMAGES)
    return PAPERS_S * theirs / sum_rates(seal, seal.plan.epochs // 4, images)


def extract_moments(trace: Sequence[float], generation: int) -> tuple[float, float, float]:
    """Return the accuracy before an ascent, in its last epoch, and at the generation's end."""
    epochs = len(trace) // GENERATIONS
    start = generation * epochs
    return trace[start - 1], trace[start + epochs // 4 - 1], trace[start + epochs - 1]


def average_moments(runs: Runs) -> list[tuple[float, float, float]]:
    """Return the moments of all generations but the first, means over seeds."""
    trace = engine.average(runs.collect("training accuracy (%)", "matched"))
    return [extract_moments(trace, generation) for generation in range(1, GENERATIONS)]


def require_learned_images(runs: Runs) -> list[engine.ClaimCondition]:
    before = min(before for before, _, _ in average_moments(runs))
    what = "training accuracy before an ascent"
    return [engine.require(what, "at least", engine.FITTED, before)]


def judge_generations(runs: Runs) -> Iterator[ClaimFigure]:
    for generation, (before, low, after) in enumerate(average_moments(runs), 2):
        yield engine.judge(
            f"generation {generation}: accuracy after the ascent",
            "completely random",
            f"{low:.1f} % (before {before:.1f} %, chance {CHANCE:.0f} %)",
            low <= 2 * CHANCE,
            low <= before / 2,
        )
        yield engine.judge(
            f"generation {generation}: accuracy at its end",
            "trained again",
            f"{after:.1f} %",
            low < before and after >= before - 5,
            low < before and after - low >= (before - low) / 2,
        )


CLAIM = engine.Claim(
    source="SEAL, section 3.2",
    statements={
        "forgetting": engine.ClaimStatement(
            text="gradient ascent on early layers drops training accuracy to chance, descent"
            " restores it",
            condition="the images are learned by heart before every ascent",
            rule="means over seeds, generations 2 and 3, with S such that S times the sum of"
            " learning rates over an ascent is that of the paper. Fall: reproduced if the last"
            " epoch of the ascent has at most twice chance (20 %), direction only if it has at most"
            " half of the epoch before the ascent. Return: reproduced if the last epoch of the"
            " generation is at most 5 points below the epoch before the ascent, direction only if"
            " half of the loss is regained",
            conditions=require_learned_images,
            figures=judge_generations,
        )
    },
    measure=measure,
    arms=ARMS,
    curves={"training accuracy (%)": engine.FROM_FIRST},
    seeds=2,
    full_seeds=10,
    first_seed=110,
)
