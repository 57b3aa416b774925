"""NIO's set-up on scikit-learn's digits, and a look at what it did to a network.

The settings are those that the appendix (B.2) gives for ResNet-110 on CIFAR-10, for a small network
with and without batch norm, in 50 steps at most. Images are 16 px: every pixel of the digits twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core import seeding
from fsbench.reproductions import _digits

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

ZOOM, SIDE = 2, 16
STEPS = (10, 25, 50)
"""Lengths of the runs; the last one is judged, the others draw the curves."""
OBJECTIVES = ("gc", "gc_gn_sqrt")
SLOW = "with BN, slower"
"""At the rate of the other network, for the notes: the appendix's one may be too large here."""


class NioSetting(NamedTuple):
    """A network and the appendix's settings for ResNet-110 of its kind on CIFAR-10."""

    architecture: str
    overlap: float
    rate: float
    gamma: float


SETTINGS = {
    "without BN": NioSetting("cnn", overlap=0.7, rate=1.5e-2, gamma=4.0),
    "with BN": NioSetting("cnn_bn", overlap=0.6, rate=1e-1, gamma=5.0),
    SLOW: NioSetting("cnn_bn", overlap=0.6, rate=1.5e-2, gamma=5.0),
}
PARTS, BATCH = 2, 128


class NioJob(NamedTuple):
    """One initialisation: kind names a Setting."""

    kind: str
    objective: str
    steps: int
    seed: int


class NioEffect(NamedTuple):
    """(GC, GN) before and after; factors by tensor; what else the tensors show.

    misfit: largest |w - m w0| over max |w0| of a tensor; zeros: tensors that were and are zero.
    """

    before: tuple[float, float]
    after: tuple[float, float]
    factors: Mapping[str, float]
    misfit: float
    zeros: tuple[int, int]


def nio_recipe(job: NioJob) -> Recipe:
    """NIO, then one training step, which nothing looks at."""
    from pretrain.recipes.recipe import Recipe

    setting = SETTINGS[job.kind]
    nio = {
        "name": "nio",
        "objective": job.objective,
        "parts": PARTS,
        "batch_size": BATCH,
        "overlap": setting.overlap,
        "rate": setting.rate,
        "gamma": setting.gamma,
        "iterations": job.steps,
    }
    return Recipe.model_validate(
        {
            "name": "paper/nio",
            "architecture": setting.architecture,
            "source": "digits",
            "input_size": SIDE,
            "plan": {"rounds": 1, "epochs": 1, "epoch_images": BATCH},
            "methods": (nio,),
            "batch_size": BATCH,
            "warmup": 0.0,
            "augmentation": "none",
            "seed": job.seed,
        }
    )


def run_nio(job: NioJob) -> NioEffect:
    """Run NIO, and look."""
    from pretrain.training.loop import pretrain

    seen: list[NioEffect] = []

    def watch(ctx: Context) -> None:
        if not seen:
            seen.append(inspect_network(ctx))

    with TemporaryDirectory() as folder:
        source = _digits.load_digits_source(job.seed, zoom=ZOOM)
        pretrain(nio_recipe(job), source, Path(folder) / "run", watch=watch)
    return seen[0]


def inspect_network(ctx: Context) -> NioEffect:
    """What NIO has done to a network that has not trained yet."""
    from pretrain.weights import surgery

    with seeding.stream(*ctx.recipe.stream("init")):
        initial = surgery.initial(ctx.architecture, ctx.classes, ctx.recipe.width)
    memory = ctx.memories["nio"]
    factors: dict[str, float] = memory["factors"]
    pairs = {n: (initial[n], p.detach()) for n, p in ctx.model.named_parameters()}
    misfits = [
        float((w - w0 * factors.get(name, 1.0)).abs().max() / w0.abs().max())
        for name, (w0, w) in pairs.items()
        if w0.any()
    ]
    zeros = [tuple(not bool(tensor.any()) for tensor in pair) for pair in pairs.values()]
    return NioEffect(
        before=tuple(memory["before"]),
        after=tuple(memory["after"]),
        factors=factors,
        misfit=max(misfits),
        zeros=(sum(start for start, _ in zeros), sum(start and now for start, now in zeros)),
    )
