"""Forgetting in SEAL: training accuracy falls to chance in the ascent and recovers."""

from collections.abc import Sequence
from statistics import mean
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
    """Train with an arm's strength S; measure the training accuracy (%) of every epoch.

    before 2, low 2, end 2 and on: that of the moments of generation 2 and on.
    """
    epochs = FULL_EPOCHS if job.settings.full else EPOCHS
    recipe = build_seal_recipe("seal", epochs, job.seed)
    if job.arm == LONG:
        recipe = lengthen_ascent(recipe, IMAGES)
    run = _training.train_once(recipe, _training.load_digits_source(job.seed, IMAGES))
    moments = {
        f"{moment} {generation}": accuracy
        for generation in range(2, GENERATIONS + 1)
        for moment, accuracy in extract_moments(run.train, generation, GENERATIONS).items()
    }
    return {**measure_ascent(recipe, IMAGES), **moments, ACCURACY: run.train}


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


def extract_moments(trace: Sequence[float], generation: int, generations: int) -> dict[str, float]:
    """Return the accuracy in the last epoch before an ascent, of it (low) and of the generation.

    trace: accuracy of every epoch of all generations; generation: from 2.
    """
    epochs = len(trace) // generations
    start = (generation - 1) * epochs
    last = {"before": start, "low": start + epochs // 4, "end": start + epochs}
    return {moment: trace[epoch - 1] for moment, epoch in last.items()}


def judge_generations(runs: Runs) -> Judgements:
    """Judge all generations but the first, means over seeds."""
    what = "descent / ascent, by sums of learning rates"
    yield runs.require(what, "ratio", PAPERS, LEAST_RATIO, "")
    what, least = "S times the sum of the rates over an ascent", measure_papers_ascent()["length"]
    yield runs.require(what, "length", PAPERS, least, "")
    generations = range(2, GENERATIONS + 1)
    starts = [runs.collect(f"before {generation}", PAPERS) for generation in generations]
    what = "training accuracy before an ascent"
    yield engine.require(what, "at least", engine.FITTED, min(starts, key=mean))
    for generation in generations:
        before, low, end = (
            runs.compare(f"{moment} {generation}", PAPERS) for moment in ("before", "low", "end")
        )
        yield engine.judge(
            f"generation {generation}: accuracy after the ascent",
            "completely random",
            f"{low.show('.1f')} % (before {before.show('.1f')} %, chance {CHANCE:.0f} %)",
            low.mean <= 2 * CHANCE,
            low.mean <= before.mean / 2,
        )
        fall, rise = before.mean - low.mean, end.mean - low.mean
        yield engine.judge(
            f"generation {generation}: accuracy at its end",
            "trained again",
            f"{end.show('.1f')} %",
            fall > 0 and rise >= fall - 5,
            fall > 0 and rise >= fall / 2,
        )


CLAIM = engine.Claim(
    engine.read_claim_card("seal_ascent"),
    {"forgetting": judge_generations},
    measure,
    arms=(PAPERS,),
    quick_arms=(LONG,),  # with `full` the paper's S makes the same ascent
    curves={ACCURACY: engine.FROM_FIRST},
)
