"""Tables of the studies' pages: leaderboard/studies.

Numbers come from the committed entries, the analyses, and the lists of rounds that
tests/studies/list_rounds.py writes.
"""

import lzma
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean, variance
from typing import TYPE_CHECKING

from fsbench.api.analyze import analysis_table
from fsbench.api.listing import Row
from fsbench.core.schema import Analysis
from fsbench.core.statistics import holm, paired_by_seed
from fsbench.core.tasks import ColumnId
from leaderboard.entry_networks import Network
from leaderboard.methods import TUNED_NORMAL, Gain, MethodBoard, MethodRow, read_method_boards
from leaderboard.render.md import render_table
from leaderboard.render.methods import HEADINGS, format_gain, format_in_domain, make_gain_table
from leaderboard.render.notes import to_percent
from leaderboard.store import Board

if TYPE_CHECKING:
    from pandas import DataFrame

Table = list[Row]
"""Rows with equal columns."""
NamedBoards = Sequence[tuple[str | int, MethodBoard]]
"""Method boards by network, or by images per class."""
STUDIES = Path(__file__).resolve().parents[2] / "leaderboard" / "studies"
PILOT, REGIME = STUDIES / "pilot", STUDIES / "regime"
PACKED = "analyses.jsonl.xz"
PILOT_MEASURES = {
    "mean prediction depth (blocks)": "prediction depth (of 4 blocks)",
    "accuracy behind block 2 (layer2.0)": "5-NN behind block 2",
    "accuracy behind block 4 (layer4.0)": "behind block 4",
    "train loss": "train loss",
    "loss increase at sigma 0.01": "increase at sigma .01",
}
"""Measures of the pilot study's analyses, and the column headers that its page uses for them."""
CORRELATED = (
    ("knn_depth", "accuracy behind block 4 (layer4.0)"),
    ("sharpness", "train loss"),
    ("sharpness", "loss increase at sigma 0.01"),
)
"""Analyses and measures of the pilot study that are correlated with transfer."""
REGIME_MEASURES = {
    "mean of the 400 smallest": "margin (400 smallest)",
    "loss increase at sigma 0.02": "loss increase at sigma .02",
    "size of weights": "size of weights",
    "mean prediction depth (blocks)": "prediction depth (blocks)",
    "largest eigenvalue": "largest Hessian eigenvalue",
}
MEASURED_METHODS = (
    "normal", TUNED_NORMAL, "dsd", "l2", "lw", "seal", "seal_long_ascent", "wels", "welsr"
)  # fmt: skip
"""Methods of the regime study whose networks its page compares."""
ROUND_METHODS = ("normal", TUNED_NORMAL, "fc", "llf", "lw", "seal", "seal_long_ascent")
"""Methods of the regime study whose rounds its page discusses."""
ROUNDS = 7
HEADS = ("linear", "centroid", "logistic")
SUBSET = 25
"""Images per class of the study, beside which others are compared."""
OVER_TUNED = HEADINGS["tuned"]
TUNED_SETTINGS = "lr=0.01-weight_decay=0.001"
"""In the names of entries with the settings of `normal (tuned)`."""


def pilot_gains() -> str:
    """Draw the gains of the pilot study's runs over their controls, one table per track."""
    boards = [
        b.model_copy(update={"board": "pilot study"}) for b in read_method_boards(PILOT / "entries")
    ]
    return "\n\n".join(render_table(make_gain_table(board)) for board in boards)


def read_pilot() -> list[Network]:
    """Return the networks of the pilot study, one per entry and seed."""
    return [n for entry in Board.open(PILOT / "entries").entries() for n in entry.networks]


def pilot_affine() -> Table:
    """Return the gaps to plain training by linear heads and by affine tuning, in points.

    One observation is an episode that all results have: its mean over the columns.
    """
    gaps = {
        network.name: {head: read_accuracies(network, head) for head in ("linear", "affine")}
        for network in read_pilot()
        if any(one.result.column.task.head == "affine" for one in network.loaded)
    }
    control = next(gaps.pop(name) for name in [*gaps] if name.startswith("pilot-normal"))
    lines: Table = []
    for name, accuracies in gaps.items():
        linear, affine = (accuracies[head] - control[head] for head in control)
        changes = (affine - linear).dropna()
        line: Row = {"run": name, "episodes": len(changes)}
        for what, points in {"linear": linear, "affine": affine, "change": changes}.items():
            means = points.loc[changes.index].mean(axis=1)
            half = 1.96 * means.std() / len(means) ** 0.5
            line[what] = f"{means.mean():+.2f} ± {half:.2f}"
        lines.append(line)
    return sorted(lines, key=lambda line: line["run"])


def read_accuracies(network: Network, head: str) -> "DataFrame":
    """Return the accuracies of a head in percent by episode and column, its name left out."""
    from pandas import DataFrame, Series

    return DataFrame(
        {
            str(one.result.column).replace(f"/{head}@", " "): Series(
                100 * one.records.accuracy, one.records.index
            )
            for one in network.loaded
            if one.result.column.task.head == head
        }
    )


def pilot_transfer() -> Table:
    """Return how transfer with linear heads goes with accuracy on the source and the analyses.

    Repeated without the warm starts, which have a constant learning rate, and without the controls
    of these and of the meta-learners.
    """
    from scipy.stats import pearsonr, spearmanr

    board = read_method_boards(PILOT / "entries")[0]
    apart = {r.name for r in board.rows if r.schedule == "constant" or "-as-anil" in r.name}
    transfer = {}
    for network in read_pilot():
        results = [one.result for one in network.loaded]
        scores = [r.score.mean for r in results if r.column.task.head == "linear"]
        transfer[network.facts.weights_hash] = (network.name.partition(" seed")[0], mean(scores))
    rows = [r for r in board.rows if r.overall and r.source_accuracy]
    title = "accuracy on the source (Pearson's r of rows)"
    pairs = {title: [(r.name, r.overall.mean, r.source_accuracy) for r in rows]}
    for analysis, name in CORRELATED:
        pairs[f"{name} (Spearman's of runs)"] = [
            (*transfer[record.backbone.weights_hash], measure.value)
            for record in read_analyses(PILOT)
            if record.question.what == analysis
            for measure in record.finding.measures
            if measure.name == name
        ]
    lines: Table = []
    for what, every in pairs.items():
        correlate = pearsonr if what == title else spearmanr
        ordinary = [pair for pair in every if pair[0] not in apart]
        texts = [
            f"{correlate(*list(zip(*some, strict=True))[1:])[0]:.2f} of {len(some)}"
            for some in (every, ordinary)
        ]
        lines.append({"measure": what, "all": texts[0], "without the six": texts[1]})
    return lines


def read_analyses(study: Path) -> Iterator[Analysis]:
    """Yield the records of a study's analyses, by run and question."""
    with lzma.open(study / PACKED, "rt", encoding="utf8") as lines:
        yield from map(Analysis.model_validate_json, lines)


def pilot_analyses() -> Table:
    """Return what the analyses measured in the runs of the pilot study, one row per run."""
    (_, _, *runs), body = analysis_table(list(read_analyses(PILOT)))
    values = {measure: dict(zip(runs, row, strict=True)) for _, measure, *row in body}
    return [
        {"run": run} | {header: values[measure][run] for measure, header in PILOT_MEASURES.items()}
        for run in runs
    ]


@cache
def read_regime() -> dict[tuple[str, int], MethodBoard]:
    """Return the method boards of the regime study by network and images per class."""
    boards = {}
    for board in read_method_boards(REGIME / "entries"):
        architecture = next((row.architecture for row in board.rows if row.plan), "")
        count = re.search(r"x (\d+) images", board.track)
        boards[name_network(architecture), int(count[1]) if count else SUBSET] = board
    return boards


def list_networks() -> list[tuple[str, MethodBoard]]:
    """Return the networks of the study with their boards on SUBSET images per class."""
    return [(name, board) for (name, images), board in read_regime().items() if images == SUBSET]


def list_tuned() -> set[str]:
    """Return the entries of the regime study that are tuned plain training."""
    rows = (row for board in read_regime().values() for row in board.rows)
    return {row.name for row in rows if row.method == TUNED_NORMAL}


def name_network(architecture: str) -> str:
    return architecture.removeprefix("fsbench/").partition("@")[0]


def regime_gains() -> Table:
    """Return the gains in-domain and on the targets by network and method, best first."""
    return make_gains("network", list_networks())


def regime_images() -> Table:
    """Return gains of the methods that were trained on several numbers of images per class."""
    boards = {images: board for (name, images), board in read_regime().items() if name == "scnn"}
    methods = {describe_method(row) for row in boards[min(boards)].rows if row.plan}
    return make_gains("images per class", sorted(boards.items()), methods)


def make_gains(label: str, boards: NamedBoards, methods: Collection[str] = ()) -> Table:
    """Return the gains of the rows of some boards, or of some methods. label: of the boards."""
    return [
        {
            label: key,
            "method": method,
            "seeds": len(row.seeds),
            "in-domain (gain)": format_in_domain(row),
            "targets": to_percent(row.overall.mean) if row.overall else "-",
            "gain": format_gain(row.gain),
            **(format_tuned_gains(row) if has_tuned_control(boards) else {}),
            **{head: format_head_gain(row, head) for head in HEADS},
        }
        for key, board in boards
        for row in board.rows
        if (method := describe_method(row)) in methods or not methods
    ]


def has_tuned_control(boards: NamedBoards) -> bool:
    return any("tuned" in board.kinds for _, board in boards)


def format_tuned_gains(row: MethodRow) -> Row:
    """Return the gains over tuned plain training, in-domain and on the targets."""
    return {
        f"in-domain {OVER_TUNED}": format_gain(row.source_gain_tuned),
        f"gain {OVER_TUNED}": format_gain(row.gain_tuned),
    }


def describe_method(row: MethodRow) -> str:
    """Return the method and what differs from most: normal (step), lw (tuned settings)."""
    if row.method != "normal":
        is_tuned = row.method != TUNED_NORMAL and TUNED_SETTINGS in row.name
        return f"{row.method} (tuned settings)" if is_tuned else row.method
    others = [str(row.schedule)] * (row.schedule != "constant")
    others += ["2 stages"] * str(row.plan).startswith("2 stages")
    return f"normal ({', '.join(others)})" if others else row.method


def format_head_gain(row: MethodRow, head: str) -> str:
    """Return the mean gain over normal in the columns of a head, which has no test of its own."""
    gains = [
        score.gains["normal"].gap
        for column, score in row.scores.items()
        if ColumnId.parse(column).task.head == head and "normal" in score.gains
    ]
    return to_percent(mean(gains), "+") if gains else "-"


def regime_carry() -> Table:
    """Return how gains in-domain go with gains on the targets, over the methods of a network."""
    return correlate_boards(list_networks())


def correlate_boards(boards: NamedBoards) -> Table:
    """Return the correlations of a network's gains over plain training, and over the tuned one."""
    lines: Table = []
    for network, board in boards:
        line = correlate_gains([(row.source_gain, row.gain) for row in board.rows])
        if has_tuned_control(boards):
            tuned = correlate_gains([(r.source_gain_tuned, r.gain_tuned) for r in board.rows])
            line |= {f"{header} {OVER_TUNED}": text for header, text in tuned.items()}
        if line["Pearson's r"] != "-":
            lines.append({"network": network, **line})
    return lines


def correlate_gains(pairs: Iterable[tuple[Gain | None, Gain | None]]) -> Row:
    """Return how many gains have both sides, and their correlations from three on."""
    from scipy.stats import pearsonr, spearmanr

    gaps = [(source.gap, target.gap) for source, target in pairs if source and target]
    r, rho = "-", "-"
    if len(gaps) > 2:
        r, rho = (f"{f(*zip(*gaps, strict=True))[0]:.2f}" for f in (pearsonr, spearmanr))
    return {"methods": len(gaps), "Pearson's r": r, "Spearman's rho": rho}


def regime_power() -> Table:
    """Return the gain that five seeds detect in four of five studies, before any correction."""
    lines: Table = []
    for network, board in list_networks():
        gains = {
            "in-domain": [row.source_gain for row in board.rows],
            "targets": [row.gain for row in board.rows],
            f"in-domain {OVER_TUNED}": [row.source_gain_tuned for row in board.rows],
            f"targets {OVER_TUNED}": [row.gain_tuned for row in board.rows],
        }
        for what, some in gains.items():
            if by_seed := [gain.by_seed for gain in some if gain and len(gain.by_seed) > 2]:
                sd = math.sqrt(mean(variance(gaps) for gaps in by_seed))
                headers = {3: "detected by 3 seeds", 5: "by 5", 10: "by 10"}
                lines.append(
                    {"network": network, "gain": what, "sd over seeds": to_percent(sd)}
                    | {text: to_percent(find_detectable(sd, n)) for n, text in headers.items()}
                )
    return lines


def find_detectable(sd: float, seeds: int, power: float = 0.8) -> float:
    """Return the gain that a two-sided t test at .05 over seeds detects with this power."""
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    freedom, root = seeds - 1, math.sqrt(seeds)
    bound = t.ppf(0.975, freedom)
    return float(brentq(lambda x: nct.sf(bound, freedom, x * root) - power, 0, 20)) * sd


def regime_rounds() -> Table:
    """Return mean accuracy after each of seven rounds, by network and discussed method."""
    from pandas import read_csv

    runs = read_csv(REGIME / "rounds.csv")
    entries = runs.run.str.replace(r"-s\d+$", "", regex=True)
    searched = runs.run.str.contains(TUNED_SETTINGS)
    runs["method"] = runs.method.mask(searched, runs.method + " (tuned settings)")
    runs["method"] = runs.method.mask(entries.isin(list_tuned()), TUNED_NORMAL)
    rounds = runs["rounds"].str.split(expand=True).astype(float)
    is_shown = runs.method.isin(ROUND_METHODS) & (runs.schedule == "constant")
    is_shown &= (runs.images_per_class == SUBSET) & (rounds.notna().sum(axis=1) == ROUNDS)
    lines: Table = []
    for (network, method), values in rounds[is_shown].groupby([runs.network, runs.method]):
        after = {f"round {i}": f"{values[i].mean():.2f}" for i in range(ROUNDS)}
        spread = f"{values[ROUNDS - 1].std():.2f}" if len(values) > 1 else "-"
        lines.append(
            {"network": network, "method": method, "seeds": len(values), **after, "sd": spread}
        )
    return lines


def regime_analyses() -> Table:
    """Return means over seeds, and gaps to plain training with a t test over seeds."""
    lines: Table = []
    for network, measures in read_measures().groupby("network", sort=False):
        columns = {}
        for name, title in REGIME_MEASURES.items():
            values = measures[measures.measure == name].pivot(
                index="seed", columns="method", values="value"
            )
            columns[title] = compare_methods(values) if "normal" in values else {}
        lines += [
            {"network": network, "method": method}
            | {title: texts.get(method, "-") for title, texts in columns.items()}
            for method in MEASURED_METHODS
            if method != TUNED_NORMAL or method in {*measures.method}
        ]
    return lines


def read_measures() -> "DataFrame":
    """Return the measures of the study's runs: network, method, measure, seed, value."""
    from pandas import DataFrame

    board, rows = Board.open(REGIME / "entries"), []
    tuned = {n.facts.weights_hash for name in list_tuned() for n in board.entry(name).networks}
    for analysis in read_analyses(REGIME):
        training = analysis.backbone.training
        if training is None or training.view.schedule != "constant":
            continue
        view, subset = training.view, training.view.source_subset
        if subset and subset.images_per_class == SUBSET and len(view.plan.stages) == 1:
            is_tuned = analysis.backbone.weights_hash in tuned
            method = TUNED_NORMAL if is_tuned else "+".join(training.methods)
            run = (name_network(analysis.backbone.architecture), method)
            rows += [(*run, m.name, view.seed, float(m.value)) for m in analysis.finding.measures]
    return DataFrame(rows, columns=["network", "method", "measure", "seed", "value"])


def compare_methods(values: "DataFrame") -> dict[str, str]:
    """Return method -> mean (gap to plain training), starred after Holm's correction.

    values: of a measure, by seed and method; gaps are over the seeds that both have.
    """
    gaps = values.drop(columns="normal").sub(values["normal"], axis=0)
    tests = {m: paired_by_seed([*g.dropna()]) for m, g in gaps.items() if g.count() > 1}
    texts = {
        m: f" ({tests[m].gap:+.3g}{'*' * (p < 0.05)})"
        for m, p in zip(tests, holm([test.p for test in tests.values()]), strict=True)
    }
    return {m: f"{column.mean():.4g}{texts.get(m, '')}" for m, column in values.items()}


TABLES: dict[str, Callable[[], str | Table]] = {
    draw.__name__: draw
    for draw in (
        pilot_gains, pilot_affine, pilot_transfer, pilot_analyses, regime_gains, regime_carry,
        regime_power, regime_images, regime_rounds, regime_analyses,
    )
}  # fmt: skip
