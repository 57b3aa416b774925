"""A method board as tables and Markdown. Percent and points appear here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

from leaderboard.methods.record import Cell, Gain, Kind, MethodBoard
from leaderboard.reports.render import Table, markdown_table, shorten

HEADINGS: dict[Kind, str] = {
    "normal": "over normal",
    "other_schedule": "over normal, other schedule",
    "random_init": "over random init",
}
RULE = (
    "Percent; ± is the 95 % interval over shared episodes or test images; sd seeds: of the "
    "pretraining seeds alone. Gains in points over the control of equal plan, steps and images "
    "(other schedule: with restarts for a row without, and the other way round), paired; their "
    "interval covers seeds and episodes (s) where both sides have two seeds, else episodes only. "
    "*: significant after Holm over the rows, alpha {alpha:g}."
)
COSTS = (
    "Of one run, mean over its seeds. front: on the Pareto front of overall accuracy against that "
    "cost; hours are compared on one kind of device."
)
TARGETS = "Accuracy (gain over normal) by column."
NO_ROWS = "No runs of our own yet: fsbench pretrain, fsbench benchmark -m run:DIR, fsbench submit."


def tables(board: MethodBoard) -> list[Table]:
    """Gains, gains by column, costs."""
    if not board.rows:
        note = " ".join([NO_ROWS, *left_out(board)])
        return [Table(title(board), ("method",), (), note)]
    return [gains(board), by_column(board), costs(board)]


def title(board: MethodBoard) -> str:
    return f"{board.board}: methods" + (f", {board.track}" if board.track else "")


def gains(board: MethodBoard) -> Table:
    """Overall, and what each row has over its controls; '-' with the reason in the note."""
    kinds = compared(board)
    headings = [HEADINGS[kind] for kind in kinds]
    head = ("method", "plan", "seeds", "overall", "sd seeds", *headings, "in-domain")
    rows = [
        (
            *(row.name, row.plan or "-", str(row.n_seeds), accuracy(row.overall)),
            sd(row.overall),
            *(gain(row.overall, kind, board.alpha) for kind in kinds),
            "-" if row.source_accuracy is None else percent(row.source_accuracy),
        )
        for row in board.rows
    ]
    note = "\n".join([RULE.format(alpha=board.alpha), *reasons(board), *left_out(board)])
    return Table(title(board), head, tuple(rows), note)


def compared(board: MethodBoard) -> list[Kind]:
    """Kinds of control that stand on the board; plain training in any case."""
    there = {k for row in board.rows for k, control in row.controls.items() if control.row}
    return [kind for kind in HEADINGS if kind in there or kind == "normal"]


def by_column(board: MethodBoard) -> Table:
    """Method x target."""
    short, common = shorten(board.columns)
    rows = [
        (row.name, *(both(row.cells.get(column), board.alpha) for column in board.columns))
        for row in board.rows
    ]
    name = "targets" + (f": {common}" if common else "")
    return Table(name, ("method", *short), tuple(rows), TARGETS)


def costs(board: MethodBoard) -> Table:
    head = ("method", "steps", "images", "TFLOPs", "hours", "memory (GB)", "device", "front")
    rows = [
        (
            *(row.name, f"{row.costs.steps:.0f}", f"{row.costs.samples:.0f}"),
            *(f"{row.costs.flops / 1e12:.4g}", f"{row.costs.hours:.3g}"),
            gigabytes(row.costs.peak_memory_bytes),
            row.costs.device or "-",
            ", ".join(row.front) or "-",
        )
        for row in board.rows
    ]
    return Table("costs", head, tuple(rows), COSTS)


def percent(fraction: float, sign: str = "") -> str:
    return f"{100 * fraction:{sign}.2f}"


def accuracy(cell: Cell | None) -> str:
    """e.g. 57.75 ± 0.88"""
    if cell is None:
        return "-"
    return percent(cell.mean) + ("" if cell.ci95 is None else f" ± {percent(cell.ci95)}")


def sd(cell: Cell | None) -> str:
    known = cell.spread.seeds if cell else None
    return "-" if known is None else percent(known**0.5)


def gain(cell: Cell | None, kind: Kind, alpha: float) -> str:
    """e.g. +1.20 ± 0.45 s*"""
    found = cell and cell.gains.get(kind)
    if not found:
        return "-"
    half = "" if found.ci95 is None else f" ± {percent(found.ci95)}"
    seeds = " s" if found.covers == "seeds and episodes" else ""
    return percent(found.gap, "+") + half + seeds + star(found, alpha)


def both(cell: Cell | None, alpha: float) -> str:
    """e.g. 57.75 (+1.20*)"""
    if cell is None:
        return "-"
    found = cell.gains.get("normal")
    shown = f" ({percent(found.gap, '+')}{star(found, alpha)})" if found else ""
    return percent(cell.mean) + shown


def star(found: Gain, alpha: float) -> str:
    return "*" if found.p_holm < alpha else ""


def gigabytes(size: float | None) -> str:
    return "-" if size is None else f"{size / 1e9:.2f}"


def reasons(board: MethodBoard) -> Iterator[str]:
    """Why a row has no control, rows of one reason together; plain rows are their own."""
    found: dict[tuple[Kind, str], list[str]] = {}
    for row in board.rows:
        for kind, control in row.controls.items():
            plain = kind == "normal" and row.method == "normal"
            if control.reason and kind in compared(board) and not plain:
                found.setdefault((kind, control.reason), []).append(row.name)
    for (kind, reason), names in found.items():
        yield f"{HEADINGS[kind].capitalize()}, {', '.join(names)}: {reason}."


def left_out(board: MethodBoard) -> list[str]:
    why: dict[str, list[str]] = {}
    for entry, reason in board.left_out.items():
        why.setdefault(reason, []).append(entry)
    return [f"Left out, {', '.join(names)}: {reason}." for reason, names in why.items()]


def markdown(board: MethodBoard) -> str:
    """GitHub Markdown; every text escaped."""
    return "\n\n".join(markdown_table(table) for table in tables(board)) + "\n"
