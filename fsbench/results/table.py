"""Results as rows for people: one column per model, one row per board column."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median, mode
from typing import Any

from fsbench.core.schema import Analysis, FeatureCost, Result, ScoreRecord
from fsbench.core.specs import BALANCED, ProbeSpec
from fsbench.core.statistics import Score
from fsbench.core.tables import TextTable
from fsbench.core.tasks import ColumnId, Track
from fsbench.results import summary
from fsbench.results.names import ORDER, model_name

SOURCE_ROW, DIFFERENCE = "source (in-domain)", "difference"
DENSE, LARGEST = "dense", "largest class"
DIFFERENCE_NOTE = (
    "difference: second minus first of two models, highest minus lowest of more; fsbench compare "
    "tests it, paired"
)
KNN = "k nearest training images vote; nothing is chosen on the test images"


def build_tables(results: Sequence[Result], models: Sequence[str] | None = None) -> list[TextTable]:
    """Return one table per track; models: of each result, by default named by its reference."""
    names = models or [model_name(result.backbone) for result in results]
    tracks: dict[Track, list[int]] = {}
    for i, result in enumerate(results):
        tracks.setdefault(Track.of(result.column), []).append(i)
    return [
        build_table(
            [results[i] for i in rows],
            [names[i] for i in rows],
            "results" if len(tracks) == 1 else f"results {track.label}",
        )
        for track, rows in tracks.items()
    ]


def build_table(results: Sequence[Result], models: Sequence[str], name: str) -> TextTable:
    """Return one column per model and one row per task: mean ± 95 % interval, '-' where absent.

    The title has every flag, and head, protocol and input size that all rows share.
    """
    labels = distinct_labels(results, models)
    rows: dict[ColumnId, dict[str, list[ScoreRecord]]] = {}
    for label, result in zip(labels, results, strict=True):
        for column, score in list_scores(result):
            rows.setdefault(column, {}).setdefault(label, []).append(score)
    header, columns, body = list(dict.fromkeys(labels)), sorted(rows), []
    short, common = shorten_columns([str(column) for column in columns])
    for text, column in zip(short, columns, strict=True):
        scores = [rows[column].get(label, []) for label in header]
        texts = [" / ".join(map(format_score, several)) or "-" for several in scores]
        means = [several[-1].mean for several in scores if several]
        gap = means[-1] - means[0] if len(header) == 2 else max(means) - min(means)
        difference = f"{100 * gap:+.2f}" if len(means) > 1 else "-"
        body.append((text, *texts, difference))
    backbones = {label: r.backbone for label, r in zip(labels, results, strict=True)}
    sources = [backbone.source_accuracy for backbone in backbones.values()]
    if any(sources):
        body.append((SOURCE_ROW, *("-" if s is None else f"{100 * s:.2f}" for s in sources), "-"))
    words = " ".join(word for word in common.split() if word not in name.split())
    flags = [flag for flag in ORDER if any(flag in result.flags for result in results)]
    notes = table_notes(results, labels) + [DIFFERENCE_NOTE] * (len(header) > 1)
    table = TextTable(
        " · ".join([f"{name}: {words}" if words else name, *flags]),
        ("task", *header, DIFFERENCE),
        tuple(body),
        "\n".join(notes),
        optional=(LARGEST, SOURCE_ROW, DIFFERENCE),
    )
    if len(header) < 2:
        table = table.without(DIFFERENCE)
    for label, backbone in backbones.items():
        of_model = [r for name, r in zip(labels, results, strict=True) if name == label]
        notes.append(f"{label}: {backbone.preprocessing}; {describe_costs(of_model)}")
    complete = replace(table, note="\n".join(notes))
    return replace(table.without(DENSE), make_complete=lambda: complete)


def list_scores(result: Result) -> Iterator[tuple[ColumnId, ScoreRecord]]:
    """Yield the rows of a result: its score, that of dense queries, a probe's other ones."""
    yield result.column, result.score
    if result.other and len(set(result.dataset.test_counts)) > 1:
        name = "top-1" if BALANCED in result.spec.variant else "balanced accuracy"
        yield result.column.marked(name), result.other
        share = max(result.dataset.test_counts) / sum(result.dataset.test_counts)
        yield result.column.marked(LARGEST), ScoreRecord(mean=share, n=result.score.n)
    if result.dense is not None:
        yield result.column.marked(DENSE), result.dense
    if "beside" in result.details and isinstance(result.spec, ProbeSpec):
        rule = summary.BESIDE[summary.find_rule_beside(result.spec)]
        fields = {key: result.details.get(f"beside_{key}") for key in ("mean", "ci95")}
        beside = ScoreRecord.model_validate(fields | {"n": result.score.n})
        yield result.column.marked(rule), beside


def format_score(score: ScoreRecord | Score) -> str:
    """Return e.g. '57.75 ± 0.88'."""
    half = "" if score.ci95 is None or math.isnan(score.ci95) else f" ± {100 * score.ci95:.2f}"
    return f"{100 * score.mean:.2f}{half}"


def describe_costs(results: Sequence[Result]) -> str:
    """Return parameters of a model, and what its features cost at each input size, in words."""
    parts = [f"{results[0].backbone.n_parameters / 1e6:.3g} M parameters"]
    for size in sorted({result.spec.image.input_size for result in results}):
        cost = combine_costs(r for r in results if r.spec.image.input_size == size)
        if cost:
            macs = "" if cost.macs is None else f"{cost.macs / 1e9:.3g} GMACs, "
            parts.append(f"at {size} px {macs}{cost.measured}")
    return "; ".join(parts)


def combine_costs(results: Iterable[Result]) -> FeatureCost | None:
    """Return median speed and highest memory on the machine of most results; None without any.

    results: of one architecture at one input size.
    """
    costs = [result.provenance.cost for result in results if result.provenance.cost]
    if not costs:
        return None
    machine = mode(cost.machine for cost in costs)
    measured = [cost for cost in costs if cost.machine == machine]
    speed = median(cost.images_per_second for cost in measured)
    peak = max(cost.peak_memory_bytes for cost in measured)
    return measured[0].model_copy(update={"images_per_second": speed, "peak_memory_bytes": peak})


def distinct_labels(results: Sequence[Result | Analysis], models: Sequence[str]) -> list[str]:
    """Return model names, with the weights hash where one name has several weights."""
    weights: dict[str, set[str]] = {}
    for result, model in zip(results, models, strict=True):
        weights.setdefault(model, set()).add(result.backbone.identity)
    return [
        model if len(weights[model]) == 1 else f"{model} {result.backbone.identity[:6]}"
        for result, model in zip(results, models, strict=True)
    ]


def table_notes(results: Sequence[Result], labels: Sequence[str]) -> list[str]:
    """Return the notes below a table; labels: the model of each result."""
    notes = ["percent; ± is the 95 % interval over episodes or test images"]
    if any(result.dense is not None for result in results):
        notes.append(
            "dense: same classifiers, scored on every non-support image of the episode's classes "
            "(narrower interval); --wide prints the rows"
        )
    if any(len(set(result.dataset.test_counts)) > 1 for result in results):
        notes.append(
            "balanced (accuracy): mean over the classes of the share of right test images; "
            f"{LARGEST}: its share of the test images, the top-1 of always predicting it"
        )
    notes += rule_notes(results)
    if any(result.spec.transductive for result in results):
        notes.append("transductive: sees all queries at once; not comparable with the other rows")
    return notes + collapse_notes(results, labels)


def collapse_notes(results: Sequence[Result], labels: Sequence[str] = ()) -> list[str]:
    """Return notes on results with collapsed or non-finite episodes; labels: the model of each."""
    lines = []
    for i, result in enumerate(results):
        counts = {
            "predicted one class for every query": result.collapsed,
            "had non-finite outputs": result.non_finite,
        }
        parts = [f"{n} of {result.score.n} episodes {what}" for what, n in counts.items() if n]
        if result.task.probe and result.collapsed:
            parts = ["one class is predicted for every test image"]
        if parts:
            model = labels[i] if labels else model_name(result.backbone)
            lines.append(f"{model} {result.column}: {', '.join(parts)} (kept in the mean)")
    return lines


def rule_notes(results: Sequence[Result]) -> list[str]:
    """Explain how the numbers of probes were chosen, by the labels of their rows."""
    probes = [(r.details, r.spec) for r in results if isinstance(r.spec, ProbeSpec)]
    names = {"test": "probe", "held_out": "probe lr-held-out", "held_out_epoch": "probe held-out"}
    rules = [summary.rule_of(spec) for _, spec in probes]
    notes = [f"{names[rule]}: {summary.CHOICE_RULES[rule]}" for rule in rules]
    beside = [summary.find_rule_beside(spec) for details, spec in probes if "beside" in details]
    notes += [f"{summary.BESIDE[rule]}: {summary.CHOICE_RULES[rule]}" for rule in beside]
    notes += [f"knn: {KNN}" for result in results if result.spec.kind == "knn"]
    return list(dict.fromkeys(notes))


def result_as_json(result: Result) -> dict[str, Any]:
    """Return the Result with its task, column, spec digest and `mean`, as lm-eval users expect."""
    names = {"task": str(result.task), "column": str(result.column)}
    named = names | {"spec_digest": result.spec_digest, "mean": result.score.mean}
    return {**named, **result.model_dump(mode="json")}


LARGEST_RATIO = 2.0
"""Mean norms of two backbones that differ by more are warned of."""


def warn_of_feature_scale(results: Mapping[str, Mapping[ColumnId, Result]]) -> str:
    """Return a sentence on entries whose features differ too much in scale; empty if none do.

    results: entry -> column -> result; those that record no scale, or do not depend on it, count
    for nothing.
    """
    norms: dict[ColumnId, dict[float, str]] = {}
    for name, by_column in results.items():
        for column, result in by_column.items():
            if not result.spec.scale_free and result.feature_norm:
                norms.setdefault(column, {})[result.feature_norm] = name
    widest = max(norms.values(), key=lambda names: max(names) / min(names), default={1.0: ""})
    low, high = min(widest), max(widest)
    if high / low <= LARGEST_RATIO:
        return ""
    return (
        f"Feature norms differ {high / low:.3g} times: {high:.3g} for {widest[high]}, {low:.3g} "
        f"for {widest[low]}. Accuracies of linear heads depend on the scale of features as well as "
        "on transfer; those of logistic heads do not."
    )


def shorten_columns(columns: Sequence[str]) -> tuple[list[str], str]:
    """Return column labels without the parts that all columns share, and those parts."""
    ids = [ColumnId.parse(column) for column in columns]
    modes = {column.task.mode for column in ids if column.task.mode}
    sizes = {f"{column.input_size}px" for column in ids}
    shared = [part for parts in (modes, sizes) if len(parts) == 1 < len(ids) for part in parts]

    def shorten(column: ColumnId) -> str:
        task, size = column.task, f"{column.input_size}px"
        name = f"{task.dataset}:{task.shape}" if task.mode in shared else str(task)
        return " ".join([name, *([] if size in shared else [size]), *column.variant])

    return [shorten(column) for column in ids], " ".join(shared)
