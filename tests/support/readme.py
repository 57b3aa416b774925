"""Generate tables and figures of the READMEs from the registries, the entries and the analyses.

    PYTHONPATH=tests python -m support.readme

fills, in every document, what stands between `<!-- table: NAME -->` and `<!-- end -->`, and draws
what the READMEs of the studies show. tests/contracts/test_docs.py checks that both are there.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support import hours, real, studies

from fsbench.api.listing import Row, rows
from fsbench.claims import list_statements
from fsbench.core import io
from leaderboard.figures import write_figures, write_stability, write_tiers
from leaderboard.methods import read_method_boards

DOCUMENTS = (
    "README.md",
    "fsbench/claims/README.md",
    "fsbench/data/README.md",
    "pretrain/README.md",
    "protocols/README.md",
    "leaderboard/README.md",
    "leaderboard/studies/pilot/README.md",
    "leaderboard/studies/real/README.md",
    "leaderboard/studies/regime/README.md",
)
"""Documents with generated tables, relative to the root of the repository."""
DRAWN = (studies.PILOT, real.REAL, studies.REGIME)
"""Studies with figures."""
MEASURED = Path(__file__).resolve().parents[1] / "benchmarks/measured.json"
"""File of the last `make benchmarks`, which fills the table of speed."""
BLOCK = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
PROTOCOLS = ("linear@ibm", "linear@startup", "affine@ibm", "affine@startup", "probe", "knn")


def fill(text: str) -> str:
    """Return the text of a document with every table generated anew."""

    def draw(match: re.Match[str]) -> str:
        table = TABLES[match[1]]()
        drawn = table if isinstance(table, str) else markdown(table)
        return f"<!-- table: {match[1]} -->\n{drawn}\n<!-- end -->"

    return BLOCK.sub(draw, text)


def list_rows(
    name: str, *columns: str, where: Callable[[Row], Any] = lambda row: True
) -> Callable[[], studies.Table]:
    """Return a function that gives some columns and rows of a listing of `fsbench ls`."""
    return lambda: [{c: row.get(c) for c in columns} for row in rows(name) if where(row)]


def list_protocols() -> studies.Table:
    """Return the fields of the specs, one row per field and one column per protocol."""
    fields = {row["protocol"]: row["fields"] for row in rows("protocols")}
    names = dict.fromkeys(name for protocol in PROTOCOLS for name in fields[protocol])
    return [{"field": name} | {p: fields[p].get(name) for p in PROTOCOLS} for name in names]


def list_published() -> studies.Table:
    """Return the papers whose figures ship as published entries, one row per paper."""
    entries, results = Counter[str](), Counter[str]()
    for row in rows("published"):
        entries[row["source"]] += 1
        results[row["source"]] += row["results"]
    return [{"source": s, "entries": entries[s], "results": results[s]} for s in sorted(entries)]


def list_claim_changes() -> studies.Table:
    """Return every statement of a paper: verdicts before and after the review, and why."""
    changes = io.read_table(Path(__file__).with_name("claim_changes.yaml"))
    table = []
    for row in list_statements():
        change = changes[f"{row['claim']} {row['statement']}"]
        statement = {column: row[column] for column in ("claim", "statement", "says")}
        verdicts = {"before": change["before"], "now": row["verdict"]}
        fault = {"fault of a miss": row["fault of a miss"]}
        reason = {"what changed": change["changed"], "sentence of the paper": change["sentence"]}
        table.append(statement | verdicts | fault | reason)
    return table


def draw_speed() -> str:
    """Draw what `make benchmarks` measured, with the machine that it measured."""
    if not MEASURED.exists():
        return "Not measured yet: `make benchmarks` fills this table."
    measured = json.loads(MEASURED.read_text(encoding="utf8"))
    machine = ", ".join(f"{name} {value}" for name, value in measured["machine"].items())
    tables = map(markdown, (measured["rows"], measured["growth"]))
    return "\n\n".join([f"Measured with: {machine}.", *tables])


RECIPE = ("recipe", "architecture", "source", "px", "rounds x epochs", "paper", "row", "figure")
CLAIM = ("claim", "statement", "source", "says", "condition", "seeds", "verdict", "fault of a miss")
TABLES: dict[str, Callable[[], str | studies.Table]] = {
    "methods": list_rows("methods", "method", "title", "does", "source"),
    # Those that reproduce a row of a paper, but those of MNIST and CIFAR.
    "recipes": list_rows(
        "recipes", *RECIPE, where=lambda r: r["paper"] and r["source"] in ("tinyimagenet", "pets")
    ),
    "datasets": list_rows(
        "datasets", "data set", "domain", "classes", "images", "licence", "title"
    ),
    "protocols": list_protocols,
    "heads": list_rows("heads", "head", "does", "transductive", "settings"),
    "architectures": list_rows(
        "backbones", "reference", "what", where=lambda row: row["kind"] == "architecture"
    ),
    "analyses": list_rows("analyses", "analysis", "finds", "needs", "source"),
    "claims": lambda: [{c: row.get(c) for c in CLAIM} for row in list_statements()],
    "claim_changes": list_claim_changes,
    "hours": hours.list_hours,
    "published": list_published,
    "speed": draw_speed,
    **studies.TABLES,
    **real.TABLES,
}


def draw_shown(study: Path, folder: Path) -> None:
    """Draw the figures that the README of a study shows."""
    text = (study / "README.md").read_text(encoding="utf8")
    drawn = write_figures(read_method_boards(study / "entries"), folder)
    if study == real.REAL:
        drawn += write_stability(real.compare_choices(), folder)
        drawn += write_tiers([*real.rank_real().values()], folder)
    for path in drawn:
        if f"figures/{path.name}" not in text:
            path.unlink()


def markdown(table: Sequence[Row]) -> str:
    """Draw rows as a Markdown table without a line break at the end."""
    lines = [[*table[0]], ["---"] * len(table[0])]
    lines += [[format_value(row[column]) for column in table[0]] for row in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_value(value: Any) -> str:
    """Return a value as the text of a table."""
    if isinstance(value, dict):
        value = [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    text = "" if value is None else f"{value:,}" if type(value) is int else str(value)
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for document in map(Path, DOCUMENTS):
        document.write_text(fill(document.read_text(encoding="utf8")), encoding="utf8")
    for study in DRAWN:
        draw_shown(study, study / "figures")
