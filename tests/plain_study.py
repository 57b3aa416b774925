"""What goes with transfer in the pilot study: `plain_study.py METHODS ENTRIES FINDINGS`.

METHODS: what `fsbench leaderboard methods --board leaderboard/entries --format json` prints;
ENTRIES, FINDINGS: leaderboard/entries, leaderboard/pilot/analyses. Pearson's r of a row's accuracy
on its source with its transfer, and Spearman's of what the analyses found in a run with the
transfer of that run; both also without the warm starts, whose rate is constant, and the controls of
these and of the meta-learners. Nothing of fsbench is imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy.stats import pearsonr, spearmanr

FOUND = (
    ("knn_depth", "accuracy behind block 4 (layer4.0)"),
    ("sharpness", "train loss"),
    ("sharpness", "loss increase at sigma 0.01"),
)


def apart(name: str, schedule: str) -> bool:
    return schedule == "constant" or "-as-anil" in name


def line(what: str, pairs: list[tuple[float, float, bool]], r: Any) -> str:
    """pairs: of what is correlated, and whether the run stands apart."""
    kept = [pair for pair in pairs if not pair[2]]
    parts = (f"{r(*list(zip(*p, strict=True))[:2])[0]:.2f} of {len(p)}" for p in (pairs, kept))
    return f"{what}: {' and without these '.join(parts)}"


def lines(boards: list[dict[str, Any]], entries: Path, findings: Path) -> Iterator[str]:
    rows = [row for row in boards[0]["rows"] if row["overall"] and row["source_accuracy"]]
    yield line(
        "accuracy on the source",
        [
            (r["source_accuracy"], r["overall"]["mean"], apart(r["entries"][0], r["schedule"]))
            for r in rows
        ],
        pearsonr,
    )
    schedules = {entry: row["schedule"] for row in rows for entry in row["entries"]}
    for analysis, name in FOUND:
        pairs = []
        for file in sorted(findings.glob(f"*/*/analyses/{analysis}-*.json")):
            run = file.parts[-4]
            measures = json.loads(file.read_bytes())["finding"]["measures"]
            value = next(measure["value"] for measure in measures if measure["name"] == name)
            cells = sorted(entries.glob(f"{run}/*/*/*/*-linear-*.json"))
            means = [json.loads(cell.read_bytes())["score"]["mean"] for cell in cells]
            pairs.append((value, sum(means) / len(means), apart(run, schedules[run])))
        yield line(name, pairs, spearmanr)


if __name__ == "__main__":
    methods, entries, findings = map(Path, sys.argv[1:4])
    sys.stdout.writelines(
        f"{text}\n" for text in lines(json.loads(methods.read_bytes()), entries, findings)
    )
