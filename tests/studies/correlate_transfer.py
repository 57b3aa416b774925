"""Correlate the transfer accuracy of the pilot study with source accuracy and analyses.

    python tests/studies/correlate_transfer.py METHODS ENTRIES FINDINGS

METHODS: the output of `fsbench leaderboard methods --json`, with the board ENTRIES, i.e.
leaderboard/studies/pilot/entries; FINDINGS: analyses.jsonl.gz of the study. It prints Pearson's r
between the source accuracy of a row and its transfer, and Spearman's between a measure of the
analyses of a run and the transfer of that run. Both are repeated without the warm starts, which
have a constant learning rate, and without the controls of these and of the meta-learners. The
script imports nothing of fsbench.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy.stats import pearsonr, spearmanr

MEASURES = (
    ("knn_depth", "accuracy behind block 4 (layer4.0)"),
    ("sharpness", "train loss"),
    ("sharpness", "loss increase at sigma 0.01"),
)


def is_apart(name: str, schedule: str) -> bool:
    """Return whether a run is a warm start or a control of these or of the meta-learners."""
    return schedule == "constant" or "-as-anil" in name


def line(what: str, pairs: list[tuple[float, float, bool]], r: Any) -> str:
    """Return one line of output; pairs: the two values and whether the run is left out later."""
    ordinary = [pair for pair in pairs if not pair[2]]
    parts = (f"{r(*list(zip(*p, strict=True))[:2])[0]:.2f} of {len(p)}" for p in (pairs, ordinary))
    return f"{what}: {' and without these '.join(parts)}"


def lines(boards: list[dict[str, Any]], entries: Path, findings: Path) -> Iterator[str]:
    rows = [row for row in boards[0]["rows"] if row["overall"] and row["source_accuracy"]]
    yield line(
        "accuracy on the source",
        [
            (r["source_accuracy"], r["overall"]["mean"], is_apart(r["name"], r["schedule"]))
            for r in rows
        ],
        pearsonr,
    )
    schedules = {row["name"]: row["schedule"] for row in rows}
    transfer = dict(read_transfer(entries))
    with gzip.open(findings, "rt", encoding="utf8") as file:
        records = [json.loads(text) for text in file]
    for analysis, name in MEASURES:
        pairs = []
        for record in (r for r in records if r["question"]["what"] == analysis):
            measures = record["finding"]["measures"]
            value = next(measure["value"] for measure in measures if measure["name"] == name)
            entry, mean = transfer[record["backbone"]["weights_hash"]]
            pairs.append((value, mean, is_apart(entry, schedules[entry])))
        yield line(name, pairs, spearmanr)


def read_transfer(entries: Path) -> Iterator[tuple[str, tuple[str, float]]]:
    """Yield hash of weights -> entry and mean over the few-shot tasks with linear heads."""
    for path in sorted(entries.glob("*/entry.json")):
        content = json.loads(path.read_bytes())
        for i, model in enumerate(content["models"]):
            linear = (r for r in content["results"] if "/linear@" in r["column"])
            means = [r["score"]["mean"] for r in linear if r["model"] == i]
            yield model["weights_hash"], (path.parent.name, sum(means) / len(means))


if __name__ == "__main__":
    methods, entries, findings = map(Path, sys.argv[1:4])
    sys.stdout.writelines(
        f"{text}\n" for text in lines(json.loads(methods.read_bytes()), entries, findings)
    )
