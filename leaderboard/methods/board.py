"""The method board of a track: rows, gains over their controls, costs and Pareto fronts."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from fsbench.core import statistics
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts
from leaderboard.methods.gains import (
    Controls,
    compute_gains,
    compute_in_domain_gains,
    list_draws,
    match_controls,
    pool_seed_variance,
)
from leaderboard.methods.record import (
    ControlKind,
    CostAxis,
    Gain,
    MethodBoard,
    MethodCosts,
    MethodRow,
    MethodScore,
)
from leaderboard.methods.runs import MethodRun, SeedGroup, align_runs, group_rows
from leaderboard.ranking.seeds import (
    average_columns,
    average_seeds,
    compute_seed_interval,
    estimate_seed_variance,
)
from leaderboard.ranking.tiers import ALPHA
from leaderboard.render.notes import finite_or_none
from leaderboard.tables import BoardTable, list_self_reported, rank_board

OVERALL = ""
"""The key of the mean over all columns."""
Gains = Mapping[str, Mapping[ControlKind, Mapping[str, Gain]]]
"""Column, or overall -> kind of control -> row -> gain."""


def read_method_boards(folder: Path, report: Reporter = SILENT) -> tuple[MethodBoard, ...]:
    """Build the method boards of every track. Raises ValidationFailed, UsageError."""
    return tuple(b for table in rank_board(folder, report) for b in build_from_table(table))


def build_from_table(table: BoardTable) -> tuple[MethodBoard, ...]:
    """Build a method board per network and part of a source; at least one."""
    rows = {row: make_runs(table, names) for row, names in table.members.items()}
    rows = {row: runs for row, runs in rows.items() if runs}
    own_controls = {row: make_runs(table, names) for row, names in table.own_controls.items()}
    self_reported = {row for row in rows if list_self_reported(table, row)}
    track, boards = table.track.label if table.track else "", []
    parts = split_conditions({row: runs[0].facts for row, runs in rows.items()})
    for label, entries in parts.items():
        board = build_method_board(
            table.name,
            table.ranking.columns,
            {entry: rows[entry] for entry in entries},
            table.controls,
            own_controls,
            table.pooled,
            self_reported,
        )
        shown = ", ".join(filter(None, (track, label)))
        boards.append(board.model_copy(update={"track": shown}))
    return tuple(boards)


def make_runs(table: BoardTable, names: Iterable[str]) -> list[MethodRun]:
    """Return the networks of these names that have outcomes."""
    measured = (name for name in names if table.contenders.get(name))
    return [MethodRun(name, table.backbones[name], table.contenders[name]) for name in measured]


def split_conditions(backbones: Mapping[str, BackboneFacts]) -> dict[str, list[str]]:
    """Return label -> entries of one network and part of a source, whose gains are one family.

    Labels say in what they differ. Networks without training join every part of their
    architecture, and the first part if there is none.
    """
    keys = {
        entry: (
            facts.architecture.partition("@")[0],
            str(facts.training.view.source_subset or "") if facts.training else None,
        )
        for entry, facts in backbones.items()
    }
    parts = sorted({(name, part) for name, part in keys.values() if part is not None})
    parts = parts or [("", "")]
    differ = [len(set(values)) > 1 for values in zip(*parts, strict=True)]
    members: dict[tuple[str, str], list[str]] = {part: [] for part in parts}
    for entry, (name, subset) in keys.items():
        joined = [part for part in parts if part[0] == name and subset in (None, part[1])]
        for part in joined or parts[:1]:
            members[part].append(entry)
    return {
        ", ".join(word for word, shown in zip(part, differ, strict=True) if shown and word): entries
        for part, entries in members.items()
    }


def build_method_board(
    name: str,
    columns: Sequence[str],
    rows: Mapping[str, Sequence[MethodRun]],
    controls: Collection[str] = (),
    own_controls: Mapping[str, Sequence[MethodRun]] | None = None,
    pooled: Collection[str] | None = None,
    self_reported: Collection[str] = (),
) -> MethodBoard:
    """Build the record from the runs of the entries.

    controls: entries that the board names; own_controls: entry -> the controls that it takes along;
    pooled: entries whose spread between seeds is pooled, all by default; self_reported: entries
    with a result that no signed badge covers.
    """
    groups, left_out = group_rows(rows, own_controls or {})
    by_entry = {group.entry: group for group in groups}
    named = [by_entry[entry] for entry in controls if entry in by_entry]
    matches = {group.name: match_controls(group, named) for group in groups}
    spread = [g for g in groups if g.training and (pooled is None or g.entry in pooled)]
    parts = {column: [column] for column in columns} | {OVERALL: list(columns)}
    gains = {
        part: compute_gains(groups, matches, of, pool_seed_variance(spread, of))
        for part, of in parts.items()
    }
    on_source = compute_in_domain_gains(groups, matches)
    built = [
        build_row(
            group,
            matches[group.name],
            {part: score_group(group, of, gains[part]) for part, of in parts.items()},
            on_source.get(group.name),
            group.entry in self_reported,
        )
        for group in groups
    ]
    built.sort(key=lambda r: (r.overall is None, -r.overall.mean if r.overall else 0.0, r.name))
    fronts = find_fronts(built)
    return MethodBoard(
        board=name,
        columns=tuple(columns),
        alpha=ALPHA,
        rows=tuple(row.model_copy(update={"front": fronts[row.name]}) for row in built),
        left_out=left_out,
    )


def build_row(
    group: SeedGroup,
    controls: Controls,
    scores: Mapping[str, MethodScore | None],
    source_gain: Gain | None,
    self_reported: bool,
) -> MethodRow:
    """Return the record of a row. scores: by column, and overall."""
    training, facts = group.training, group.runs[0].facts
    accuracies = [run.facts.source_accuracy for run in group.runs]
    measured = [accuracy for accuracy in accuracies if accuracy is not None]
    return MethodRow(
        name=group.name,
        entry=group.entry,
        method=group.method,
        recipe=training and training.view.name,
        plan=training and training.plan,
        schedule=training and training.view.schedule,
        architecture=facts.architecture,
        seeds=group.seeds,
        cells={column: score for column, score in scores.items() if score and column != OVERALL},
        overall=scores[OVERALL],
        source_accuracy=float(np.mean(measured)) if len(measured) == len(accuracies) else None,
        source_gain=source_gain,
        self_reported=self_reported,
        controls={
            k: control.name for k, control in controls.items() if not isinstance(control, str)
        },
        missing={kind: reason for kind, reason in controls.items() if isinstance(reason, str)},
        costs=average_costs(group),
    )


def score_group(
    group: SeedGroup, columns: Sequence[str], gains: Mapping[ControlKind, Mapping[str, Gain]]
) -> MethodScore | None:
    """Return the score in the mean of columns; None if a seed lacks one or none is shared."""
    if not columns or not group.has_columns(columns):
        return None
    runs, draws = align_runs(group.runs, columns), list_draws(group.runs, columns)
    if not all(column.size for column in runs[0]):
        return None
    center = average_seeds(runs)
    paired = statistics.measure_columns(center, draws)
    over_seeds = variance = None
    if len(runs) > 1:
        over_seeds = compute_seed_interval(paired.gap, [runs], paired.se, draws).ci95
        variance = estimate_seed_variance(runs, draws)
    return MethodScore(
        mean=average_columns(center),
        ci95=finite_or_none(paired.ci95),
        ci95_seeds=over_seeds and finite_or_none(over_seeds),
        n=sum(column.size for column in center),
        variance_seeds=variance and finite_or_none(variance),
        gains={kind: of[group.name] for kind, of in gains.items() if group.name in of},
    )


def average_costs(group: SeedGroup) -> MethodCosts:
    """Return mean costs over the seeds; a random initialization costs nothing."""
    trainings = [run.training for run in group.runs if run.training]
    if not trainings:
        return MethodCosts()
    memory = [training.peak_memory_bytes for training in trainings]
    devices = {training.device for training in trainings}
    return MethodCosts(
        steps=float(np.mean([t.steps for t in trainings])),
        samples=float(np.mean([t.samples for t in trainings])),
        flops=float(np.mean([t.flops for t in trainings])),
        hours=float(np.mean([t.seconds for t in trainings])) / 3600,
        peak_memory_bytes=float(np.mean(memory)) if all(memory) else None,
        device=devices.pop() if len(devices) == 1 else None,
    )


def find_fronts(rows: Sequence[MethodRow]) -> dict[str, tuple[CostAxis, ...]]:
    """Return row -> the costs for which no other row is both better and cheaper.

    Floating-point operations are comparable on any machine, hours only on one kind of device; a
    random initialization costs nothing on any. Rows without an overall accuracy are on no front.
    """
    devices = {row.costs.device for row in rows if row.costs.steps} - {None}
    by_device = [[r for r in rows if r.costs.device == d or not r.costs.steps] for d in devices]
    by_hours = set().union(*(select_front(some, "hours") for some in by_device or [list(rows)]))
    by_flops = select_front(rows, "flops")
    fronts: tuple[tuple[CostAxis, set[str]], ...] = (("flops", by_flops), ("hours", by_hours))
    return {row.name: tuple(a for a, names in fronts if row.name in names) for row in rows}


def select_front(rows: Sequence[MethodRow], axis: CostAxis) -> set[str]:
    """Return the names of rows that no other matches in one cost and mean and beats in one."""
    points = [(getattr(r.costs, axis), -r.overall.mean, r.name) for r in rows if r.overall]
    front, best = set[str](), (math.inf, math.inf)
    for cost, negative, name in sorted(points):
        if negative < best[1] or (cost, negative) == best:
            front.add(name)
            best = cost, negative
    return front
