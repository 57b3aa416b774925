"""Choices of a board as tables of text: who is first under how many, and Kendall's tau."""

from fsbench.core.tables import TextTable
from leaderboard.ranking.stability import Stability

ROW_NOTE = (
    "A choice is a table of the board and a part of its columns: all, equal ways and shots, a data "
    "set, or a head. First: highest mean. In tier 1: not significantly worse than the first. "
    "Alone (*): all others are significantly worse. Choices have columns in common, so a share is "
    "no probability."
)
TAU_NOTE = (
    "Kendall's tau-b over the entries that both choices rank: 1 for equal order, -1 for opposite "
    "order; - for fewer than three entries. The draw of episodes alone makes it smaller than 1."
)
NO_CHOICES = "Not computed: it takes a table of two ranked entries."


def make_stability_tables(stability: Stability, name: str) -> list[TextTable]:
    """Return the table of entries that are first, and taus of choices. name: of the board."""
    header: tuple[str, ...] = ("entry", "share first", "first", "alone", "in tier 1", "choices")
    rows: list[tuple[str, ...]] = [
        (r.name, f"{100 * r.share:.0f} %", *map(str, (r.first, r.alone, r.tier, r.choices)))
        for r in stability.rows
    ]
    title = f"{name}: entries that are first under any choice"
    tables = [TextTable(title, header, tuple(rows), ROW_NOTE if rows else NO_CHOICES)]
    for group, positions in stability.groups.items():
        rows = []
        for label, position in positions.items():
            choice = stability.choices[position]
            first = ", ".join(choice.first) + "*" * (len(choice.tier) == 1)
            taus = [stability.taus[position][other] for other in positions.values()]
            texts = ("-" if tau is None else f"{tau:.2f}" for tau in taus)
            rows.append((label, first, f"{len(choice.tier)} of {len(choice.ranks)}", *texts))
        header = ("choice", "first", "in tier 1", *positions)
        title = f"{name} {group}: Kendall's tau"
        tables.append(TextTable(title, header, tuple(rows), TAU_NOTE, keys=2))
    return tables
