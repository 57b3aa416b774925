"""The tables of a README, from registries, entries and findings:

    python -m fsbench.api.readme README.md leaderboard/pilot/README.md

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; tests/test_docs.py compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from fsbench.api.listing import Row, rows
from leaderboard.render import markdown_table

BLOCK = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
COLUMNS = {
    "methods": ("method", "does", "source"),
    "recipes": (
        "recipe",
        "architecture",
        "source",
        "px",
        "rounds x epochs",
        "paper",
        "row",
        "figure",
    ),
    "datasets": ("data set", "domain", "classes", "images", "licence", "title"),
    "protocols": (
        "field",
        "linear@ibm",
        "linear@startup",
        "affine@ibm",
        "affine@startup",
        "probe",
        "knn",
    ),
    "heads": ("head", "does", "transductive", "settings"),
    "backbones": ("reference", "what"),
    "analyses": ("analysis", "finds", "needs", "source"),
}


INSIDE = {
    "mean prediction depth (blocks)": "prediction depth (of 4 blocks)",
    "accuracy behind block 2 (layer2.0)": "5-NN behind block 2",
    "accuracy behind block 4 (layer4.0)": "behind block 4",
    "train loss": "train loss",
    "loss increase at sigma 0.01": "increase at sigma .01",
}
"""Measures of the pilot study's analyses -> how its page calls them."""


def fill(text: str) -> str:
    """A README with every table made anew."""
    return BLOCK.sub(lambda match: block(match[1]), text)


def block(name: str) -> str:
    if name in STUDY:
        return f"<!-- table: {name} -->\n{STUDY[name]()}\n<!-- end -->"
    found = rows(name)
    if name == "protocols":
        found = transposed([row for row in found if row["protocol"] in COLUMNS[name]])
    if name == "recipes":
        found = [row for row in found if row["paper"]]
    return f"<!-- table: {name} -->\n{markdown(COLUMNS[name], found)}<!-- end -->"


def gains() -> str:
    """What the runs of the pilot study have over their controls, a table a track."""
    from leaderboard.methods import build, render
    from leaderboard.published import ENTRIES

    boards = [b.model_copy(update={"board": "pilot study"}) for b in build.of_board(ENTRIES)]
    return "\n\n".join(markdown_table(render.gains(board)) for board in boards)


def inside() -> str:
    """What the analyses found in the runs of the pilot study, a row a run."""
    from fsbench.api.comparison import table
    from fsbench.findings import Analysis
    from fsbench.results.files import read_record
    from leaderboard.published import ENTRIES

    files = sorted(ENTRIES.parent.glob("pilot/analyses/*/*/analyses/*.json"))
    (_, _, *names), body = table([read_record(file, Analysis) for file in files])
    found = {number: dict(zip(names, values, strict=True)) for _, number, *values in body}
    runs = [{"run": run} | {shown: found[n][run] for n, shown in INSIDE.items()} for run in names]
    return markdown(("run", *INSIDE.values()), runs).rstrip()


STUDY = {"pilot": gains, "inside": inside}
"""Tables of the pilot study, which come from its entries and findings instead of a registry."""


def transposed(protocols: list[Row]) -> list[Row]:
    """One row a field of the specs, one column a protocol."""
    names = dict.fromkeys(field for row in protocols for field in row["fields"])
    return [
        {"field": field} | {row["protocol"]: row["fields"].get(field) for row in protocols}
        for field in names
    ]


def markdown(columns: tuple[str, ...], found: list[Row]) -> str:
    lines = [columns, ("---",) * len(columns)]
    lines += [tuple(cell(row.get(column)) for column in columns) for row in found]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{key}={shown}" for key, shown in value.items()]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    text = "" if value is None else f"{value:,}" if type(value) is int else str(value)
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(fill(path.read_text(encoding="utf8")), encoding="utf8")
