"""Tables of the studies' pages: leaderboard/studies.

Numbers come from the committed entries, the analyses, and the lists of rounds that
tests/studies/list_rounds.py writes.
"""

import csv
import gzip
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import mean, stdev, variance

from fsbench.api.analyze import analysis_table
from fsbench.api.listing import Row
from fsbench.core.schema import Analysis
from fsbench.core.statistics import holm, paired_by_seed
from fsbench.core.tasks import ColumnId
from leaderboard.methods import MethodBoard, MethodRow, read_method_boards
from leaderboard.render.md import render_table
from leaderboard.render.methods import format_gain, format_in_domain, make_gain_table
from leaderboard.render.notes import to_percent

Table = tuple[tuple[str, ...], list[Row]]
"""Columns, and rows by column."""
STUDIES = Path(__file__).resolve().parents[2] / "leaderboard" / "studies"
PILOT, REGIME = STUDIES / "pilot", STUDIES / "regime"
PACKED = "analyses.jsonl.gz"
PILOT_MEASURES = {
    "mean prediction depth (blocks)": "prediction depth (of 4 blocks)",
    "accuracy behind block 2 (layer2.0)": "5-NN behind block 2",
    "accuracy behind block 4 (layer4.0)": "behind block 4",
    "train loss": "train loss",
    "loss increase at sigma 0.01": "increase at sigma .01",
}
"""Measures of the pilot study's analyses, and the column headers that its page uses for them."""
REGIME_MEASURES = {
    "mean of the 400 smallest": "margin (400 smallest)",
    "loss increase at sigma 0.02": "loss increase at sigma .02",
    "size of weights": "size of weights",
    "mean prediction depth (blocks)": "prediction depth (blocks)",
    "largest eigenvalue": "largest Hessian eigenvalue",
}
MEASURED_METHODS = ("normal", "dsd", "l2", "lw", "seal", "wels", "welsr")
"""Methods of the regime study whose networks its page compares."""
ROUND_METHODS = ("normal", "fc", "llf", "lw", "seal")
"""Methods of the regime study whose rounds its page discusses."""
ROUNDS = 7
HEADS = ("linear", "centroid", "logistic")
SUBSET = 25
"""Images per class of the study, beside which others are compared."""


def pilot_gains() -> str:
    """Draw the gains of the pilot study's runs over their controls, one table per track."""
    boards = [
        b.model_copy(update={"board": "pilot study"}) for b in read_method_boards(PILOT / "entries")
    ]
    return "\n\n".join(render_table(make_gain_table(board)) for board in boards)


def read_analyses(study: Path) -> Iterator[Analysis]:
    """Yield the records of a study's analyses, by run and question."""
    with gzip.open(study / PACKED, "rt", encoding="utf8") as lines:
        yield from map(Analysis.model_validate_json, lines)


def pilot_analyses() -> Table:
    """Return what the analyses measured in the runs of the pilot study, one row per run."""
    (_, _, *runs), body = analysis_table(list(read_analyses(PILOT)))
    values = {measure: dict(zip(runs, row, strict=True)) for _, measure, *row in body}
    lines: list[Row] = [
        {"run": run} | {header: values[measure][run] for measure, header in PILOT_MEASURES.items()}
        for run in runs
    ]
    return ("run", *PILOT_MEASURES.values()), lines


@cache
def read_regime() -> dict[tuple[str, int], MethodBoard]:
    """Return the method boards of the regime study by network and images per class."""
    boards = {}
    for board in read_method_boards(REGIME / "entries"):
        architecture = next((row.architecture for row in board.rows if row.plan), "")
        network = architecture.removeprefix("fsbench/").partition("@")[0]
        count = re.search(r"x (\d+) images", board.track)
        boards[network, int(count[1]) if count else SUBSET] = board
    return boards


def regime_gains() -> Table:
    """Return the gains in-domain and on the targets by network and method, best first."""
    lines: list[Row] = [
        {
            "network": network,
            "method": describe_method(row),
            "seeds": len(row.seeds),
            "in-domain (gain)": format_in_domain(row),
            "targets": to_percent(row.overall.mean) if row.overall else "-",
            "gain": format_gain(row.gain),
            **{head: format_head_gain(row, head) for head in HEADS},
        }
        for (network, images), board in read_regime().items()
        if images == SUBSET
        for row in board.rows
    ]
    return tuple(lines[0]), lines


def describe_method(row: MethodRow) -> str:
    """Return the method; of plain training also what differs from most: normal (step)."""
    others = [str(row.schedule)] * (row.schedule != "constant")
    others += ["2 stages"] * str(row.plan).startswith("2 stages")
    return f"normal ({', '.join(others)})" if row.method == "normal" and others else row.method


def format_head_gain(row: MethodRow, head: str) -> str:
    """Return the mean gain over normal in the columns of a head, which has no test of its own."""
    gains = [
        score.gains["normal"].gap
        for column, score in row.scores.items()
        if ColumnId.parse(column).task.head == head and "normal" in score.gains
    ]
    return to_percent(mean(gains), "+") if gains else "-"


def regime_images() -> Table:
    """Return gains of the methods that were trained on several numbers of images per class."""
    boards = {images: board for (name, images), board in read_regime().items() if name == "scnn"}
    methods = [describe_method(row) for row in boards[min(boards)].rows if row.plan]
    lines: list[Row] = []
    for images, board in sorted(boards.items()):
        rows = {describe_method(row): row for row in board.rows if row.plan}
        lines += [
            {
                "images per class": images,
                "method": method,
                "seeds": len(rows[method].seeds),
                "in-domain (gain)": format_in_domain(rows[method]),
                "gain on the targets": format_gain(rows[method].gain),
            }
            for method in methods
        ]
    return tuple(lines[0]), lines


def regime_carry() -> Table:
    """Return how gains in-domain go with gains on the targets, over the methods of a network."""
    from scipy.stats import pearsonr, spearmanr

    lines: list[Row] = []
    for (network, images), board in read_regime().items():
        gains = [
            (row.source_gain.gap, row.overall.gains["normal"].gap)
            for row in board.rows
            if row.source_gain and row.overall and "normal" in row.overall.gains
        ]
        if images == SUBSET and len(gains) > 2:
            in_domain, targets = zip(*gains, strict=True)
            lines.append(
                {
                    "network": network,
                    "methods": len(gains),
                    "Pearson's r": f"{pearsonr(in_domain, targets)[0]:.2f}",
                    "Spearman's rho": f"{spearmanr(in_domain, targets)[0]:.2f}",
                }
            )
    return tuple(lines[0]), lines


def regime_power() -> Table:
    """Return the gain that five seeds detect in four of five studies, before any correction."""
    lines: list[Row] = []
    for (network, images), board in read_regime().items():
        gaps = {
            "in-domain": [row.source_gain.by_seed for row in board.rows if row.source_gain],
            "targets": [
                gain.by_seed
                for row in board.rows
                if row.overall and (gain := row.overall.gains.get("normal"))
            ],
        }
        several = {what: [g for g in some if len(g) > 2] for what, some in gaps.items()}
        if images != SUBSET or not all(several.values()):
            continue
        lines += [
            {
                "network": network,
                "gain": what,
                "sd over seeds": to_percent(sd),
                "detected by 3 seeds": to_percent(find_detectable(sd, 3)),
                "by 5": to_percent(find_detectable(sd, 5)),
                "by 10": to_percent(find_detectable(sd, 10)),
            }
            for what, some in several.items()
            for sd in [math.sqrt(mean(variance(values) for values in some))]
        ]
    return tuple(lines[0]), lines


def find_detectable(sd: float, seeds: int, power: float = 0.8) -> float:
    """Return the gain that a two-sided t test at .05 over seeds detects with this power."""
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    freedom, root = seeds - 1, math.sqrt(seeds)
    bound = t.ppf(0.975, freedom)
    return float(brentq(lambda x: nct.sf(bound, freedom, x * root) - power, 0, 20)) * sd


def read_rounds(name: str) -> list[dict[str, str]]:
    """Return a list of rounds, one mapping per run."""
    with (REGIME / f"{name}.csv").open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def regime_rounds() -> Table:
    """Return mean accuracy after each of seven rounds, by network and discussed method."""
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for run in read_rounds("rounds"):
        rounds = [float(value) for value in run["rounds"].split()]
        is_shown = run["method"] in ROUND_METHODS and run["schedule"] == "constant"
        if is_shown and int(run["images_per_class"]) == SUBSET and len(rounds) == ROUNDS:
            key = run["network"], run["method"]
            groups.setdefault(key, []).append(rounds)
    lines: list[Row] = []
    for (network, method), runs in sorted(groups.items()):
        means = [f"{mean(values):.2f}" for values in zip(*runs, strict=True)]
        spread = f"{stdev(run[-1] for run in runs):.2f}" if len(runs) > 1 else "-"
        after = {f"round {i}": value for i, value in enumerate(means)}
        lines.append(
            {"network": network, "method": method, "seeds": len(runs), **after, "sd": spread}
        )
    return tuple(lines[0]), lines


def regime_analyses() -> Table:
    """Return means over seeds, and gaps to plain training with a t test over seeds."""
    lines: list[Row] = []
    for network, methods in read_measures().items():
        columns = {title: compare_measure(methods, name) for name, title in REGIME_MEASURES.items()}
        lines += [
            {"network": network, "method": method}
            | {title: cells.get(method, "-") for title, cells in columns.items()}
            for method in MEASURED_METHODS
        ]
    return tuple(lines[0]), lines


Measures = Mapping[str, Mapping[int, float]]
"""Name of a measure -> seed -> value."""


def read_measures() -> dict[str, dict[str, Measures]]:
    """Return the measures of the study's runs by network and method."""
    values: dict[str, dict[str, dict[str, dict[int, float]]]] = {}
    for analysis in read_analyses(REGIME):
        training = analysis.backbone.training
        if training is None or training.view.schedule != "constant":
            continue
        subset = training.view.source_subset
        if (
            subset is None
            or subset.images_per_class != SUBSET
            or len(training.view.plan.stages) > 1
        ):
            continue
        network = analysis.backbone.architecture.partition("@")[0].removeprefix("fsbench/")
        method = values.setdefault(network, {}).setdefault("+".join(training.methods), {})
        for measure in analysis.finding.measures:
            method.setdefault(measure.name, {})[training.view.seed] = float(measure.value)
    return {network: dict(methods) for network, methods in values.items()}


def compare_measure(methods: Mapping[str, Measures], name: str) -> dict[str, str]:
    """Return method -> mean (gap to plain training), starred after Holm's correction."""
    means = {method: mean(m[name].values()) for method, m in methods.items() if name in m}
    control = methods["normal"].get(name, {})
    gaps = {
        method: paired_by_seed([values[seed] - control[seed] for seed in both])
        for method in means
        if method != "normal"
        for values in [methods[method][name]]
        if len(both := sorted(values.keys() & control.keys())) > 1
    }
    p = dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))
    stars = {method: "*" if p[method] < 0.05 else "" for method in p}
    texts = {method: f" ({gap.gap:+.3g}{stars[method]})" for method, gap in gaps.items()}
    return {method: f"{value:.4g}{texts.get(method, '')}" for method, value in means.items()}


TABLES: dict[str, Callable[[], str | Table]] = {
    "pilot": pilot_gains,
    "inside": pilot_analyses,
    "regime_gains": regime_gains,
    "regime_carry": regime_carry,
    "regime_power": regime_power,
    "regime_images": regime_images,
    "regime_rounds": regime_rounds,
    "regime_analyses": regime_analyses,
}
