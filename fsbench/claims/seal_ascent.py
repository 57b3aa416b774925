"""Forgetting in SEAL: training accuracy falls to chance in the ascent and recovers."""

from collections.abc import Iterator, Sequence

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimFigure, ClaimJob, ClaimRule, Runs
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.schedules import sum_rates

PAPERS_S, PAPERS_IMAGES = 0.01, 100_000
GENERATIONS, EPOCHS, IMAGES = 3, 16, _training.IMAGES - _training.VALIDATION
CHANCE, MATCHED = 100 / _training.CLASSES, "matched"


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with the matched strength; measure the training accuracy (%) of every epoch."""
    strength = match_factor(EPOCHS, IMAGES)
    recipe = build_seal_recipe("seal", EPOCHS, job.seed, strength)
    run = _training.train_once(recipe, _training.load_digits_source(job.seed, IMAGES))
    return {"S": strength, "training accuracy (%)": run.train}


def build_seal_recipe(method: str, epochs: int, seed: int, factor: float = PAPERS_S) -> Recipe:
    """Build the recipe of a method; factor: S, for `seal` only."""
    return _training.build_claim_recipe(
        [{"name": method} | ({"ascent_factor": factor} if method == "seal" else {})],
        {"rounds": GENERATIONS, "epochs": epochs},
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
    trace = engine.average(runs.collect("training accuracy (%)", MATCHED))
    return [extract_moments(trace, generation) for generation in range(1, GENERATIONS)]


def require_learned_images(runs: Runs) -> list[engine.ClaimCondition]:
    before = [before for before, _, _ in average_moments(runs)]
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
    engine.read_claim_card("seal_ascent"),
    {"forgetting": ClaimRule(require_learned_images, judge_generations)},
    measure,
    arms=(MATCHED,),
    curves={"training accuracy (%)": engine.FROM_FIRST},
)
