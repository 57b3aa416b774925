"""List what the runs of a sweep reached after every round, as CSV.

    python tests/studies/list_rounds.py sweep/runs leaderboard/studies/regime/rounds.csv

The lists of searches, search.csv, are written the same way. One line per run; runs in the list
that are not in the folder stay. settings: of the method, where they are not the defaults of its
class; rounds: validation accuracy in percent at the end of every round; training: the least
training accuracy of these; ascents: training accuracy in percent after each of SEAL's ascents.
The script imports nothing of fsbench.
"""

import json
import re
import sys
from pathlib import Path

import pandas as pd

COPIED = ("epochs", "augmentation", "lr", "weight_decay", "label_smoothing", "schedule")
ASCENT = re.compile(r"before the ascent, ([\d.]+)% after")


def describe_run(folder: Path) -> dict[str, object]:
    """Return the line of a run that has ended."""
    recipe = json.loads((folder / "recipe.json").read_text(encoding="utf8"))["recipe"]
    recipe["epochs"], (method,) = recipe["plan"]["epochs"], recipe["methods"]
    log = pd.read_json(folder / "log.jsonl", lines=True)
    ends = 100 * log[log.epoch == log.epoch.max()]
    rewrites = (folder / "rewrites.jsonl").read_text(encoding="utf8")
    return {
        "run": folder.name,
        "network": recipe["architecture"],
        "width": recipe["width"],
        "images_per_class": (recipe.get("source_subset") or {}).get("images_per_class", ""),
        **{name: recipe[name] for name in COPIED},
        "method": method.pop("name"),
        "settings": " ".join(f"{k}={v}" for k, v in method.items() if v is not None),
        "seed": recipe["seed"],
        "rounds": " ".join(f"{accuracy:.2f}" for accuracy in ends.val_accuracy),
        "training": f"{ends.train_accuracy.min():.1f}",
        "ascents": " ".join(ASCENT.findall(rewrites)),
    }


def update_list(runs: Path, file: Path) -> None:
    """Add the runs of a folder to the list, in order of their names; name unfinished ones."""
    ended = [path.parent for path in sorted(runs.glob("*/run.json"))]
    for path in sorted({path.parent for path in runs.glob("*/log.jsonl")} - {*ended}):
        print(f"{path} has not ended: it is left out", file=sys.stderr)
    parts = [pd.read_csv(file, dtype=str)] if file.exists() else []
    parts.append(pd.DataFrame(map(describe_run, ended), dtype=object))
    lines = pd.concat(parts).drop_duplicates("run", keep="last").sort_values("run")
    lines.to_csv(file, index=False, lineterminator="\n")


if __name__ == "__main__":
    update_list(*map(Path, sys.argv[1:]))
