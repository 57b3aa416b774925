"""LaTeX with booktabs: one table a track, data sets above their tasks, the rules as caption."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.reports._caption import ends, grouped, sentences, texts, title
from leaderboard.reports._sheet import BETTER, WORSE, Cell, Sheet
from leaderboard.reports._tex import tex
from leaderboard.reports.render import percent

SUFFIX = "tex"
HEAD = "% \\usepackage{booktabs}  and, for tables wider than a page, \\usepackage{graphicx}\n"
FITS = 6
"""Columns of numbers that a page holds; more are scaled down to its width."""
MARKS = {"": "", BETTER: r"\dagger", WORSE: r"\ddagger"}


def make(sheets: Sequence[Sheet]) -> str:
    """Tables to \\input; plain ASCII, every text escaped."""
    return HEAD + "\n".join(table(sheet, i) for i, sheet in enumerate(sheets, 1))


def table(sheet: Sheet, i: int) -> str:
    n = len(sheet.columns) + len(ends(sheet))
    caption = tex(". ".join([title(sheet), " ".join(sentences(sheet))]))
    rows = [" & ".join(texts(sheet, row, number, tex)) + r" \\" for row in sheet.rows]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:fsbench-{i}}}",
        *([r"\resizebox{\linewidth}{!}{%"] if n > FITS else []),
        rf"\begin{{tabular}}{{l{'r' * n}}}",
        r"\toprule",
        *head(sheet),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}" + ("}" if n > FITS else ""),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def head(sheet: Sheet) -> list[str]:
    """Data sets over lines over their tasks."""
    top, lines, below, at = [""], [], ["model"], 2
    for name, tasks in grouped(sheet.columns):
        top.append(rf"\multicolumn{{{len(tasks)}}}{{c}}{{{tex(name)}}}")
        lines.append(rf"\cmidrule(lr){{{at}-{at + len(tasks) - 1}}}")
        below += map(tex, tasks)
        at += len(tasks)
    above = " & ".join([*top, *("" for _ in ends(sheet))]) + r" \\"
    return [above, *lines, " & ".join([*below, *ends(sheet)]) + r" \\"]


def number(cell: Cell | None, sheet: Sheet) -> str:
    """e.g. $\\mathbf{57.75}_{\\pm 0.88}^{\\dagger\\mathrm{a}}$"""
    if cell is None:
        return "-"
    mean, ci95, _ = cell.score
    shown = rf"\mathbf{{{percent(mean)}}}" if cell.best else percent(mean)
    half = "" if ci95 != ci95 else rf"_{{\pm {percent(ci95)}}}"
    flags = "".join(sheet.letters[flag] for flag in cell.flags)
    raised = MARKS[cell.mark()] + (rf"\mathrm{{{flags}}}" if flags else "")
    return f"${shown}{half}" + (f"^{{{raised}}}$" if raised else "$")
