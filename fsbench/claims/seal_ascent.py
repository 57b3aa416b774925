"""Forgetting in SEAL: training accuracy falls to chance in the ascent and recovers."""

from collections.abc import Sequence

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.schedules import sum_rates

PAPERS_S, PAPERS_IMAGES = 0.01, 100_000
GENERATIONS, EPOCHS, IMAGES = 3, 16, _training.IMAGES - _training.VALIDATION
CHANCE, MATCHED = 100 / _training.CLASSES, "matched"
ACCURACY = "training accuracy (%)"


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with the matched strength S; measure the training accuracy (%) of every epoch."""
    recipe = build_seal_recipe("seal", EPOCHS, job.seed, IMAGES)
    run = _training.train_once(recipe, _training.load_digits_source(job.seed, IMAGES))
    return {"S": recipe.methods[0].model_dump()["ascent_factor"], ACCURACY: run.train}


def build_seal_recipe(method: str, epochs: int, seed: int, images: int) -> Recipe:
    """Build the recipe of a method on so many images; the ascent of `seal` is matched."""
    recipe = _training.build_claim_recipe(
        [{"name": method}],
        {"rounds": GENERATIONS, "epochs": epochs},
        seed,
        architecture="toy_resnet",
        batch_size=32,
        lr=0.1,
        channels_last=False,
        validate_every=epochs,
    )
    return match_ascent(recipe, images) if method == "seal" else recipe


def match_ascent(seal: Recipe, images: int) -> Recipe:
    """Return the recipe with the S that makes its ascents as long as the paper's."""
    papers = registry.load_recipe("paper/seal")
    theirs = sum_rates(papers, papers.plan.epochs // 4, PAPERS_IMAGES)
    factor = PAPERS_S * theirs / sum_rates(seal, seal.plan.epochs // 4, images)
    return seal.replace({"seal.ascent_factor": factor})


def extract_moments(trace: Sequence[float], generation: int) -> tuple[float, float, float]:
    """Return the accuracy before an ascent, in its last epoch, and at the generation's end."""
    epochs = len(trace) // GENERATIONS
    start = generation * epochs
    return trace[start - 1], trace[start + epochs // 4 - 1], trace[start + epochs - 1]


def judge_generations(runs: Runs) -> Judgements:
    """Judge all generations but the first, means over seeds."""
    trace = engine.average(runs.collect(ACCURACY, MATCHED))
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
    arms=(MATCHED,),
    curves={ACCURACY: engine.FROM_FIRST},
)
