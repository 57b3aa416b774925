"""SEAL, section 5: how well a k-NN probe labels images behind every block, and prediction depth.

The paper probes a ResNet-50 on TinyImageNet after ten generations. Here: a small residual net on
500 of scikit-learn's digits, three generations of 16 epochs, the ascent scaled as in _seal.py, the
probe of protocols/analyses/knn_depth.py as it is by default. Its block 2 is the last one before the
threshold, as ours is. "Normal" is under the same plan; one generation of it stands in the notes,
and so does SEAL with the paper's own strength, unscaled.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import _digits, _seal
from fsbench.reproductions._outcome import OVERALL, Figure, Outcome, Verdict, overall
from fsbench.reproductions._parallel import run_all

SOURCE = "SEAL, section 5, Figure 2"
CLAIM = "SEAL's early blocks tell classes apart better than those of LLF and normal training"
RULE = (
    "means over seeds. Block 2, SEAL less another method: reproduced when at least half the printed"
    " difference, direction only when positive. Other blocks: reproduced when SEAL is above both"
    " others, direction only above one. Prediction depth: reproduced when SEAL < LLF < normal,"
    " direction only when SEAL is below both; " + OVERALL
)
SEEDS = 3
EPOCHS, IMAGES = 16, 500
EARLY = 1
"""Index of the last block before the threshold."""
PUBLISHED = {"llf": 18.54, "normal": 25.04}
"""Points by which SEAL is ahead behind block 2."""
METHODS = {
    "normal, 1 generation": ("normal", 1, None),
    "normal": ("normal", _seal.GENERATIONS, None),
    "llf": ("llf", _seal.GENERATIONS, None),
    "seal": ("seal", _seal.GENERATIONS, None),
    f"seal, S = {_seal.PAPERS_S}": ("seal", _seal.GENERATIONS, _seal.PAPERS_S),
}
"""Name -> method, generations, strength of the ascent (null: scaled to the paper's length)."""

Run = tuple[str, int]
"""Key of METHODS, seed."""
Probed = dict[str, tuple[list[float], float]]
"""By method: accuracies (%) behind the blocks, mean prediction depth."""


def run(seeds: int, report: Reporter = SILENT) -> Outcome:
    """Train every method, probe it, and judge the means."""
    runs = [(name, seed) for seed in range(seeds) for name in METHODS]
    found: dict[str, list[tuple[list[float], float]]] = {name: [] for name in METHODS}
    for (name, _), one in zip(runs, run_all(probe, runs, "seal_knn_depth", report), strict=True):
        found[name].append(one)
    means: Probed = {
        name: ([mean(b) for b in zip(*(a for a, _ in rows), strict=True)], mean(d for _, d in rows))
        for name, rows in found.items()
    }
    figures = judged(means)
    return Outcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=overall(figures),
        notes=tuple(note(name, *one) for name, one in means.items()),
        panels=(panel(means),),
    )


def probe(run: Run) -> tuple[list[float], float]:
    """Accuracies (%) behind the blocks and mean depth of one run, on its validation images."""
    from fsbench.backbones import classifier
    from pretrain.training.loop import pretrain
    from protocols.analyses.knn_depth import probe_blocks

    name, seed = run
    method, generations, given = METHODS[name]
    strength = given or _seal.matched(EPOCHS, IMAGES)
    source = _digits.source(seed, IMAGES)
    with TemporaryDirectory() as folder:
        chosen = _seal.recipe(method, EPOCHS, seed, strength, generations)
        out = pretrain(chosen, source, Path(folder) / "run")
        found = probe_blocks(classifier(f"run:{out}"), source.train, source.val)
    return [100 * float(a) for a in found.accuracies], float(found.depths.mean())


def judged(means: Probed) -> tuple[Figure, ...]:
    """The differences behind block 2, the other blocks, the depths."""
    ahead = [difference(other, means) for other in PUBLISHED]
    others = [block(i, means) for i in range(len(means["seal"][0])) if i != EARLY]
    depths = {name: means[name][1] for name in ("seal", "llf", "normal")}
    last = Figure(
        what="mean prediction depth (blocks)",
        published="seal < llf < normal",
        ours=", ".join(f"{name} {depth:.2f}" for name, depth in depths.items()),
        verdict=ordered(*depths.values()),
    )
    return (*ahead, *others, last)


def difference(other: str, means: Probed) -> Figure:
    """SEAL less another method behind block 2."""
    ours = means["seal"][0][EARLY] - means[other][0][EARLY]
    return Figure(
        what=f"block 2: seal - {other} (points)",
        published=f"{PUBLISHED[other]:+.2f}",
        ours=f"{ours:+.2f}",
        verdict=half(PUBLISHED[other], ours),
    )


def block(index: int, means: Probed) -> Figure:
    """SEAL beside the others behind another block."""
    values = {name: means[name][0][index] for name in ("seal", *PUBLISHED)}
    beaten = sum(values["seal"] > values[other] for other in PUBLISHED)
    verdicts: tuple[Verdict, ...] = ("not reproduced", "direction only", "reproduced")
    return Figure(
        what=f"block {index + 1}: accuracy (%)",
        published="seal highest",
        ours=", ".join(f"{name} {value:.1f}" for name, value in values.items()),
        verdict=verdicts[beaten],
    )


def half(theirs: float, ours: float) -> Verdict:
    """The verdict on a difference by RULE."""
    if ours >= theirs / 2:
        return "reproduced"
    return "direction only" if ours > 0 else "not reproduced"


def ordered(seal: float, llf: float, normal: float) -> Verdict:
    """The verdict on the depths by RULE."""
    if seal < llf < normal:
        return "reproduced"
    return "direction only" if seal < min(llf, normal) else "not reproduced"


def note(name: str, accuracies: list[float], depth: float) -> str:
    """All numbers of a method."""
    return f"{name}: {', '.join(f'{a:.1f}' for a in accuracies)} %; depth {depth:.2f}"


def panel(means: Probed) -> Panel:
    """Accuracy behind every block."""
    curves = tuple(
        Curve(label=name, x=tuple(float(i + 1) for i in range(len(a))), y=tuple(a))
        for name, (a, _) in means.items()
    )
    return Panel(title="k-NN probe", x="block", y="accuracy (%)", curves=curves)
