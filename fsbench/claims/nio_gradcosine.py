"""NIO on a small network: GradCosine and gradient norm before and after."""

from collections.abc import Iterator
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimFigure, ClaimJob, ClaimRule, Runs
from fsbench.core import seeding
from pretrain.recipes.recipe import Recipe

if TYPE_CHECKING:
    from pretrain.training.context import Context

SLACK, EXACT, LEAST = 1.1, 1e-6, 0.01
"""Overshoot of the cap by its last step; float32 rounding; smallest factor of a weight."""
ROOM, NEAR = 0.99, 0.75
"""Largest initial GC that can rise clearly; part of the cap that some GN must reach."""
BATCH, ZOOM, STEPS = 128, 2, 50
SETTINGS = {"without BN": ("cnn", 0.7, 1.5e-2, 4.0), "with BN": ("cnn_bn", 0.6, 1.5e-2, 5.0)}
"""Architecture, and overlap, rate and gamma (cap) of the appendix for ResNet-110 on CIFAR-10."""
ALIGNED, RAISED = ([(kind, name) for kind in SETTINGS] for name in ("gc", "gc_gn_sqrt"))
"""Arms: network and objective."""


def measure(job: ClaimJob) -> dict[str, float]:
    """Run NIO; measure the network before its first training step."""
    source = _training.load_digits_source(job.seed, zoom=ZOOM)
    effects: list[dict[str, float]] = []
    effects += _training.train_once(build_nio_recipe(job), source, measure_effect).watched
    return effects[0]


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


def measure_effect(ctx: "Context") -> dict[str, float]:
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


def judge_networks(objective: str, runs: Runs) -> Iterator[ClaimFigure]:
    for kind, (*_, gamma) in SETTINGS.items():
        effects = partial(runs.collect, arms=(kind, objective))
        name = "GC" if objective == "gc" else "GN"
        before, after = effects(f"{name} before"), effects(f"{name} after")
        pairs = list(zip(before, after, strict=True))
        ours = f"{mean(before):.3f} to {mean(after):.3f}"
        if objective == "gc":
            gains = [b - a for a, b in pairs]
            yield engine.judge_gains(f"{kind}: GC", "maximised", ours, gains)
        else:
            what = f"{kind}: GN, cap {gamma:g}"
            published = "towards the cap (official log, ResNet-50: 4.7 to 8.1, cap 10)"
            gains = [abs(a - gamma) - abs(b - gamma) for a, b in pairs]
            yield engine.judge_gains(what, published, ours, gains)
        norm = max(effects("GN after"))
        what, published = f"{kind}: largest GN after", f"at most {gamma:g}"
        yield engine.judge(what, published, f"{norm:.2f}", norm <= SLACK * gamma)
        smallest, of_a_weight = min(effects("smallest factor")), min(effects("of a weight"))
        misfit, zero, still = max(effects("misfit")), effects("zero"), effects("still zero")
        yield engine.judge(
            f"{kind}: one factor a tensor",
            f"at least {LEAST:g}, directions and zeros kept",
            f"smallest {smallest:.3f}; off by {misfit:.1g};"
            f" {sum(still)} of {sum(zero)} zero tensors stay",
            misfit <= EXACT and smallest >= 0 and of_a_weight >= LEAST and zero == still,
        )


def require_unaligned(runs: Runs) -> list[engine.ClaimCondition]:
    return [engine.require("initial GC", "at most", ROOM, runs.collect("GC before", ALIGNED), "")]


def require_near_cap(runs: Runs) -> list[engine.ClaimCondition]:
    starts, ends = (
        [
            max(runs.collect(f"GN {moment}", (kind, "gc_gn_sqrt"))) / gamma
            for kind, (*_, gamma) in SETTINGS.items()
        ]
        for moment in ("before", "after")
    )
    return [
        engine.require("initial GN, in units of its cap", "at most", 1.0, starts, ""),
        engine.require("largest GN, in units of its cap", "at least", NEAR, ends, ""),
    ]


CLAIM = engine.Claim(
    engine.read_claim_card("nio_gradcosine"),
    {
        "gc": ClaimRule(require_unaligned, partial(judge_networks, "gc")),
        "gc_gn_sqrt": ClaimRule(require_near_cap, partial(judge_networks, "gc_gn_sqrt")),
    },
    measure,
    arms=[*ALIGNED, *RAISED],
)
