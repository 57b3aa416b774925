"""k-NN probes behind every block, and prediction depth, of SEAL and its comparators.

https://arxiv.org/abs/2304.04858, section 5, Figure 2: a ResNet-50 on TinyImageNet after ten
generations. Here: a small residual network on 500 digits of scikit-learn, three generations of 16
epochs, the ascent scaled as in _seal.py, the probe of protocols/analyses/knn_depth.py with its
default settings. Block 2 is the last one before the threshold, here and in the paper. "Normal" has
the same plan. The notes add one generation of it, and SEAL with the paper's unscaled strength.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import (
    OVERALL,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    _digits,
    _seal,
    judge_claim,
)
from fsbench.reproductions._pool import run_jobs

SOURCE = "SEAL, section 5, Figure 2"
CLAIM = "SEAL's early blocks tell classes apart better than those of LLF and normal training"
RULE = (
    "means over seeds. Block 2, SEAL minus another method: reproduced if at least half of the"
    " printed difference, direction only if positive. Other blocks: reproduced if SEAL is above"
    " both others, direction only if above one. Prediction depth: reproduced if SEAL < LLF <"
    f" normal, direction only if SEAL is below both; {OVERALL}"
)
SEEDS = 3
EPOCHS, IMAGES = 16, 500
EARLY = 1
"""Index of the last block before the threshold."""
PUBLISHED = {"llf": 18.54, "normal": 25.04}
"""Lead of SEAL behind block 2, in points, by method."""
METHODS = {
    "normal, 1 generation": ("normal", 1, None),
    "normal": ("normal", _seal.GENERATIONS, None),
    "llf": ("llf", _seal.GENERATIONS, None),
    "seal": ("seal", _seal.GENERATIONS, None),
    f"seal, S = {_seal.PAPERS_S}": ("seal", _seal.GENERATIONS, _seal.PAPERS_S),
}
"""Method, generations, and ascent factor (None: scaled to the paper's length) by name."""

ProbeJob = tuple[str, int]
"""Key of METHODS, seed."""
ProbeMeans = dict[str, tuple[list[float], float]]
"""By method: accuracies (%) behind the blocks, mean prediction depth."""


def run(seeds: int, report: Reporter = SILENT) -> ClaimOutcome:
    """Train and probe every method, and judge the means."""
    runs = [(name, seed) for seed in range(seeds) for name in METHODS]
    results: dict[str, list[tuple[list[float], float]]] = {name: [] for name in METHODS}
    for (name, _), result in zip(
        runs, run_jobs(probe_run, runs, "seal_knn_depth", report), strict=True
    ):
        results[name].append(result)
    means: ProbeMeans = {
        name: ([mean(b) for b in zip(*(a for a, _ in rows), strict=True)], mean(d for _, d in rows))
        for name, rows in results.items()
    }
    figures = judge_probes(means)
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=judge_claim(figures),
        notes=tuple(_describe_method(name, *one) for name, one in means.items()),
        panels=(_block_panel(means),),
    )


def probe_run(run: ProbeJob) -> tuple[list[float], float]:
    """Train once; return accuracies (%) behind the blocks and the mean depth on validation."""
    from fsbench.backbones import load_classifier
    from pretrain.training.loop import train_recipe
    from protocols.analyses.knn_depth import probe_blocks

    name, seed = run
    method, generations, factor = METHODS[name]
    strength = factor or _seal.match_factor(EPOCHS, IMAGES)
    source = _digits.load_digits_source(seed, IMAGES)
    with TemporaryDirectory() as folder:
        chosen = _seal.build_seal_recipe(method, EPOCHS, seed, strength, generations)
        out = train_recipe(chosen, source, Path(folder) / "run")
        probes = probe_blocks(load_classifier(f"run:{out}"), source.train, source.val)
    return [100 * float(a) for a in probes.accuracies], float(probes.depths.mean())


def judge_probes(means: ProbeMeans) -> tuple[ClaimFigure, ...]:
    """Judge the differences behind block 2, the other blocks and the depths by RULE."""
    ahead = [_judge_difference(other, means) for other in PUBLISHED]
    others = [_judge_block(i, means) for i in range(len(means["seal"][0])) if i != EARLY]
    depths = {name: means[name][1] for name in ("seal", "llf", "normal")}
    last = ClaimFigure(
        what="mean prediction depth (blocks)",
        published="seal < llf < normal",
        ours=", ".join(f"{name} {depth:.2f}" for name, depth in depths.items()),
        verdict=judge_depths(*depths.values()),
    )
    return (*ahead, *others, last)


def _judge_difference(other: str, means: ProbeMeans) -> ClaimFigure:
    """Judge SEAL minus another method behind block 2."""
    ours = means["seal"][0][EARLY] - means[other][0][EARLY]
    return ClaimFigure(
        what=f"block 2: seal - {other} (points)",
        published=f"{PUBLISHED[other]:+.2f}",
        ours=f"{ours:+.2f}",
        verdict=judge_half(PUBLISHED[other], ours),
    )


def _judge_block(index: int, means: ProbeMeans) -> ClaimFigure:
    """Judge SEAL and the others behind another block."""
    values = {name: means[name][0][index] for name in ("seal", *PUBLISHED)}
    beaten = sum(values["seal"] > values[other] for other in PUBLISHED)
    verdicts: tuple[ClaimVerdict, ...] = ("not reproduced", "direction only", "reproduced")
    return ClaimFigure(
        what=f"block {index + 1}: accuracy (%)",
        published="seal highest",
        ours=", ".join(f"{name} {value:.1f}" for name, value in values.items()),
        verdict=verdicts[beaten],
    )


def judge_half(theirs: float, ours: float) -> ClaimVerdict:
    """Return the verdict on a difference by RULE."""
    if ours >= theirs / 2:
        return "reproduced"
    return "direction only" if ours > 0 else "not reproduced"


def judge_depths(seal: float, llf: float, normal: float) -> ClaimVerdict:
    """Return the verdict on the depths by RULE."""
    if seal < llf < normal:
        return "reproduced"
    return "direction only" if seal < min(llf, normal) else "not reproduced"


def _describe_method(name: str, accuracies: list[float], depth: float) -> str:
    """Describe all numbers of a method."""
    return f"{name}: {', '.join(f'{a:.1f}' for a in accuracies)} %; depth {depth:.2f}"


def _block_panel(means: ProbeMeans) -> Panel:
    """Plot the accuracy behind every block."""
    curves = tuple(
        Curve(label=name, x=tuple(float(i + 1) for i in range(len(a))), y=tuple(a))
        for name, (a, _) in means.items()
    )
    return Panel(title="k-NN probe", x="block", y="accuracy (%)", curves=curves)
