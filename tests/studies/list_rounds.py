"""List what the runs of a sweep reached after every round, as CSV.

    python tests/studies/list_rounds.py sweep/runs leaderboard/studies/regime/rounds.csv

One line per run; runs in the list that are not in the folder stay. settings: of the method, where
they are not the defaults of its class; rounds: validation accuracy in percent at the end of every
round; training: the least training accuracy of these; ascents: training accuracy in percent after
each of SEAL's ascents. The script imports nothing of fsbench.
"""

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIELDS = (
    "run", "network", "width", "images_per_class",
    "epochs", "lr", "weight_decay", "label_smoothing", "schedule",
    "method", "settings", "seed", "rounds", "training", "ascents",
)  # fmt: skip
ASCENT = re.compile(r"before the ascent, ([\d.]+)% after")


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf8").splitlines()]


def describe_run(folder: Path) -> dict[str, object]:
    """Return the line of a run that has ended."""
    recipe = json.loads((folder / "recipe.json").read_text(encoding="utf8"))["recipe"]
    (method,) = recipe["methods"]
    log = read_lines(folder / "log.jsonl")
    last = max(line["epoch"] for line in log)
    ends = [line for line in log if line["epoch"] == last]
    notes = (line["note"] for line in read_lines(folder / "rewrites.jsonl"))
    return {
        "run": folder.name,
        "network": recipe["architecture"],
        "width": recipe["width"],
        "images_per_class": recipe["source_subset"]["images_per_class"],
        "epochs": recipe["plan"]["epochs"],
        "lr": recipe["lr"],
        "weight_decay": recipe["weight_decay"],
        "label_smoothing": recipe["label_smoothing"],
        "schedule": recipe["schedule"],
        "method": method.pop("name"),
        "settings": " ".join(f"{k}={v}" for k, v in method.items() if v is not None),
        "seed": recipe["seed"],
        "rounds": " ".join(f"{100 * line['val_accuracy']:.2f}" for line in ends),
        "training": f"{100 * min(line['train_accuracy'] for line in ends):.1f}",
        "ascents": " ".join(match[1] for note in notes if (match := ASCENT.search(note))),
    }


def describe_runs(folder: Path) -> Iterator[dict[str, object]]:
    """Yield the lines of all runs that have ended; name the others on stderr."""
    for run in sorted(file.parent for file in folder.glob("*/log.jsonl")):
        if (run / "run.json").exists():
            yield describe_run(run)
        else:
            print(f"{run} has not ended: it is left out", file=sys.stderr)


def update_list(runs: Path, file: Path) -> None:
    """Add the runs of a folder to the list, in order of their names."""
    lines: dict[object, dict[str, Any]] = {}
    if file.exists():
        with file.open(encoding="utf8", newline="") as earlier:
            lines = {line["run"]: line for line in csv.DictReader(earlier)}
    lines |= {line["run"]: line for line in describe_runs(runs)}
    with file.open("w", encoding="utf8", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines[name] for name in sorted(lines, key=str))


if __name__ == "__main__":
    update_list(*map(Path, sys.argv[1:]))
