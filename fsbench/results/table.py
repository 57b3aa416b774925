"""Results as rows for people: one column a model, one row a board column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fsbench.results.names import model_name
from fsbench.schema import Result

SOURCE_ROW = "source (in-domain)"


def table(
    results: Sequence[Result], names: Mapping[int, str] | None = None
) -> tuple[list[str], list[list[str]], list[str]]:
    """Header, rows and notes: mean ± 95 % interval in percent, flags marked, '-' where absent.

    names: place in `results` -> name of the model; by default the name its reference gives, with
    the start of the weights hash where two weights share it.
    """
    labels = names or model_labels(results)
    models = list(dict.fromkeys(labels[i] for i in range(len(results))))
    rows: dict[str, dict[str, list[str]]] = {}
    for i, result in enumerate(results):
        rows.setdefault(result.column, {}).setdefault(labels[i], []).append(cell(result))
        source = result.backbone.source_accuracy
        if source is not None:
            rows.setdefault(SOURCE_ROW, {})[labels[i]] = [f"{100 * source:.2f}"]
    order = sorted(rows, key=lambda name: (name == SOURCE_ROW, row_key(name)))
    body = [[name, *(" / ".join(rows[name].get(m, ["-"])) for m in models)] for name in order]
    return ["task", *models], body, notes(results)


def cell(result: Result) -> str:
    """e.g. '57.75 ± 0.88 [subset]'."""
    score = result.score
    half = "" if score.ci95 is None or math.isnan(score.ci95) else f" ± {100 * score.ci95:.2f}"
    flags = f" [{', '.join(result.flags)}]" if result.flags else ""
    return f"{100 * score.mean:.2f}{half}{flags}"


def model_labels(results: Sequence[Result]) -> dict[int, str]:
    """Place -> model name, with the weights hash where one name stands for several weights."""
    weights: dict[str, set[str]] = {}
    for result in results:
        weights.setdefault(model_name(result.backbone), set()).add(result.backbone.weights_hash)
    return {
        i: name if len(weights[name]) == 1 else f"{name} {r.backbone.weights_hash[:6]}"
        for i, r in enumerate(results)
        for name in [model_name(r.backbone)]
    }


def row_key(column: str) -> tuple[str, int, str]:
    """Data set, then shots as a number (5 before 20), then the rest; probes come first."""
    dataset, _, rest = column.partition(":")
    digits = rest.split("w", 1)[-1].split("s", 1)[0]
    return dataset, int(digits) if digits.isdigit() else 0, rest


def notes(results: Sequence[Result]) -> list[str]:
    """What a reader must know of these numbers."""
    found = ["percent; ± is the 95 % interval over episodes or test images"]
    if any(":probe" in result.task for result in results):
        found.append("probe: best learning rate and epoch on the test images, as SEAL reports")
    return found + [
        f"{model_name(result.backbone)} {result.column}: {result.collapsed} collapsed and "
        f"{result.non_finite} non-finite of {result.score.n} episodes, counted in the mean"
        for result in results
        if result.collapsed or result.non_finite
    ]


def as_json(result: Result) -> dict[str, Any]:
    """The Result record with `mean` at its top, as lm-eval and mteb users expect."""
    return {**result.model_dump(mode="json"), "mean": result.score.mean}
