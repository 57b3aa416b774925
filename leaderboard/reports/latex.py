"""LaTeX with booktabs: one table per track, data sets above their tasks, rules below the table."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from leaderboard.reports.render import to_percent
from leaderboard.reports.table import (
    BETTER,
    DATASET_TITLES,
    WORSE,
    ReportScore,
    ReportTable,
    format_row,
    group_labels,
    list_extra_columns,
    make_caption_title,
    order_columns,
    write_caption,
)

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": r"$-$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "…": r"\ldots{}",
    "↳": r"$\hookrightarrow$",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    **{character: "\\" + character for character in "#$%&_{}"},
    # An argument, or a shorthand of babel, where it follows the end of a row or a letter.
    "[": "{[}",
    "*": "{*}",
    '"': r"\char34{}",
}
LIGATURES = re.compile(r"(?<=[-`',?!])(?=[-`',])")
"""Between characters that TeX would draw as one, e.g. two hyphens as a dash."""
ACCENTS = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0304": r"\=",
    "\u0306": r"\u",
    "\u0307": r"\.",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030b": r"\H",
    "\u030c": r"\v",
    "\u0327": r"\c",
}


def escape_latex(text: str) -> str:
    """Return text on one line that any engine prints literally; others become \\texttt{U+65E5}."""
    parts = LIGATURES.split(" ".join(text.split()))
    return "{}".join("".join(map(escape_character, part)) for part in parts)


def escape_character(c: str) -> str:
    if c in SPECIAL:
        return SPECIAL[c]
    if " " <= c <= "~":
        return c
    base, *marks = list(unicodedata.normalize("NFD", c))
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return f"{ACCENTS[marks[0]]}{{{base}}}"
    return rf"\texttt{{U+{ord(c):04X}}}"


SUFFIX = "tex"
HEAD = "% \\usepackage{booktabs}  and, for tables wider than a page, \\usepackage{graphicx}\n"
FITS = 6
"""Number columns that fit a page; wider tables are scaled to its width."""
MARKS = {"": "", BETTER: r"\dagger", WORSE: r"\ddagger"}


def make(tables: Sequence[ReportTable]) -> str:
    """Return tables for \\input in plain ASCII; every text is escaped."""
    return HEAD + "\n".join(make_latex_table(table, i) for i, table in enumerate(tables, 1))


def make_latex_table(table: ReportTable, i: int) -> str:
    """Return one table: a caption of two sentences, the numbers, and the rules as a footnote."""
    table = replace(table, columns=order_columns(table.columns))
    n = len(table.columns) + len(list_extra_columns(table))
    bold = "; bold: the best of a column and its ties" if table.compares else ""
    caption = f"{make_caption_title(table)}. Accuracy in percent with 95 % intervals{bold}."
    rows = [
        " & ".join(format_row(table, row, format_latex_number, escape_latex)) + r" \\"
        for row in table.rows
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{tab:fsbench-{i}}}",
        *([r"\resizebox{\linewidth}{!}{%"] if n > FITS else []),
        rf"\begin{{tabular}}{{l{'r' * n}}}",
        r"\toprule",
        *make_latex_head(table),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}" + ("}" if n > FITS else ""),
        r"\par\smallskip",
        rf"\parbox{{\linewidth}}{{\footnotesize {escape_latex(' '.join(write_caption(table)))}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def make_latex_head(table: ReportTable) -> list[str]:
    """Return the head of a table: data sets, rules, tasks."""
    top, lines, below, at = [""], [], ["model"], 2
    for name, tasks in group_labels(table.columns):
        title = escape_latex(DATASET_TITLES.get(name, name))
        top.append(rf"\multicolumn{{{len(tasks)}}}{{c}}{{{title}}}")
        lines.append(rf"\cmidrule(lr){{{at}-{at + len(tasks) - 1}}}")
        below += map(escape_latex, tasks)
        at += len(tasks)
    above = " & ".join([*top, *("" for _ in list_extra_columns(table))]) + r" \\"
    return [above, *lines, " & ".join([*below, *list_extra_columns(table)]) + r" \\"]


def format_latex_number(cell: ReportScore | None, table: ReportTable) -> str:
    """Return e.g. $\\mathbf{57.75}_{\\pm 0.88}^{\\dagger\\mathrm{a}}$"""
    if cell is None:
        return "-"
    mean, ci95, _ = cell.score
    shown = rf"\mathbf{{{to_percent(mean)}}}" if table.bolds(cell) else to_percent(mean)
    half = "" if ci95 != ci95 else rf"_{{\pm {to_percent(ci95)}}}"
    flags = "".join(table.letters[flag] for flag in cell.flags)
    raised = MARKS[cell.mark()] + (rf"\mathrm{{{flags}}}" if flags else "")
    return f"${shown}{half}" + (f"^{{{raised}}}$" if raised else "$")
