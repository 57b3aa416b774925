"""Findings of several backbones side by side: a table's rows, and panels of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from fsbench.core.findings import Analysis, Measure, View
from fsbench.core.panels import Curve, Panel
from fsbench.results.names import model_name

NAMED = 8
"""Positions that a picture still names one by one."""


def labels(analyses: Sequence[Analysis]) -> list[str]:
    """A model's name for each record, with the start of the weights hash where two share one."""
    names = [model_name(each.backbone) for each in analyses]
    weights: dict[str, set[str]] = {}
    for name, each in zip(names, analyses, strict=True):
        weights.setdefault(name, set()).add(each.backbone.weights_hash)
    return [
        name if len(weights[name]) == 1 else f"{name} {each.backbone.weights_hash[:6]}"
        for name, each in zip(names, analyses, strict=True)
    ]


def table(analyses: Sequence[Analysis]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row a number, a column a model, '-' where a model has none."""
    named = labels(analyses)
    header = list(dict.fromkeys(named))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for label, each in zip(named, analyses, strict=True):
        for measure in each.finding.measures:
            rows.setdefault((each.question.what, measure.name), {})[label] = shown(measure)
    body = [[what, name, *(row.get(h, "-") for h in header)] for (what, name), row in rows.items()]
    return ["analysis", "number", *header], body


def shown(measure: Measure) -> str:
    """Shares in percent, counts whole, other numbers with four digits."""
    if measure.share:
        return f"{100 * measure.value:.2f} %"
    return f"{measure.value:,}" if isinstance(measure.value, int) else f"{measure.value:.4g}"


def panels(analyses: Sequence[Analysis]) -> list[Panel]:
    """Of one analysis: the views of all models, those of one title in one panel."""
    views: dict[str, list[tuple[str, View]]] = {}
    for label, each in zip(labels(analyses), analyses, strict=True):
        for view in each.finding.views:
            views.setdefault(view.title, []).append((label, view))
    return [panel(found) for found in views.values()]


def panel(found: Sequence[tuple[str, View]]) -> Panel:
    """Views of one title, under their models' names."""
    first, places = found[0][1], {view.places for _, view in found}
    return Panel(
        title=first.title,
        x=first.x,
        y=first.y,
        curves=tuple(
            Curve(label=label, x=v.at, y=v.values, low=v.low, high=v.high) for label, v in found
        ),
        log_x=first.log_x,
        y_scale=first.y_scale,
        from_zero=first.from_zero,
        ticks=first.places if len(places) == 1 and len(first.places) <= NAMED else (),
        bars=all(len(view.at) == 1 for _, view in found),
    )
