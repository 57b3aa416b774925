"""Forgetting in SEAL: training accuracy falls to chance in the ascent and recovers."""

from collections.abc import Sequence
from typing import Any

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.schedules import sum_rates

PAPERS_IMAGES, LEAST_RATIO = 100_000, 150.0
GENERATIONS, EPOCHS, FULL_EPOCHS = 3, 16, 1160
IMAGES = _training.IMAGES - _training.VALIDATION
CHANCE, PAPERS, LONG = 100 / _training.CLASSES, "paper's ratio", "long ascent"
ACCURACY = "training accuracy (%)"


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with an arm's strength S; measure the training accuracy (%) of every epoch."""
    epochs = FULL_EPOCHS if job.settings.full else EPOCHS
    recipe = build_seal_recipe("seal", epochs, job.seed)
    if job.arm == LONG:
        recipe = lengthen_ascent(recipe, IMAGES)
    run = _training.train_once(recipe, _training.load_digits_source(job.seed, IMAGES))
    return {**measure_ascent(recipe, IMAGES), ACCURACY: run.train}


def build_seal_recipe(method: str, epochs: int, seed: int) -> Recipe:
    """Build the recipe of a method; `seal` has the paper's strength S."""
    return _training.build_claim_recipe(
        [{"name": method}],
        {"rounds": GENERATIONS, "epochs": epochs},
        seed,
        architecture="toy_resnet",
        batch_size=32,
        lr=0.1,
        channels_last=False,
        validate_every=epochs,
    )


def measure_ascent(recipe: Recipe, images: int) -> dict[str, float]:
    """Measure S, S times the sum of the rates over an ascent (length), and descent / ascent."""
    seal: Any = recipe.method("seal")
    length = seal.ascent_factor * sum_rates(recipe, seal.ascent_epochs(recipe), images)
    ratio = seal.descent_ratio(recipe, images)
    return {"S": seal.ascent_factor, "length": length, "ratio": ratio}


def lengthen_ascent(recipe: Recipe, images: int) -> Recipe:
    """Return the recipe with the S that makes its ascents as long as the paper's."""
    ours, papers = measure_ascent(recipe, images), measure_papers_ascent()
    factor = ours["S"] * papers["length"] / ours["length"]
    return recipe.replace({"seal.ascent_factor": factor})


def measure_papers_ascent() -> dict[str, float]:
    return measure_ascent(registry.load_recipe("paper/seal"), PAPERS_IMAGES)


def extract_moments(trace: Sequence[float], generation: int) -> tuple[float, float, float]:
    """Return the accuracy before an ascent, in its last epoch, and at the generation's end."""
    epochs = len(trace) // GENERATIONS
    start = generation * epochs
    return trace[start - 1], trace[start + epochs // 4 - 1], trace[start + epochs - 1]


def judge_generations(runs: Runs) -> Judgements:
    """Judge all generations but the first, means over seeds."""
    what = "descent / ascent, by sums of learning rates"
    yield runs.require(what, "ratio", PAPERS, LEAST_RATIO, "")
    what, least = "S times the sum of the rates over an ascent", measure_papers_ascent()["length"]
    yield runs.require(what, "length", PAPERS, least, "")
    trace = engine.average(runs.collect(ACCURACY, PAPERS))
    moments = [extract_moments(trace, generation) for generation in range(1, GENERATIONS)]
    starts = [before for before, _, _ in moments]
    what, least = "training accuracy before an ascent", engine.FITTED
    yield engine.require(what, "at least", least, [min(starts)])
    for generation, (before, low, after) in enumerate(moments, 2):
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
    engine.read_claim_card("seal_ascent"),
    {"forgetting": judge_generations},
    measure,
    arms=(PAPERS, LONG),
    curves={ACCURACY: engine.FROM_FIRST},
)
