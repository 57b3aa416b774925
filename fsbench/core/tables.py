"""Tables of plain text: which columns fit a width, and how they are drawn.

Numbers are never broken over lines. Where the width is too small, texts wrap first, then optional
parts are left out (dense rows, in-domain accuracies), then columns from the right.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import zip_longest
from typing import Protocol

from rich.cells import cell_len, set_cell_size

from fsbench.core.errors import UnknownName

GAP = "  "
LONGEST = 20
"""Width that a longer column of text keeps; below it other columns are left out."""
NUMBER = re.compile(r"-?|[-+<(]?\.?\d(?!.*[^\W\d_]{4}).*")
"""A text that reads as a number with its interval, unit and marks; '-' for a missing one."""
BREAKS = re.compile(r"(?<=\s)|(?<=[-+/=:@,])(?!\d)")
"""Positions where a text may wrap: after a separator, never before a digit."""
INSIDE = re.compile(r"[\d.,][\d.,]")
"""Two characters of one number."""


@dataclass(frozen=True)
class TextTable:
    """A titled table of plain text.

    lead: sentences under the title; note: sentences below the table; keys: leading columns that
    are never left out; optional: columns, or endings of row labels, that are left out where the
    width is small, the first one first; make_complete: makes the table with all columns, where this
    one shows some or averages; is_extra: whether only files and a wide terminal show it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    lead: tuple[str, ...] = ()
    keys: int = 1
    optional: tuple[str, ...] = ()
    make_complete: "Callable[[], TextTable] | None" = field(default=None, compare=False)
    is_extra: bool = False

    @cached_property
    def complete(self) -> "TextTable":
        return self.make_complete() if self.make_complete else self

    def without(self, name: str) -> "TextTable":
        """Return the table without a column, or without the rows whose label ends with a word."""
        if name in self.columns[self.keys :]:
            return self.select([column for column in self.columns if column != name])
        return replace(self, rows=tuple(row for row in self.rows if not row[0].endswith(name)))

    def select(self, names: Sequence[str]) -> "TextTable":
        """Return the table with these columns behind the keys, in the order of the names."""
        at = [*range(self.keys), *(i for n in names if (i := self.columns.index(n)) >= self.keys)]
        rows = tuple(tuple(row[i] for i in at) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in at), rows=rows)


def fit_table(table: TextTable, width: int | None) -> tuple[TextTable, list[str]]:
    """Return the part of a table that fits, at least one column, and the names of what it lacks."""
    omitted: list[str] = []
    last_resort = reversed(table.columns[table.keys + 1 :])
    for name in (*table.optional, *last_resort):
        if width is None or full_width(share_width(table, 0)) <= width:
            break
        smaller = table.without(name)
        omitted += [name] if smaller != table else []
        table = smaller
    return table, omitted


def choose_columns(tables: Sequence[TextTable], names: Sequence[str]) -> list[TextTable]:
    """Return tables with these columns; `eurosat` also names `eurosat:5w1s`. Raise UnknownName."""
    chosen, unknown = [], set(names)
    for table in [table.complete for table in tables]:
        columns = {
            column: name
            for name in names
            for column in table.columns
            if name in (column, column.partition(":")[0])
        }
        unknown -= set(columns.values())
        chosen.append(replace(table.select(list(columns)), optional=()) if columns else table)
    for name in sorted(unknown):
        raise UnknownName("column", name, {c for t in chosen for c in t.columns[t.keys :]})
    return chosen


def draw_table(table: TextTable, width: int | None = None) -> str:
    """Return aligned columns, numbers to the right, without trailing spaces."""
    widths = share_width(table, width)
    numeric = [is_numeric(texts) for _, *texts in zip(table.columns, *table.rows, strict=True)]
    lines: list[str] = []
    for row in (table.columns, *table.rows):
        wrapped = [wrap(text, width) for text, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            aligned = [
                " " * (width - cell_len(text)) + text if is_right else set_cell_size(text, width)
                for text, width, is_right in zip(parts, widths, numeric, strict=True)
            ]
            lines.append(GAP.join(aligned).rstrip())
        if row is table.columns:
            lines.append("─" * full_width(widths))
    return "\n".join(lines)


class ShownAsTables(Protocol):
    """A value that prints, and shows in notebooks, as its tables."""

    def tables(self) -> list[TextTable]:
        """Return the tables, those of published numbers last."""

    def __repr__(self) -> str:
        tables = [table for table in self.tables() if not table.is_extra]
        parts = ([t.title, *t.lead, draw_table(t), *t.note.splitlines()] for t in tables)
        return "\n\n".join(map("\n".join, parts))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def is_numeric(texts: Sequence[str]) -> bool:
    """Return whether all texts of a column below its header are numbers."""
    return all(map(NUMBER.fullmatch, texts))


def full_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def share_width(table: TextTable, width: int | None) -> list[int]:
    """Return the width of each column; numbers and the words of their header stay whole."""
    columns = list(zip(table.columns, *table.rows, strict=True))
    natural = [max(map(cell_len, texts)) for texts in columns]
    if width is None or full_width(natural) <= width:
        return natural
    widths = [min(size, LONGEST) for size in natural]
    for i, (header, *texts) in enumerate(columns):
        if is_numeric(texts):
            words = map(str.rstrip, BREAKS.split(header))
            widths[i] = max(map(cell_len, [*words, *texts]))
    spare = width - full_width(widths)
    order = sorted(range(len(columns)), key=lambda i: natural[i] - widths[i])
    for rank, i in enumerate(order):
        extra = max(0, min(natural[i] - widths[i], spare // (len(order) - rank)))
        widths[i] += extra
        spare -= extra
    return widths


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text; a word longer than the width is folded, but not within digits."""
    lines = [""]
    for word in BREAKS.split(text):
        while cell_len(word.rstrip()) > width:
            cut = next((n for n in range(width, 0, -1) if not INSIDE.match(word, n - 1)), width)
            lines += [word[:cut], ""]
            word = word[cut:]
        if cell_len((lines[-1] + word).rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines if line] or [""]
