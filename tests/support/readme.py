"""Generate tables and figures of the READMEs from the registries, the entries and the analyses.

    PYTHONPATH=tests python -m support.readme

fills, in every document, what stands between `<!-- table: NAME -->` and `<!-- end -->`, and draws
what the READMEs of the studies show. tests/contracts/test_docs.py checks that both are there.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fsbench.api.listing import Row, rows
from leaderboard.figures import write_figures
from leaderboard.methods import read_method_boards

DOCUMENTS = (
    "README.md",
    "fsbench/data/README.md",
    "pretrain/README.md",
    "protocols/README.md",
    "leaderboard/README.md",
    "leaderboard/studies/pilot/README.md",
    "leaderboard/studies/regime/README.md",
)
"""Documents with generated tables, relative to the root of the repository."""

HOME = Path(__file__).resolve().parents[2] / "leaderboard" / "studies"
DRAWN = (HOME / "pilot", HOME / "regime")
"""Studies with figures."""
MEASURED = Path(__file__).resolve().parents[1] / "benchmarks/measured.json"
"""File of the last `make benchmarks`, which fills the table of speed."""

STUDIES = (
    "pilot",
    "inside",
    "regime_gains",
    "regime_carry",
    "regime_power",
    "regime_images",
    "regime_rounds",
    "regime_analyses",
)
BLOCK = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
COLUMNS = {
    "methods": ("method", "title", "does", "source"),
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
    "architectures": ("reference", "what"),
    "analyses": ("analysis", "finds", "needs", "source"),
    "claims": ("claim", "statement", "source", "says", "condition", "seeds", "verdict"),
    "published": ("source", "entries", "results"),
}


def fill(text: str) -> str:
    """Return the text of a document with every table generated anew."""
    return BLOCK.sub(lambda match: block(match[1]), text)


def block(name: str) -> str:
    """Return a table between its two marks."""
    return f"<!-- table: {name} -->\n{TABLES[name]()}\n<!-- end -->"


def listing(name: str) -> Callable[[], str]:
    """Return a function that draws a listing of `fsbench ls` with the columns of the documents."""
    return lambda: markdown(COLUMNS[name], rows(name))


def recipe_table() -> str:
    """Draw the recipes that reproduce a row of a paper, but those of MNIST and CIFAR."""
    shown = [r for r in rows("recipes") if r["paper"] and r["source"] in ("tinyimagenet", "pets")]
    return markdown(COLUMNS["recipes"], shown)


def protocol_table() -> str:
    """Draw the fields of the specs, one row per field and one column per protocol."""
    fields_by_protocol = {
        row["protocol"]: row["fields"]
        for row in rows("protocols")
        if row["protocol"] in COLUMNS["protocols"]
    }
    names = dict.fromkeys(name for fields in fields_by_protocol.values() for name in fields)
    table = [
        {"field": name}
        | {protocol: fields.get(name) for protocol, fields in fields_by_protocol.items()}
        for name in names
    ]
    return markdown(COLUMNS["protocols"], table)


def architectures() -> str:
    """Draw the networks that are addressed as fsbench/NAME."""
    architectures = [row for row in rows("backbones") if row["kind"] == "architecture"]
    return markdown(COLUMNS["architectures"], architectures)


def claims() -> str:
    """Draw the claims of the papers that `fsbench claims` runs again."""
    from fsbench.claims import list_statements

    return markdown(COLUMNS["claims"], list_statements())


def published_table() -> str:
    """Draw the papers whose figures ship as published entries, one row per paper."""
    entries, results = Counter[str](), Counter[str]()
    for row in rows("entries"):
        entries[row["source"]] += 1
        results[row["source"]] += row["results"]
    table = [{"source": s, "entries": entries[s], "results": results[s]} for s in sorted(entries)]
    return markdown(COLUMNS["published"], table)


def study(name: str) -> Callable[[], str]:
    """Return a function that draws a table of a study's page."""

    def draw() -> str:
        from support import studies

        table = studies.TABLES[name]()
        return table if isinstance(table, str) else markdown(*table)

    return draw


def speed_tables() -> str:
    """Draw what `make benchmarks` measured, with the machine that it measured."""
    if not MEASURED.exists():
        return "Not measured yet: `make benchmarks` fills this table."
    measured = json.loads(MEASURED.read_text(encoding="utf8"))
    machine = ", ".join(f"{name} {value}" for name, value in measured["machine"].items())
    parts = [f"Measured with: {machine}."]
    parts += [markdown(tuple(rows[0]), rows) for rows in (measured["rows"], measured["growth"])]
    return "\n\n".join(parts)


TABLES: dict[str, Callable[[], str]] = {
    "methods": listing("methods"),
    "recipes": recipe_table,
    "datasets": listing("datasets"),
    "protocols": protocol_table,
    "heads": listing("heads"),
    "architectures": architectures,
    "analyses": listing("analyses"),
    "claims": claims,
    "published": published_table,
    "speed": speed_tables,
    **{name: study(name) for name in STUDIES},
}


def draw_shown(study: Path, folder: Path) -> None:
    """Draw the figures that the README of a study shows."""
    text = (study / "README.md").read_text(encoding="utf8")
    for path in write_figures(read_method_boards(study / "entries"), folder):
        if f"figures/{path.name}" not in text:
            path.unlink()


def markdown(columns: tuple[str, ...], table: list[Row]) -> str:
    """Draw rows as a Markdown table without a line break at the end."""
    lines = [columns, ("---",) * len(columns)]
    lines += [tuple(text_of(row.get(column)) for column in columns) for row in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text_of(value: Any) -> str:
    """Return a value as the text of one cell."""
    if isinstance(value, dict):
        value = [f"{key}={shown}" for key, shown in value.items()]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    text = "" if value is None else f"{value:,}" if type(value) is int else str(value)
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for document in map(Path, DOCUMENTS):
        document.write_text(fill(document.read_text(encoding="utf8")), encoding="utf8")
    for study in DRAWN:
        draw_shown(study, study / "figures")
