"""NIO on a small network: GradCosine and gradient norm before and after."""

from collections.abc import Sequence
from statistics import mean

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimFigure, ClaimJob, Judgements, Runs
from fsbench.core import seeding
from pretrain.recipes.recipe import Recipe
from pretrain.training.context import Context

EXACT, LEAST = 1e-6, 0.01
"""Float32 rounding; smallest factor of a weight."""
ROOM = 0.99
"""Largest initial GC that can rise clearly."""
BATCH, ZOOM, STEPS = 128, 2, 50
SETTINGS = {"without BN": ("cnn", 0.7, 1.5e-2, 4.0), "with BN": ("cnn_bn", 0.6, 1.5e-2, 5.0)}
"""Architecture, and overlap, rate and gamma (cap) of the appendix for ResNet-110 on CIFAR-10."""
GC, GN = "gc", "gc_gn_sqrt"
"""Objectives; an arm is a network and an objective."""


def measure(job: ClaimJob) -> dict[str, float]:
    """Run NIO; measure the network before its first training step."""
    source = _training.load_digits_source(job.seed, zoom=ZOOM)
    effects = _training.train_once(build_nio_recipe(job), source, measure_effect).watched
    return dict(effects[0])


def build_nio_recipe(job: ClaimJob) -> Recipe:
    """Build the recipe: NIO, then one training step, which is not used."""
    kind, objective = job.arm
    architecture, overlap, rate, gamma = SETTINGS[kind]
    nio = {"overlap": overlap, "rate": rate, "gamma": gamma, "iterations": STEPS}
    return _training.build_claim_recipe(
        [{"name": "nio", "objective": objective, "parts": 2, "batch_size": BATCH, **nio}],
        {"rounds": 1, "epochs": 1, "epoch_images": BATCH},
        job.seed,
        architecture=architecture,
        input_size=_training.SIDE * ZOOM,
        batch_size=BATCH,
        warmup=0.0,
    )


def measure_effect(ctx: Context) -> dict[str, float]:
    """Compare a network after NIO with its plain initialisation.

    misfit: largest |w - m w0| over max |w0| of a tensor with factor m; zero, still zero: numbers of
    tensors that were and are zero.
    """
    with seeding.stream(*ctx.recipe.stream("init")):
        initial = dict(ctx.architecture.build(ctx.classes, ctx.recipe.width).state_dict())
    memory = ctx.memories["nio"]
    (gc, gn), (gc_after, gn_after), factors = memory["before"], memory["after"], memory["factors"]
    misfits, zeros = [], []
    for name, w in ctx.model.named_parameters():
        if (w0 := initial[name]).any():
            apart = (w.detach() - w0 * factors.get(name, 1.0)).abs().max()
            misfits.append(float(apart / w0.abs().max()))
        else:
            zeros.append(not w.any())
    return {
        "GC before": gc,
        "GC after": gc_after,
        "GN before": gn,
        "GN after": gn_after,
        "smallest factor": min(factors.values()),
        "of a weight": min(m for name, m in factors.items() if not name.endswith("bias")),
        "misfit": max(misfits),
        "zero": len(zeros),
        "still zero": sum(zeros),
    }


def judge_alignment(runs: Runs) -> Judgements:
    for kind, (*_, gamma) in SETTINGS.items():
        before, after = (runs.collect(f"GC {moment}", (kind, GC)) for moment in ("before", "after"))
        yield engine.require(f"{kind}: initial GC", "at most", ROOM, before, "")
        yield judge_change(f"{kind}: GC", "maximised", before, after)
        norm = engine.average_seeds(runs.collect("GN after", (kind, GC)))
        what, published = f"{kind}: GN after", f"at most {gamma:g}"
        yield engine.judge(what, published, norm.show(), norm.mean <= gamma)
        yield judge_factors(runs, kind, GC)


def judge_norm(runs: Runs) -> Judgements:
    for kind, (*_, gamma) in SETTINGS.items():
        before, after = (runs.collect(f"GN {moment}", (kind, GN)) for moment in ("before", "after"))
        what, starts = f"{kind}: initial GN, in units of its cap", [n / gamma for n in before]
        yield engine.require(what, "at most", 1.0, starts, "")
        yield judge_change(f"{kind}: GN", "rises (log: 4.7 to 8.1)", before, after)
        far, near = ([abs(norm - gamma) for norm in norms] for norms in (before, after))
        what, published = f"{kind}: distance of GN to its cap {gamma:g}", "falls (log: 5.3 to 1.9)"
        yield judge_change(what, published, far, near, sign=-1)
        yield judge_factors(runs, kind, GN)


def judge_change(
    what: str, published: str, before: Sequence[float], after: Sequence[float], sign: int = 1
) -> ClaimFigure:
    """Judge whether a quantity rises (sign -1: falls), by the mean over seeds."""
    gains = [sign * (b - a) for a, b in zip(before, after, strict=True)]
    ours = f"{mean(before):.3f} to {mean(after):.3f}"
    return engine.judge_gains(what, published, ours, gains)


def judge_factors(runs: Runs, kind: str, objective: str) -> ClaimFigure:
    """Judge what holds by construction, so of every tensor and seed."""
    names = ("smallest factor", "of a weight", "misfit", "zero", "still zero")
    factors, weights, misfits, zero, still = (
        runs.collect(name, (kind, objective)) for name in names
    )
    return engine.judge(
        f"{kind}: one factor a tensor",
        f"at least {LEAST:g}, directions and zeros kept",
        f"smallest {min(factors):.3f}; off by {max(misfits):.1g};"
        f" {sum(still)} of {sum(zero)} zero tensors stay",
        max(misfits) <= EXACT and min(factors) >= 0 and min(weights) >= LEAST and zero == still,
    )


CLAIM = engine.Claim(
    engine.read_claim_card("nio_gradcosine"),
    {GC: judge_alignment, GN: judge_norm},
    measure,
    arms=[(kind, objective) for objective in (GC, GN) for kind in SETTINGS],
)
