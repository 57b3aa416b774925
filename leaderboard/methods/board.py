"""The method board of a track: rows, gains over their controls, costs and Pareto fronts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from fsbench.core import statistics
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Training
from leaderboard.methods.gains import (
    Controls,
    compute_gains,
    compute_in_domain_gains,
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
from leaderboard.methods.runs import MethodRun, SeedGroup, align_runs, group_rows, list_draws
from leaderboard.ranking.seeds import (
    average_columns,
    average_seeds,
    compute_seed_interval,
    estimate_seed_variance,
)
from leaderboard.ranking.tiers import ALPHA
from leaderboard.render.notes import finite_or_none
from leaderboard.tables import BoardTable, Row, rank_board

OVERALL = ""
"""The key of the mean over all columns."""


def read_method_boards(folder: Path, report: Reporter = SILENT) -> tuple[MethodBoard, ...]:
    """Build the method boards of every track. Raises ValidationFailed, UsageError."""
    return tuple(b for table in rank_board(folder, report) for b in build_from_table(table))


def build_from_table(table: BoardTable) -> tuple[MethodBoard, ...]:
    """Build a method board per network and part of a source; at least one."""
    rows = {name: make_runs(row.networks) for name, row in table.rows.items()}
    parts = split_conditions({row: runs[0].facts for row, runs in rows.items()})
    return tuple(
        build_method_board(table, part, {entry: rows[entry] for entry in entries})
        for part, entries in parts.items()
    )


def make_runs(networks: Iterable[Row]) -> list[MethodRun]:
    """Return the networks of a row, or its controls, as runs."""
    return [MethodRun(network.name, network.facts, network.outcomes) for network in networks]


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
    table: BoardTable, part: str, rows: Mapping[str, Sequence[MethodRun]]
) -> MethodBoard:
    """Build the record from the runs of some entries of a table. part: what tells them apart."""
    own_controls = {name: make_runs(table.rows[name].controls) for name in rows}
    groups, left_out = group_rows(rows, own_controls)
    by_entry = {group.entry: group for group in groups}
    named = [by_entry[entry] for entry in table.controls if entry in by_entry]
    matches = {group.name: match_controls(group, named) for group in groups}
    spread = [group for group in groups if group.training and group.entry in table.pooled]
    columns = table.ranking.columns
    parts = {column: [column] for column in columns} | {OVERALL: list(columns)}
    gains = {
        key: compute_gains(groups, matches, of, pool_seed_variance(spread, of))
        for key, of in parts.items()
    }
    on_source = compute_in_domain_gains(groups, matches)
    built = [
        build_row(
            group,
            matches[group.name],
            {key: score_group(group, of, gains[key]) for key, of in parts.items()},
            on_source.get(group.name),
            bool(table.rows[group.entry].self_reported),
        )
        for group in groups
    ]
    built.sort(key=lambda r: (r.overall is None, -r.overall.mean if r.overall else 0.0, r.name))
    return MethodBoard(
        board=table.name,
        track=", ".join(filter(None, (table.label, part))),
        columns=columns,
        alpha=ALPHA,
        rows=tuple(row.model_copy(update={"front": find_front(row, built)}) for row in built),
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
        controls={k: row.name for k, row in controls.items() if isinstance(row, SeedGroup)},
        missing={kind: reason for kind, reason in controls.items() if isinstance(reason, str)},
        costs=average_costs([run.training for run in group.runs if run.training]),
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


def average_costs(trainings: Sequence[Training]) -> MethodCosts:
    """Return mean costs over the seeds; a random initialization costs nothing."""
    if not trainings:
        return MethodCosts()
    memory = [training.peak_memory_bytes for training in trainings]
    devices = {training.device for training in trainings}
    return MethodCosts(
        steps=fmean(training.steps for training in trainings),
        samples=fmean(training.samples for training in trainings),
        flops=fmean(training.flops for training in trainings),
        hours=fmean(training.seconds for training in trainings) / 3600,
        peak_memory_bytes=fmean(memory) if all(memory) else None,
        device=devices.pop() if len(devices) == 1 else None,
    )


def find_front(row: MethodRow, rows: Sequence[MethodRow]) -> tuple[CostAxis, ...]:
    """Return the costs for which no other row is as good for less, or better for as much.

    Floating-point operations are comparable on any machine, hours only on one kind of device; a
    random initialization costs nothing on any. A row without an overall accuracy is on no front.
    """
    on_device = [r for r in rows if r.costs.device == row.costs.device or not r.costs.steps]
    has_hours = row.costs.device is not None or not row.costs.steps
    rivals: dict[CostAxis, list[MethodRow]] = {"flops": [*rows]}
    rivals |= {"hours": on_device} if has_hours else {}
    return tuple(axis for axis, among in rivals.items() if is_on_front(row, among, axis))


def is_on_front(row: MethodRow, rivals: Sequence[MethodRow], axis: CostAxis) -> bool:
    """Return whether no rival matches a row in one cost and the mean, and beats it in one."""
    if row.overall is None:
        return False
    point = -getattr(row.costs, axis), row.overall.mean
    others = ((-getattr(r.costs, axis), r.overall.mean) for r in rivals if r.overall)
    return not any(o[0] >= point[0] and o[1] >= point[1] and o != point for o in others)
