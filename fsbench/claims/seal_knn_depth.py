"""k-NN probes behind every block, and prediction depth, of SEAL and its comparators.

https://arxiv.org/abs/2304.04858, section 5, Figure 2: a ResNet-50 on TinyImageNet after ten
generations of 160 epochs. The probe is protocols/analyses/knn_depth.py with its default settings;
block 2 is the last one before the threshold, here and in the paper; "normal" has the same plan; the
ascent is scaled as in seal_ascent.py.

| run      | network              | images                              | generations x epochs |
|----------|----------------------|-------------------------------------|----------------------|
| quick    | small residual       | 500 digits of scikit-learn          | 3 x 16               |
| `--full` | the paper's, recipes | 12,500 of 50 TinyImageNet classes,  | 3 x 40               |
|          | paper/seal, llf, ... | 250 each, at 64 px                  |                      |

The full run is for a GPU (some hours; weeks on two cores). On digits the scaled ascent does not
reach chance, because the late layers keep learning; no setting that does, returns to the images
learned by heart and runs on two cores within minutes was found. The notes of the quick run add one
generation of normal training, and SEAL with the paper's unscaled strength.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from fsbench.claims import (
    FITTED,
    Claim,
    ClaimCondition,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    ClaimVerdict,
    _runs,
    choose_verdict,
    require_at_least,
    require_at_most,
    seal_ascent,
)
from fsbench.core.io import cache_folder
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import SourceSubset
from fsbench.data.loading import load_source

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe

CLAIM = Claim(
    source="SEAL, section 5, Figure 2",
    statements={
        "early blocks": ClaimStatement(
            text="SEAL's early blocks tell classes apart better than those of LLF and normal"
            " training",
            condition="the ascent reaches chance, all networks return to their images learned by"
            " heart, and the probe behind block 2 leaves room for half of the printed lead",
            rule="means over seeds. Block 2, SEAL minus another method: reproduced if at least half"
            " of the printed difference, direction only if positive. Other blocks: reproduced if"
            " SEAL is above both others, direction only if above one. Prediction depth: reproduced"
            " if SEAL < LLF < normal, direction only if SEAL is below both",
        )
    },
    seeds=3,
    full_seeds=2,
)
EPOCHS, IMAGES = 16, 500
FULL_SOURCE, FULL_SUBSET = "tinyimagenet", SourceSubset(classes=50, images_per_class=250)
FULL_FIELDS: dict[str, object] = {"plan.rounds": seal_ascent.GENERATIONS, "plan.epochs": 40}
"""Fields of the paper's recipes that the full run changes."""
EARLY = 1
"""Index of the last block before the threshold."""
PUBLISHED = {"llf": 18.54, "normal": 25.04}
"""Lead of SEAL behind block 2, in points, by method."""
METHODS = {
    "normal": ("normal", seal_ascent.GENERATIONS, None),
    "llf": ("llf", seal_ascent.GENERATIONS, None),
    "seal": ("seal", seal_ascent.GENERATIONS, None),
    "normal, 1 generation": ("normal", 1, None),
    f"seal, S = {seal_ascent.PAPERS_S}": ("seal", seal_ascent.GENERATIONS, seal_ascent.PAPERS_S),
}
"""Method, generations, and ascent factor (None: scaled to the paper's length) by name."""
FULL_RECIPES = {"normal": "paper/normal_long", "llf": "paper/llf", "seal": "paper/seal"}


class ProbedRun(NamedTuple):
    """Accuracies (%) behind the blocks, mean depth, and the training accuracy (%) by epoch."""

    accuracies: list[float]
    depth: float
    train: list[float]


ProbeMeans = dict[str, tuple[list[float], float]]
"""By method: accuracies (%) behind the blocks, mean prediction depth."""


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Train and probe every method, and judge the means."""
    names = FULL_RECIPES if settings.full else METHODS
    function = partial(probe_run, settings=settings)
    results = _runs.run_seeds(function, names, settings, "seal_knn_depth", report)
    means: ProbeMeans = {
        name: (
            [mean(b) for b in zip(*(run.accuracies for run in runs), strict=True)],
            mean(run.depth for run in runs),
        )
        for name, runs in results.items()
    }
    classes = FULL_SUBSET.classes if settings.full else _runs.CLASSES
    conditions = require_ascent_and_room(results, means, 100 / classes)
    return CLAIM.judge(
        settings,
        {"early blocks": (conditions, judge_probes(means))},
        notes=(
            f"{name}: {', '.join(f'{a:.1f}' for a in accuracies)} %; depth {depth:.2f}"
            for name, (accuracies, depth) in means.items()
        ),
        panels=(_block_panel(means),),
    )


def probe_run(job: tuple[str, int], settings: ClaimSettings) -> ProbedRun:
    """Train once (name of a method, seed) and probe the network."""
    from fsbench.backbones import load_classifier
    from pretrain.training.loop import train_recipe
    from protocols.analyses.knn_depth import probe_blocks

    name, seed = job
    chosen, source = (
        prepare_full(name, seed, settings) if settings.full else prepare_quick(name, seed)
    )
    with TemporaryDirectory() as folder:
        out = train_recipe(chosen, source, Path(folder) / "run", device=settings.device)
        network = load_classifier(f"run:{out}", device=settings.device)
        probes = probe_blocks(network, source.train, source.val)
        log = _runs.read_run_files(out).log
    return ProbedRun(
        [100 * float(a) for a in probes.accuracies],
        float(probes.depths.mean()),
        [100 * line["train_accuracy"] for line in log],
    )


def prepare_quick(name: str, seed: int) -> "tuple[Recipe, SourceDataset]":
    """Return recipe and digits of the quick run."""
    method, generations, factor = METHODS[name]
    strength = factor or seal_ascent.match_factor(EPOCHS, IMAGES)
    chosen = seal_ascent.build_seal_recipe(method, EPOCHS, seed, strength, generations)
    return chosen, _runs.load_digits_source(seed, IMAGES)


def prepare_full(name: str, seed: int, settings: ClaimSettings) -> "tuple[Recipe, SourceDataset]":
    """Return the paper's recipe under the shorter plan, and its images."""
    from pretrain.recipes import registry

    fields = {**FULL_FIELDS, "seed": seed, "source": FULL_SOURCE, "source_subset": FULL_SUBSET}
    chosen = registry.load_recipe(FULL_RECIPES[name]).replace(fields)
    cache = cache_folder(None)
    source = load_source(FULL_SOURCE, settings.data, cache, chosen.input_size, subset=FULL_SUBSET)
    if name == "seal":
        factor = seal_ascent.scale_factor(chosen, len(source.train))
        chosen = chosen.replace({"seal.ascent_factor": factor})
    return chosen, source


def require_ascent_and_room(
    results: dict[str, list[ProbedRun]], means: ProbeMeans, chance: float
) -> list[ClaimCondition]:
    """Measure the ascents, what the networks have learned, and the room behind block 2."""
    lows = [accuracy for run in results["seal"] for accuracy in extract_lows(run.train)]
    ends = [run.train[-1] for name in ("seal", *PUBLISHED) for run in results[name]]
    return [
        require_at_most("training accuracy after SEAL's ascents", lows, 2 * chance),
        require_at_least("training accuracy at the end, all methods", ends, FITTED),
        *(
            require_at_most(f"block 2: accuracy of {name}", [means[name][0][EARLY]], 100 - lead / 2)
            for name, lead in PUBLISHED.items()
        ),
    ]


def extract_lows(train: Sequence[float]) -> list[float]:
    """Return the training accuracy in the last epoch of every ascent."""
    epochs = len(train) // seal_ascent.GENERATIONS
    starts = range(epochs, len(train), epochs)
    return [train[start + epochs // 4 - 1] for start in starts]


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
