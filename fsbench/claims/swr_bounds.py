"""Soft weight rescaling bounds the weights, generalises better and balances the layers."""

from collections.abc import Sequence
from itertools import permutations
from statistics import mean

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from pretrain.training.context import Context
from pretrain.weights.surgery import frobenius_norms
from protocols.analyses.balancedness import compute_balancedness

DIGITS, COLOUR = "digits with wrong labels", "colour images"
METHODS = {"vanilla": "normal", "SWR": "swr"}
EPOCHS, LAMS = {DIGITS: 160, COLOUR: 60}, {DIGITS: 1e-1, COLOUR: 1e-2}
PLAIN, SWR = ((DIGITS, method) for method in METHODS)
COLOUR_PLAIN, COLOUR_SWR = ((COLOUR, method) for method in METHODS)
EQUAL = 5.0
"""Largest difference of two training accuracies (points) that count as equal."""
ADAM_STEP = 0.1 / 0.001**0.5
"""Largest step of an element by Adam, in learning rates: (1 - beta1) / sqrt(1 - beta2)."""


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with a method on a source; measure the layers and the accuracies."""
    name, method = job.arm
    if name == COLOUR:
        source = _training.load_colour_source(job, 1000)
    else:
        source = _training.load_digits_source(job.seed, noise=_training.NOISE)
    chosen = {"name": METHODS[method]} | ({"lam": LAMS[name]} if method == "SWR" else {})
    recipe = _training.build_swr_recipe(chosen, source, job.seed, EPOCHS[name])
    run = _training.train_once(recipe, source, measure_layers)
    norms, sizes, balance = zip(*run.watched, strict=True)
    return {
        "test accuracy (%)": run.test,
        "mean test": mean(run.test),
        "fit": run.train[-1],
        "balancedness": balance,
        "mean balance": mean(balance),
        **compare_norms(norms, sizes[0], LAMS[name]),
    }


def measure_layers(ctx: Context) -> tuple[list[float], list[int], float]:
    """Return the norm and the number of elements of every layer, and the balancedness."""
    kernels = _training.get_kernels(ctx)
    sizes = [kernel.numel() for kernel in kernels]
    return frobenius_norms(kernels).tolist(), sizes, compute_balancedness(kernels)


def compare_norms(
    norms: Sequence[Sequence[float]], sizes: Sequence[int], lam: float
) -> dict[str, object]:
    """Compare the norms (epochs, layers) of layers of these sizes with the start.

    norm: of all layers together; late growth: of that over the last half of the epochs;
    shares: largest norm of every layer relative to its bound n + d / lam; imbalance: mean over
    epochs and pairs of layers of |r_t - r_0| (Definition 2), where r is the ratio of the norms of
    two layers, with the initially larger one on top.
    """
    total = [sum(n * n for n in epoch) ** 0.5 for epoch in norms]
    start, largest = norms[0], map(max, zip(*norms, strict=True))
    steps = [_training.LR * ADAM_STEP * size**0.5 for size in sizes]
    shares = [top / (n + d / lam) for top, n, d in zip(largest, start, steps, strict=True)]
    pairs = [(i, j) for i, j in permutations(range(len(start)), 2) if start[i] > start[j]]
    imbalance = mean(
        mean(abs(epoch[i] / epoch[j] - start[i] / start[j]) for i, j in pairs) for epoch in norms
    )
    return {
        "norm": total,
        "late growth": total[-1] - total[len(total) // 2],
        "least share": min(shares),
        "largest share": max(shares),
        "imbalance": imbalance,
    }


def judge_norms(runs: Runs) -> Judgements:
    what = "largest norm of vanilla, in units of the bound"
    yield runs.require(what, "least share", PLAIN, 1.0, "")
    share = max(runs.collect("largest share", SWR))
    what = "SWR: norms under the bound of Theorem 2"
    yield engine.judge(what, "below", f"{share:.2f} of it", share <= 1)
    growth, quantity = "growth of the norm, last half", "late growth"
    yield runs.compare(quantity, PLAIN).judge(f"vanilla: {growth}")
    yield runs.compare(quantity, PLAIN, SWR).judge(f"{growth}: vanilla - SWR")


def judge_accuracy(runs: Runs) -> Judgements:
    for images in (COLOUR, DIGITS):
        plain, swr = ((images, method) for method in METHODS)
        yield runs.require(f"{images}: training accuracy of vanilla", "fit", plain)
        gain = runs.compare("mean test", swr, plain)
        yield gain.judge(f"{images}: test accuracy, SWR - vanilla", spec=".3f")


def judge_balancedness(runs: Runs) -> Judgements:
    plain, swr = COLOUR_PLAIN, COLOUR_SWR
    yield runs.require("training accuracy of vanilla", "fit", plain)
    what = "difference in training accuracy, vanilla and SWR"
    yield runs.require_equal(what, "fit", plain, swr, EQUAL)
    gain = runs.compare("mean balance", swr, plain)
    yield gain.judge("balancedness: SWR - vanilla", spec=".3f")
    what = "Definition 2, change of the layers' ratios: vanilla - SWR"
    yield runs.compare("imbalance", plain, swr).judge(what, spec=".3f")


CLAIM = engine.Claim(
    engine.read_claim_card("swr_bounds"),
    {"bound": judge_norms, "accuracy": judge_accuracy, "balancedness": judge_balancedness},
    measure,
    arms=(PLAIN, SWR),
    colour_arms=(COLOUR_PLAIN, COLOUR_SWR),
    curves={
        "norm": engine.FROM_START,
        "balancedness": engine.FROM_START,
        "test accuracy (%)": engine.FROM_FIRST,
    },
)
