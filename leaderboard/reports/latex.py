"""LaTeX with booktabs: one table a track, data sets above their tasks, the rules as caption."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from leaderboard.reports._caption import (
    caption_sentences,
    caption_title,
    extra_columns,
    group_labels,
    row_texts,
)
from leaderboard.reports.render import to_percent
from leaderboard.reports.table import BETTER, WORSE, ReportScore, ReportTable

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
    """On one line; a character without a plain LaTeX command becomes \\texttt{U+65E5}."""
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
"""Columns of numbers that a page holds; more are scaled down to its width."""
MARKS = {"": "", BETTER: r"\dagger", WORSE: r"\ddagger"}


def make(sheets: Sequence[ReportTable]) -> str:
    """Tables to \\input; plain ASCII, every text escaped."""
    return HEAD + "\n".join(latex_table(sheet, i) for i, sheet in enumerate(sheets, 1))


def latex_table(sheet: ReportTable, i: int) -> str:
    n = len(sheet.columns) + len(extra_columns(sheet))
    caption = escape_latex(". ".join([caption_title(sheet), " ".join(caption_sentences(sheet))]))
    rows = [
        " & ".join(row_texts(sheet, row, latex_number, escape_latex)) + r" \\" for row in sheet.rows
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:fsbench-{i}}}",
        *([r"\resizebox{\linewidth}{!}{%"] if n > FITS else []),
        rf"\begin{{tabular}}{{l{'r' * n}}}",
        r"\toprule",
        *latex_head(sheet),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}" + ("}" if n > FITS else ""),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_head(sheet: ReportTable) -> list[str]:
    """Data sets over lines over their tasks."""
    top, lines, below, at = [""], [], ["model"], 2
    for name, tasks in group_labels(sheet.columns):
        top.append(rf"\multicolumn{{{len(tasks)}}}{{c}}{{{escape_latex(name)}}}")
        lines.append(rf"\cmidrule(lr){{{at}-{at + len(tasks) - 1}}}")
        below += map(escape_latex, tasks)
        at += len(tasks)
    above = " & ".join([*top, *("" for _ in extra_columns(sheet))]) + r" \\"
    return [above, *lines, " & ".join([*below, *extra_columns(sheet)]) + r" \\"]


def latex_number(cell: ReportScore | None, sheet: ReportTable) -> str:
    """e.g. $\\mathbf{57.75}_{\\pm 0.88}^{\\dagger\\mathrm{a}}$"""
    if cell is None:
        return "-"
    mean, ci95, _ = cell.score
    shown = rf"\mathbf{{{to_percent(mean)}}}" if cell.best else to_percent(mean)
    half = "" if ci95 != ci95 else rf"_{{\pm {to_percent(ci95)}}}"
    flags = "".join(sheet.letters[flag] for flag in cell.flags)
    raised = MARKS[cell.mark()] + (rf"\mathrm{{{flags}}}" if flags else "")
    return f"${shown}{half}" + (f"^{{{raised}}}$" if raised else "$")
