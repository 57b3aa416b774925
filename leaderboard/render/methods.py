"""A method board as tables of text: gains, and gains by data set, in percent and points."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from fsbench.core.tables import TextTable
from leaderboard.controls import IS_PLAIN, IS_TUNED, SEARCHED, ControlKind
from leaderboard.methods import PUBLISHED, TUNED_NORMAL, Gain, MethodBoard, MethodRow
from leaderboard.ranking.tiers import ALPHA
from leaderboard.render.notes import ONE_SEED, SELF_MARK, SELF_NOTE, list_reasons, to_percent
from leaderboard.tables import group_by_dataset

HEADINGS: dict[ControlKind, str] = {
    "normal": "over normal",
    "tuned": f"over {TUNED_NORMAL}",
    "other_schedule": "over normal, other schedule",
    "random_init": "over random init",
}
GAIN_NOTE = (
    "Percent; ± is the 95 % interval over shared episodes or test images; sd seeds: standard "
    "deviation over pretraining seeds. Gains in points over the control of equal plan, steps and "
    "images (other schedule: with restarts for a row without, and vice versa), paired; the "
    "interval covers seeds and episodes (s) if both sides have two seeds; below that episodes and "
    "the pooled seed spread of the rows with several seeds (p) if there are three such rows, else "
    f"episodes only. *: significant after Holm over the rows, alpha {ALPHA:g}; not of one seed. "
    "In-domain: accuracy on the source (gain over normal ± 95 % interval over seeds). TFLOPs: "
    "operations of one pretraining run."
)
TUNED_NOTE = f"{TUNED_NORMAL}: plain training, all else equal, with searched {', '.join(SEARCHED)}."
COVERED = {"seeds and episodes": " s", "pooled seeds and episodes": " p"}
"""Marks of intervals of gains, by what they cover."""
ONE_SEED_GAIN = f"{ONE_SEED} one pretraining seed: a difference of seeds passes for a gain."
AVERAGE_NOTE = (
    "Accuracy (gain over normal), mean over the columns of a data set; JSON and the figures have "
    "every column, with its interval."
)
MOST_NAMED = 3
"""More rows are counted in a sentence, not named."""
NO_ROWS = "No fsbench runs yet: fsbench pretrain, fsbench benchmark -m run:DIR, fsbench submit."


def make_tables(board: MethodBoard) -> list[TextTable]:
    """Return the tables of gains, and of gains by data set."""
    if not board.rows:
        note = " ".join([NO_ROWS, *list_notes(board)])
        return [TextTable(make_title(board, "methods"), ("entry",), (), note)]
    return [make_gain_table(board), make_target_table(board)]


def make_title(board: MethodBoard, what: str) -> str:
    return f"{board.board}: {what}" + (f", {board.track}" if board.track else "")


def mark_name(row: MethodRow) -> str:
    """Return the name of a row, marked if it has one seed, and if no signed badge covers it."""
    return f"{ONE_SEED} " * (len(row.seeds) == 1) + row.name + SELF_MARK * row.self_reported


def describe_gains(boards: Sequence[MethodBoard]) -> str:
    """Return which gains over plain training, tuned or not, are significant; empty without any."""
    rows = [row for board in boards for row in board.rows]
    gains = {row.name: row.gain for row in rows if row.gain}
    tuned = {row.name: row.gain_tuned for row in rows if row.gain_tuned}
    if not gains:
        return ""
    several = sum(len(gain.seeds) > 1 for gain in gains.values())
    over_tuned = f" Significantly above {TUNED_NORMAL}: {name_significant(tuned)}." * bool(tuned)
    return (
        f"Significantly above plain training of equal compute: {name_significant(gains)}."
        f"{over_tuned} {several} of {len(gains)} entries have the several seeds that this needs."
    )


def name_significant(gains: Mapping[str, Gain]) -> str:
    """Return the rows with a significant gain, then those with a loss, e.g. lw; below: none."""
    gaps = {name: gain.gap for name, gain in gains.items() if gain.significant}
    above = name_few([name for name, gap in gaps.items() if gap > 0])
    below = name_few([name for name, gap in gaps.items() if gap < 0])
    return f"{above}; below: {below}"


def name_few(names: Sequence[str]) -> str:
    """Return the names, or their number if they are many."""
    return ", ".join(names) or "none" if len(names) <= MOST_NAMED else str(len(names))


def make_gain_table(board: MethodBoard) -> TextTable:
    """Return the table of overall scores and gains; the note explains missing controls."""
    kinds = board.kinds
    columns = ("entry", "method", "plan", "seeds", "overall", "sd seeds")
    headings = [HEADINGS[kind] for kind in kinds]
    in_domain = ["in-domain", *[f"in-domain {HEADINGS['tuned']}"] * ("tuned" in kinds)]
    notes = [GAIN_NOTE]
    notes += [TUNED_NOTE] * ("tuned" in kinds)
    notes += [SELF_NOTE] * any(row.self_reported for row in board.rows)
    finding = describe_gains([board])
    one_seed = any(len(row.seeds) == 1 for row in board.rows)
    return TextTable(
        make_title(board, "methods"),
        (*columns, *headings, *in_domain, "TFLOPs"),
        tuple(format_gains(row, kinds) for row in board.rows),
        "\n".join([*notes, *list_notes(board)]),
        (*[finding] * bool(finding), *[ONE_SEED_GAIN] * one_seed),
        optional=("TFLOPs", *in_domain[::-1], "plan", "method", "sd seeds", *headings[:0:-1]),
    )


def format_gains(row: MethodRow, kinds: Sequence[ControlKind]) -> tuple[str, ...]:
    """Return the line of a row in the table of gains."""
    score = row.overall
    variance = score.variance_seeds if score else None
    return (
        mark_name(row),
        row.method,
        f"{row.plan}, {row.schedule}" if row.plan else "-",
        str(len(row.seeds)),
        to_percent(score.mean) + format_half(score.ci95) if score else "-",
        "-" if variance is None else to_percent(variance**0.5),
        *(format_gain(score.gains.get(kind) if score else None) for kind in kinds),
        format_in_domain(row),
        *[format_gain(row.source_gain_tuned)] * ("tuned" in kinds),
        "-" if row.method == PUBLISHED else f"{row.costs.get('flops', 0) / 1e12:.4g}",
    )


def make_target_table(board: MethodBoard) -> TextTable:
    """Return the table of accuracies and gains by data set."""
    datasets = group_by_dataset(board.columns)
    rows = tuple(
        (mark_name(row), *(format_targets(row, columns) for columns in datasets.values()))
        for row in board.rows
    )
    return TextTable(make_title(board, "targets"), ("entry", *datasets), rows, AVERAGE_NOTE)


def format_half(half: float | None) -> str:
    return "" if half is None else f" ± {to_percent(half)}"


def format_gain(gain: Gain | None) -> str:
    """Return e.g. +1.20 ± 0.45 s*."""
    if gain is None:
        return "-"
    marks = COVERED.get(gain.covers, "") + "*" * gain.significant
    return f"{to_percent(gain.gap, '+')}{format_half(gain.ci95)}{marks}"


def format_in_domain(row: MethodRow) -> str:
    """Return e.g. 20.61 (+1.02 ± 0.40*)."""
    if row.source_accuracy is None:
        return "-"
    gain = f" ({format_gain(row.source_gain)})" if row.source_gain else ""
    return to_percent(row.source_accuracy) + gain


def format_targets(row: MethodRow, columns: Sequence[str]) -> str:
    """Return e.g. 57.75 (+1.20), the mean over columns; - if the row lacks one."""
    scores = [row.scores[column] for column in columns if column in row.scores]
    if len(scores) < len(columns):
        return "-"
    gains = [score.gains["normal"].gap for score in scores if "normal" in score.gains]
    gain = f" ({to_percent(mean(gains), '+')})" if gains else ""
    return to_percent(mean(score.mean for score in scores)) + gain


def list_notes(board: MethodBoard) -> Iterator[str]:
    """Yield why rows have no control and entries no row, one sentence for each reason."""
    for kind in board.kinds:
        reasons = {row.name: row.missing[kind] for row in board.rows if kind in row.missing}
        needed = {n: why for n, why in reasons.items() if why not in (IS_PLAIN, IS_TUNED)}
        yield from list_reasons(HEADINGS[kind].capitalize(), needed)
    yield from list_reasons("Left out", board.left_out)
