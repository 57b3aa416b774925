"""LaTeX with booktabs: one table per track, data sets above their tasks, rules below the table."""

import re
from collections.abc import Sequence
from itertools import groupby
from math import isnan

from fsbench.core.tasks import ColumnId
from leaderboard.render.frame import BETTER, DATASET_TITLES, WORSE, ScoreFrame, name_columns
from leaderboard.render.notes import SEED_MARK, to_percent

SPECIAL = str.maketrans(
    {
        **{character: "\\" + character for character in "#$%&_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",
        "[": "{[}",  # an argument where it follows the end of a row
        "*": "{*}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "−": r"$-$",
        "†": r"$\dagger$",
        "‡": r"$\ddagger$",
        "↳": r"$\hookrightarrow$",
    }
)
LIGATURES = re.compile(r"(?<=[-`',?!])(?=[-`',])")
"""Between characters that TeX would draw as one, e.g. two hyphens as a dash."""
HEAD = "% \\usepackage{booktabs}  and, for tables of both columns, \\usepackage{graphicx}\n"
FITS = 3
"""Number columns that fit one column of a paper."""
WIDE = r"""\setbox1\hbox{%%
%s}%%
\ifdim\wd1>\linewidth\resizebox{\linewidth}{!}{\copy1}\else\copy1\fi"""
"""A wide table, scaled down if it is wider than both columns of a paper."""
MARKS = {"": "", BETTER: r"\dagger", WORSE: r"\ddagger"}


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return tables for \\input, in UTF-8; every text is escaped."""
    return HEAD + "\n".join(make_latex_table(frame, i) for i, frame in enumerate(frames, 1))


def make_latex_table(frame: ScoreFrame, i: int) -> str:
    """Return one table: a caption of two sentences, the numbers, and the rules as a footnote."""
    bold = "; bold: the best of a column and its ties" if frame.compares else ""
    tasks = describe_tasks(frame.table.ranking.columns)
    caption = f"{tasks}. Accuracy in percent with 95 % intervals{bold}."
    tabular = make_tabular(frame)
    is_wide = len(frame.columns) > FITS
    name = "table*" if is_wide else "table"
    lines = [
        rf"\begin{{{name}}}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{tab:fsbench-{i}}}",
        r"\smallskip",
        WIDE % tabular if is_wide else tabular,
        r"\par\smallskip",
        rf"\parbox{{\linewidth}}{{\footnotesize {escape_latex(' '.join(frame.write_caption()))}}}",
        rf"\end{{{name}}}",
    ]
    return "\n".join(lines) + "\n"


def make_tabular(frame: ScoreFrame) -> str:
    """Return the numbers: data sets above their tasks, with a rule below each data set."""
    from pandas import DataFrame, MultiIndex

    columns = order_columns(frame.table.ranking.columns)
    names, rules = name_columns(columns), list[str]()
    for _, group in groupby(enumerate(names, start=2), lambda numbered: numbered[1][0]):
        numbers = [i for i, _ in group]
        rules.append(rf"\cmidrule(lr){{{numbers[0]}-{numbers[-1]}}}")
    columns += frame.columns[len(columns) :]
    others = [("", "", name) for name in ("model", *columns[len(names) :])]
    depth = 3 if any(rest for *_, rest in names) else 2
    heads = [others[0][-depth:], *(n[:depth] for n in names), *(o[-depth:] for o in others[1:])]
    marks = ["", *(raise_letters(frame.mark(column=column)) for column in columns)]
    heads = [
        (*map(escape_latex, upper), escape_latex(last) + mark)
        for (*upper, last), mark in zip(heads, marks, strict=True)
    ]
    rows = [
        [
            escape_latex(SEED_MARK * frame.is_seed(name) + name) + raise_letters(frame.mark(name)),
            *(format_latex_number(frame, name, column) for column in columns),
        ]
        for name in frame.lines
    ]
    style = DataFrame(rows, columns=MultiIndex.from_tuples(heads)).style.hide(axis="index")
    shape = "l" + "r" * len(columns)
    text = style.to_latex(hrules=True, column_format=shape, multicol_align="c").rstrip()
    begin, top, titles, *rest = text.splitlines()
    return "\n".join([begin, top, titles, *rules, *rest])


def describe_tasks(columns: Sequence[str]) -> str:
    """Return tasks, heads, protocols, input sizes and data sets of columns in words."""
    ids = [ColumnId.parse(column) for column in order_columns(columns)]
    titles = [DATASET_TITLES.get(i.task.dataset, i.task.dataset) for i in ids]
    phrases = (
        [f"{i.task.n_way}-way {i.task.n_shot}-shot" for i in ids if i.task.head],
        [i.adaptation for i in ids],
        [f"protocol {i.task.protocol}" for i in ids if i.task.protocol],
        [f"{i.input_size} px" for i in ids],
        [f"on {', '.join(dict.fromkeys(titles))}"] if ids else [],
    )
    return "; ".join(", ".join(dict.fromkeys(parts)) for parts in phrases if parts)


def order_columns(columns: Sequence[str]) -> list[str]:
    """Return columns with data sets in the papers' order, other data sets last."""
    order = {name: i for i, name in enumerate(DATASET_TITLES)}
    return sorted(columns, key=lambda c: order.get(ColumnId.parse(c).task.dataset, len(order)))


def format_latex_number(frame: ScoreFrame, name: str, column: str) -> str:
    """Return e.g. $\\mathbf{57.75}_{\\pm 0.88}^{\\dagger\\mathrm{a}}$"""
    score = frame.scores[name].get(column)
    if score is None:
        return "-"
    shown = to_percent(score.mean)
    shown = rf"\mathbf{{{shown}}}" if frame.is_bold(score) else shown
    half = "" if isnan(score.ci95) else rf"_{{\pm {to_percent(score.ci95)}}}"
    letters = frame.mark(name, column)
    raised = MARKS[score.mark] + (rf"\mathrm{{{letters}}}" if letters else "")
    return f"${shown}{half}" + (f"^{{{raised}}}$" if raised else "$")


def raise_letters(letters: str) -> str:
    return rf"$^{{\mathrm{{{letters}}}}}$" if letters else ""


def escape_latex(text: str) -> str:
    """Return text on one line that TeX prints as it is; other scripts need an engine for them."""
    parts = LIGATURES.split(" ".join(text.split()))
    return "{}".join(part.translate(SPECIAL) for part in parts)
