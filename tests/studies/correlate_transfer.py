"""Correlate the transfer accuracy of the pilot study with source accuracy and analyses.

    python tests/studies/correlate_transfer.py METHODS ENTRIES FINDINGS

METHODS: the output of `fsbench leaderboard methods --board leaderboard/entries --format json`;
ENTRIES, FINDINGS: leaderboard/entries, leaderboard/pilot/analyses. The script prints Pearson's r
between the source accuracy of a row and its transfer, and Spearman's between a measure of the
analyses of a run and the transfer of that run. Both are repeated without the warm starts, which
have a constant learning rate, and without the controls of these and of the meta-learners. The
script imports nothing of fsbench.
"""

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
            (r["source_accuracy"], r["overall"]["mean"], is_apart(r["entries"][0], r["schedule"]))
            for r in rows
        ],
        pearsonr,
    )
    schedules = {entry: row["schedule"] for row in rows for entry in row["entries"]}
    for analysis, name in MEASURES:
        pairs = []
        for file in sorted(findings.glob(f"*/*/analyses/{analysis}-*.json")):
            run = file.parts[-4]
            measures = json.loads(file.read_bytes())["finding"]["measures"]
            value = next(measure["value"] for measure in measures if measure["name"] == name)
            cells = sorted(entries.glob(f"{run}/*/*/*/*-linear-*.json"))
            means = [json.loads(cell.read_bytes())["score"]["mean"] for cell in cells]
            pairs.append((value, sum(means) / len(means), is_apart(run, schedules[run])))
        yield line(name, pairs, spearmanr)


if __name__ == "__main__":
    methods, entries, findings = map(Path, sys.argv[1:4])
    sys.stdout.writelines(
        f"{text}\n" for text in lines(json.loads(methods.read_bytes()), entries, findings)
    )
