"""k-NN probes behind every block, and prediction depth, of SEAL and its comparators.

https://arxiv.org/abs/2304.04858, section 5, Figure 2: a ResNet-50 on TinyImageNet after ten
generations. Here: a small residual network on 500 digits of scikit-learn, three generations of 16
epochs, the ascent scaled as in seal_ascent.py, the probe of protocols/analyses/knn_depth.py with
its default settings. Block 2 is the last one before the threshold, here and in the paper. "Normal"
has the same plan. The notes add one generation of it, and SEAL with the paper's unscaled strength.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    _runs,
    choose_verdict,
    seal_ascent,
)

CLAIM = Claim(
    source="SEAL, section 5, Figure 2",
    statement="SEAL's early blocks tell classes apart better than those of LLF and normal training",
    rule=(
        "means over seeds. Block 2, SEAL minus another method: reproduced if at least half of the"
        " printed difference, direction only if positive. Other blocks: reproduced if SEAL is above"
        " both others, direction only if above one. Prediction depth: reproduced if SEAL < LLF <"
        " normal, direction only if SEAL is below both"
    ),
    seeds=3,
)
EPOCHS, IMAGES = 16, 500
EARLY = 1
"""Index of the last block before the threshold."""
PUBLISHED = {"llf": 18.54, "normal": 25.04}
"""Lead of SEAL behind block 2, in points, by method."""
METHODS = {
    "normal, 1 generation": ("normal", 1, None),
    "normal": ("normal", seal_ascent.GENERATIONS, None),
    "llf": ("llf", seal_ascent.GENERATIONS, None),
    "seal": ("seal", seal_ascent.GENERATIONS, None),
    f"seal, S = {seal_ascent.PAPERS_S}": ("seal", seal_ascent.GENERATIONS, seal_ascent.PAPERS_S),
}
"""Method, generations, and ascent factor (None: scaled to the paper's length) by name."""

ProbeMeans = dict[str, tuple[list[float], float]]
"""By method: accuracies (%) behind the blocks, mean prediction depth."""


def run(seeds: int = CLAIM.seeds, report: Reporter = SILENT) -> ClaimOutcome:
    """Train and probe every method, and judge the means."""
    results = _runs.run_seeds(probe_run, METHODS, seeds, "seal_knn_depth", report)
    means: ProbeMeans = {
        name: ([mean(b) for b in zip(*(a for a, _ in rows), strict=True)], mean(d for _, d in rows))
        for name, rows in results.items()
    }
    figures = judge_probes(means)
    return CLAIM.judge(
        seeds,
        figures,
        notes=(
            f"{name}: {', '.join(f'{a:.1f}' for a in accuracies)} %; depth {depth:.2f}"
            for name, (accuracies, depth) in means.items()
        ),
        panels=(_block_panel(means),),
    )


def probe_run(job: tuple[str, int]) -> tuple[list[float], float]:
    """Train once (key of METHODS, seed); return accuracies (%) behind the blocks and mean depth."""
    from fsbench.backbones import load_classifier
    from pretrain.training.loop import train_recipe
    from protocols.analyses.knn_depth import probe_blocks

    name, seed = job
    method, generations, factor = METHODS[name]
    strength = factor or seal_ascent.match_factor(EPOCHS, IMAGES)
    source = _runs.load_digits_source(seed, IMAGES)
    with TemporaryDirectory() as folder:
        chosen = seal_ascent.build_seal_recipe(method, EPOCHS, seed, strength, generations)
        out = train_recipe(chosen, source, Path(folder) / "run")
        probes = probe_blocks(load_classifier(f"run:{out}"), source.train, source.val)
    return [100 * float(a) for a in probes.accuracies], float(probes.depths.mean())


def judge_probes(means: ProbeMeans) -> tuple[ClaimFigure, ...]:
    """Judge the differences behind block 2, the other blocks and the depths by the rule."""
    accuracies = {name: means[name][0] for name in ("seal", *PUBLISHED)}
    leads = {other: accuracies["seal"][EARLY] - accuracies[other][EARLY] for other in PUBLISHED}
    ahead = [
        ClaimFigure(
            what=f"block 2: seal - {other} (points)",
            published=f"{PUBLISHED[other]:+.2f}",
            ours=f"{lead:+.2f}",
            verdict=judge_half(PUBLISHED[other], lead),
        )
        for other, lead in leads.items()
    ]
    others = [
        _judge_block(block, {name: values[block] for name, values in accuracies.items()})
        for block in range(len(accuracies["seal"]))
        if block != EARLY
    ]
    depths = {name: means[name][1] for name in ("seal", "llf", "normal")}
    last = ClaimFigure(
        what="mean prediction depth (blocks)",
        published="seal < llf < normal",
        ours=", ".join(f"{name} {depth:.2f}" for name, depth in depths.items()),
        verdict=judge_depths(*depths.values()),
    )
    return (*ahead, *others, last)


def _judge_block(block: int, accuracies: dict[str, float]) -> ClaimFigure:
    """Judge SEAL and the others behind another block."""
    beaten = sum(accuracies["seal"] > accuracies[other] for other in PUBLISHED)
    return ClaimFigure(
        what=f"block {block + 1}: accuracy (%)",
        published="seal highest",
        ours=", ".join(f"{name} {value:.1f}" for name, value in accuracies.items()),
        verdict=choose_verdict(beaten == len(PUBLISHED), beaten > 0),
    )


def judge_half(theirs: float, ours: float) -> ClaimVerdict:
    """Return the verdict on a difference by the rule."""
    return choose_verdict(ours >= theirs / 2, ours > 0)


def judge_depths(seal: float, llf: float, normal: float) -> ClaimVerdict:
    """Return the verdict on the depths by the rule."""
    return choose_verdict(seal < llf < normal, seal < min(llf, normal))


def _block_panel(means: ProbeMeans) -> Panel:
    """Plot the accuracy behind every block."""
    curves = tuple(
        Curve(label=name, x=tuple(float(i + 1) for i in range(len(a))), y=tuple(a))
        for name, (a, _) in means.items()
    )
    return Panel(title="k-NN probe", x="block", y="accuracy (%)", curves=curves)
