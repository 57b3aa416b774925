"""k-NN probes behind every block, and prediction depth, of SEAL and its comparators."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fsbench.backbones import load_classifier
from fsbench.claims import _training, engine, seal_ascent
from fsbench.claims.engine import ClaimFigure, ClaimJob, Judgements, Runs, SeedMean
from fsbench.core.io import cache_folder
from fsbench.data.loading import load_source
from fsbench.data.source import SourceDataset
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import train_recipe
from protocols.analyses.knn_depth import probe_blocks

EPOCHS, IMAGES = 16, 500
RECIPES = {"normal": "paper/normal_long", "llf": "paper/llf", "seal": "paper/seal"}
"""The paper's recipe by method."""
FULL_FIELDS: dict[str, object] = {"plan.rounds": 2}
"""Fields of the paper's recipes that the full run changes."""
BLOCKS, EARLY = 4, 1
"""Blocks of the network, and index of the last one before the threshold."""
PUBLISHED = {"llf": 18.54, "normal": 25.04}
"""Lead of SEAL behind block 2, in points, by method."""
PROBE = "accuracy of the probe (%)"


def measure(job: ClaimJob) -> dict[str, object]:
    """Train with a method and probe the network.

    depth: mean prediction depth; fit: training accuracy (%) at the end; low: highest one in the
    last epoch of an ascent; chance: that of guessing.
    """
    if job.settings.full:
        chosen, source = prepare_full(job)
    else:
        chosen = seal_ascent.build_seal_recipe(job.arm, EPOCHS, job.seed)
        source = _training.load_digits_source(job.seed, IMAGES)
    with TemporaryDirectory() as folder:
        out = train_recipe(chosen, source, Path(folder) / "run", device=job.settings.device)
        network = load_classifier(f"run:{out}", device=job.settings.device)
        probes = probe_blocks(network, source.train, source.val)
        train = _training.read_accuracies(out).train
    rounds = chosen.plan.rounds
    moments = [seal_ascent.extract_moments(train, g, rounds) for g in range(2, rounds + 1)]
    return {
        PROBE: [100 * float(accuracy) for accuracy in probes.accuracies],
        "depth": float(probes.depths.mean()),
        "fit": train[-1],
        "low": max(moment["low"] for moment in moments),
        "chance": 100 / source.n_classes,
    }


def prepare_full(job: ClaimJob) -> tuple[Recipe, SourceDataset]:
    """Return the paper's recipe with fewer generations, and its images."""
    chosen = registry.load_recipe(RECIPES[job.arm]).replace({**FULL_FIELDS, "seed": job.seed})
    roots, cache = job.settings.data, cache_folder(None)
    return chosen, load_source(chosen.source, roots, cache, chosen.input_size)


def judge_probes(runs: Runs) -> Judgements:
    """Judge the accuracies (%) behind the blocks and the depths, means over seeds."""
    probes = {m: [*zip(*runs.collect(PROBE, m), strict=True)] for m in ("seal", *PUBLISHED)}
    most, lows = 2 * runs.collect("chance", "seal")[0], runs.collect("low", "seal")
    yield engine.require("training accuracy after SEAL's ascents", "at most", most, lows)
    yield runs.require("training accuracy at the end, all methods", "fit", list(probes))
    for other, theirs in PUBLISHED.items():
        accuracies, what = probes[other][EARLY], f"block 2: accuracy of {other}"
        yield engine.require(what, "at most", 100 - theirs, accuracies)
        lead = engine.compare_pairs(probes["seal"][EARLY], accuracies)
        what = f"block 2: seal - {other} (points)"
        yield engine.judge(what, f"{theirs:+.2f}", f"{lead}", lead.mean >= theirs, lead.mean > 0)
    for block in (block for block in range(BLOCKS) if block != EARLY):
        leads = [engine.compare_pairs(probes["seal"][block], probes[m][block]) for m in PUBLISHED]
        means = {name: engine.average_seeds(values[block]) for name, values in probes.items()}
        ours = ", ".join(f"{name} {value.show('.1f')}" for name, value in means.items())
        yield judge_leads(f"block {block + 1}: accuracy (%)", "seal highest", ours, leads)
    leads = [runs.compare("depth", "llf", "seal"), runs.compare("depth", "normal", "llf")]
    ours = ", ".join(f"{name} {runs.compare('depth', name).show()}" for name in probes)
    yield judge_leads("mean prediction depth (blocks)", "seal < llf < normal", ours, leads)


def judge_leads(what: str, published: str, ours: str, leads: Sequence[SeedMean]) -> ClaimFigure:
    """Return the figure: reproduced if all leads are clear, direction only if all are above 0."""
    is_clear, is_above = all(d.is_clear for d in leads), all(d.mean > 0 for d in leads)
    return engine.judge(what, published, ours, is_clear, is_above)


CLAIM = engine.Claim(
    engine.read_claim_card("seal_knn_depth"),
    {"early blocks": judge_probes},
    measure,
    arms=RECIPES,
    curves={PROBE: ("block", range(1, BLOCKS + 1))},
)
