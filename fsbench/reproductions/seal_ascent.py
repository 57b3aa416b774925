"""Forgetting in SEAL: training accuracy falls to chance in the ascent and recovers.

https://arxiv.org/abs/2304.04858, section 3.2, states this of a ResNet-50 on TinyImageNet without a
number. Here: a small residual network on the digits of scikit-learn, three generations of 8 epochs,
the ascent scaled as in _seal.py. The accuracy is that of log.jsonl: over an epoch's batches, each
before its step.
"""

from __future__ import annotations

import json
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

SOURCE = "SEAL, section 3.2"
CLAIM = "gradient ascent on early layers drops training accuracy to chance, descent restores it"
RULE = (
    "means over seeds, generations 2 and 3, with S such that S times the sum of learning rates"
    " over an ascent is that of the paper. Fall: reproduced if the last epoch of the ascent has"
    " at most twice chance (20 %), direction only if it has at most half of the epoch before the"
    " ascent. Return: reproduced if the last epoch of the generation is at most 5 points below"
    f" the epoch before the ascent, direction only if half of the loss is regained; {OVERALL}"
)
SEEDS = 2
EPOCHS, IMAGES = 8, _digits.IMAGES - _digits.VALIDATION
ASCENT = EPOCHS // 4
CHANCE = 100 / _digits.CLASSES
STRONGER = 3.0
"""Second strength of the notes, in units of the matched one."""

AscentJob = tuple[float, int]
"""Ascent factor S, seed."""


def run(seeds: int, report: Reporter = SILENT) -> ClaimOutcome:
    """Train with three strengths of the ascent; judge the matched one."""
    matched = _seal.match_factor(EPOCHS, IMAGES)
    strengths = (_seal.PAPERS_S, matched, STRONGER * matched)
    runs = [(s, seed) for s in strengths for seed in range(seeds)]
    traces: dict[float, list[list[float]]] = {s: [] for s in strengths}
    for (s, _), trace in zip(
        runs, run_jobs(trace_accuracy, runs, "seal_ascent", report), strict=True
    ):
        traces[s].append(trace)
    means = {s: [mean(epoch) for epoch in zip(*rows, strict=True)] for s, rows in traces.items()}
    figures = tuple(
        f for g in range(1, _seal.GENERATIONS) for f in _judge_generation(g, means[matched])
    )
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=judge_claim(figures),
        notes=(
            f"judged at S = {matched:.2f}",
            *(_describe_strength(s, trace) for s, trace in means.items()),
        ),
        panels=(_accuracy_panel(means),),
    )


def trace_accuracy(run: AscentJob) -> list[float]:
    """Train once and return the training accuracy (%) of every epoch."""
    from pretrain.training.loop import train_recipe

    strength, seed = run
    with TemporaryDirectory() as folder:
        chosen = _seal.build_seal_recipe("seal", EPOCHS, seed, strength)
        out = train_recipe(chosen, _digits.load_digits_source(seed, IMAGES), Path(folder) / "run")
        lines = (out / "log.jsonl").read_text(encoding="utf8").splitlines()
    return [100 * json.loads(line)["train_accuracy"] for line in lines]


def extract_moments(generation: int, trace: list[float]) -> tuple[float, float, float]:
    """Return the accuracy before an ascent, in its last epoch, and at the generation's end."""
    start = generation * EPOCHS
    return trace[start - 1], trace[start + ASCENT - 1], trace[start + EPOCHS - 1]


def _judge_generation(generation: int, trace: list[float]) -> tuple[ClaimFigure, ClaimFigure]:
    """Judge fall and return of a generation by RULE."""
    before, low, after = extract_moments(generation, trace)
    what = f"generation {generation + 1}"
    fall = ClaimFigure(
        what=f"{what}: accuracy after the ascent",
        published="completely random",
        ours=f"{low:.1f} % (before {before:.1f} %, chance {CHANCE:.0f} %)",
        verdict=judge_fall(before, low),
    )
    back = ClaimFigure(
        what=f"{what}: accuracy at its end",
        published="trained again",
        ours=f"{after:.1f} %",
        verdict=judge_return(before, low, after),
    )
    return fall, back


def judge_fall(before: float, low: float) -> ClaimVerdict:
    """Return the verdict on a fall by RULE."""
    if low <= 2 * CHANCE:
        return "reproduced"
    return "direction only" if low <= before / 2 else "not reproduced"


def judge_return(before: float, low: float, after: float) -> ClaimVerdict:
    """Return the verdict on a return by RULE; without a fall there is none."""
    if low >= before:
        return "not reproduced"
    if after >= before - 5:
        return "reproduced"
    return "direction only" if after - low >= (before - low) / 2 else "not reproduced"


def _describe_strength(strength: float, trace: list[float]) -> str:
    """Describe the effect of an ascent of this strength."""
    moments = [extract_moments(g, trace) for g in range(1, _seal.GENERATIONS)]
    parts = [f"{before:.0f} -> {low:.0f} -> {after:.0f} %" for before, low, after in moments]
    return f"S = {strength:.2f}: {', then '.join(parts)}"


def _accuracy_panel(means: dict[float, list[float]]) -> Panel:
    """Plot training accuracy over all epochs."""
    epochs = tuple(float(e + 1) for e in range(_seal.GENERATIONS * EPOCHS))
    curves = tuple(Curve(label=f"S = {s:.2f}", x=epochs, y=tuple(t)) for s, t in means.items())
    return Panel(title="ascent and descent", x="epoch", y="training accuracy (%)", curves=curves)
