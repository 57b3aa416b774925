"""The method board of a track: rows, gains over their controls, costs and Pareto fronts."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from fsbench.core import statistics
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts
from leaderboard.methods.gains import (
    GainKey,
    MatchedControl,
    adjust_gains,
    compute_gain_over,
    compute_in_domain_gains,
    estimate_components,
    match_controls,
    pair_runs,
    pool_seed_variance,
)
from leaderboard.methods.record import (
    ControlKind,
    CostAxis,
    Gain,
    MethodBoard,
    MethodControl,
    MethodCosts,
    MethodRow,
    MethodScore,
    VarianceComponents,
)
from leaderboard.methods.runs import MethodRun, SeedGroup, group_rows
from leaderboard.ranking.seeds import (
    average_columns,
    average_seeds,
    compute_seed_interval,
    estimate_seed_variance,
)
from leaderboard.ranking.tiers import ALPHA
from leaderboard.reports.render import finite_or_none, list_self_reported
from leaderboard.tables import BoardTable, rank_board

OVERALL = ""
"""The key of the mean over all columns."""


def read_method_boards(folder: Path, report: Reporter = SILENT) -> tuple[MethodBoard, ...]:
    """Build the method boards of every track. Raises ValidationFailed, UsageError."""
    views = rank_board(folder, report)
    return tuple(board for view in views for board in build_from_table(view))


def build_from_table(view: BoardTable) -> tuple[MethodBoard, ...]:
    """Build a method board per network and part of a source; at least one."""
    rows = {row: make_runs(view, names) for row, names in view.members.items()}
    own_controls = {row: make_runs(view, names) for row, names in view.own_controls.items()}
    first = {row: runs[0].facts for row, runs in rows.items() if runs}
    self_reported = {row for row in rows if list_self_reported(view, row)}
    track, boards = view.track.label if view.track else "", []
    for label, entries in split_conditions(first, first).items():
        part = {row: rows[row] for row in entries}
        named = (view.controls, own_controls, view.pooled)
        board = build_method_board(view.name, view.ranking.columns, part, *named)
        marked = (
            row.model_copy(update={"self_reported": not self_reported.isdisjoint(row.entries)})
            for row in board.rows
        )
        shown = ", ".join(filter(None, (track, label)))
        boards.append(board.model_copy(update={"track": shown, "rows": tuple(marked)}))
    return tuple(boards)


def make_runs(view: BoardTable, names: Iterable[str]) -> list[MethodRun]:
    """Return the networks of these names that have outcomes."""
    measured = (name for name in names if view.contenders.get(name))
    return [MethodRun(name, view.backbones[name], view.contenders[name]) for name in measured]


def split_conditions(
    entries: Iterable[str], backbones: Mapping[str, BackboneFacts]
) -> dict[str, list[str]]:
    """Return label -> entries of one network and part of a source, whose gains are one family.

    Labels say in what they differ. Networks without training join every part of their
    architecture, and the first part if there is none.
    """
    keys = {
        entry: (name, str(facts.training.view.source_subset or "") if facts.training else None)
        for entry, facts in ((entry, backbones[entry]) for entry in entries)
        for name in [facts.architecture.partition("@")[0]]
    }
    parts = sorted({(name, part) for name, part in keys.values() if part is not None})
    differ = [len(set(values)) > 1 for values in zip(*parts, strict=True)]
    labels = [
        ", ".join(value for value, shown in zip(part, differ, strict=True) if shown and value)
        for part in parts
    ]
    members: dict[str, list[str]] = {label: [] for label in labels or [""]}
    for entry, (name, part) in keys.items():
        joined = [label for label, key in zip(labels, parts, strict=True) if key == (name, part)]
        if part is None:
            joined = [x for x, key in zip(labels, parts, strict=True) if key[0] == name]
        for label in joined or [next(iter(members))]:
            members[label].append(entry)
    return members


def build_method_board(
    name: str,
    columns: Sequence[str],
    rows: Mapping[str, Sequence[MethodRun]],
    controls: Collection[str] = (),
    own_controls: Mapping[str, Sequence[MethodRun]] | None = None,
    pooled: Collection[str] | None = None,
) -> MethodBoard:
    """Build the record from the runs of the entries.

    controls: entries that the board names; own_controls: entry -> the controls that it
    takes along; pooled: entries whose spread between seeds is pooled, all by default.
    """
    groups, left_out = group_rows(rows, own_controls or {})
    by_entry = {group.entry: group for group in groups}
    named = [by_entry[entry] for entry in controls if entry in by_entry]
    matches = {group.name: match_controls(group, named) for group in groups}
    spread = [g.runs for g in groups if g.training and (pooled is None or g.entry in pooled)]
    gains = adjust_gains(compute_gains(groups, matches, columns, spread))
    in_domain = compute_in_domain_gains(groups, matches)
    built = [
        build_row(group, matches[group.name], columns, gains).model_copy(
            update={"source_gain": in_domain.get(group.name)}
        )
        for group in groups
    ]
    built.sort(key=lambda r: (r.overall is None, -r.overall.mean if r.overall else 0.0, r.name))
    on = find_fronts(built)
    return MethodBoard(
        board=name,
        columns=tuple(columns),
        alpha=ALPHA,
        rows=tuple(row.model_copy(update={"front": on[row.name]}) for row in built),
        left_out=left_out,
    )


def compute_gains(
    groups: Sequence[SeedGroup],
    matches: Mapping[str, Mapping[ControlKind, MatchedControl]],
    columns: Sequence[str],
    spread: Sequence[Sequence[MethodRun]],
) -> dict[GainKey, Gain]:
    """Return the gain of every row over each of its controls, by column and overall.

    spread: rows whose variance between seeds is pooled.
    """
    parts = {column: [column] for column in columns} | {OVERALL: list(columns)}
    pooled = {name: pool_seed_variance(spread, part) for name, part in parts.items()}
    gains = {
        (group.name, name, kind): compute_gain_over(group.runs, kind, control, part, pooled[name])
        for group in groups
        for kind, control in matches[group.name].items()
        for name, part in parts.items()
    }
    return {key: gain for key, gain in gains.items() if gain is not None}


def build_row(
    group: SeedGroup,
    matches: Mapping[ControlKind, MatchedControl],
    columns: Sequence[str],
    gains: Mapping[GainKey, Gain],
) -> MethodRow:
    training, facts = group.training, group.runs[0].facts
    accuracies = [run.facts.source_accuracy for run in group.runs]
    measured = [accuracy for accuracy in accuracies if accuracy is not None]

    def part(name: str, of: Sequence[str]) -> MethodScore | None:
        row_gains = {
            kind: gains[key] for kind in matches if (key := (group.name, name, kind)) in gains
        }
        return score_runs(group.runs, of, row_gains) if of and set(of) <= group.columns else None

    cells = {column: part(column, [column]) for column in columns}
    return MethodRow(
        name=group.name,
        method=group.method,
        recipe=training and training.view.name,
        plan=training and training.plan,
        schedule=training and training.view.schedule,
        restarts=training and training.restarts,
        architecture=facts.architecture,
        pretraining_data=facts.pretraining_data,
        entries=(group.entry,),
        seeds=group.seeds,
        n_seeds=len(group.seeds),
        cells={column: score for column, score in cells.items() if score is not None},
        overall=part(OVERALL, columns),
        source_accuracy=float(np.mean(measured)) if len(measured) == len(accuracies) else None,
        controls={
            kind: MethodControl(row=match.group.name)
            if match.group
            else MethodControl(reason=match.reason)
            for kind, match in matches.items()
        },
        costs=average_costs(group),
    )


def score_runs(
    runs: Sequence[MethodRun], columns: Sequence[str], gains: dict[ControlKind, Gain]
) -> MethodScore | None:
    """Return the score of runs over one or more columns; None if they share no outcome."""
    ours, _, draws = runs_pair = pair_runs(runs, (), columns)
    if not all(column.size for column in ours[0]):
        return None
    center = average_seeds(ours)
    paired = statistics.measure_columns(center, draws)
    several = len(runs) > 1
    if len(columns) == 1:
        spread = estimate_components(np.stack([column for (column,) in ours]))
    else:
        spread = VarianceComponents(seeds=estimate_seed_variance(ours, draws) if several else None)
    return MethodScore(
        mean=average_columns(center),
        ci95=finite_or_none(paired.ci95),
        ci95_seeds=finite_or_none(compute_seed_interval(paired.gap, [ours], paired.se, draws).ci95)
        if several
        else None,
        n=runs_pair.n,
        spread=spread,
        gains=gains,
    )


def average_costs(group: SeedGroup) -> MethodCosts:
    """Return mean costs over the seeds; a random initialization costs nothing."""
    trainings = [run.training for run in group.runs if run.training]
    if not trainings:
        return MethodCosts(
            steps=0, samples=0, flops=0, hours=0, peak_memory_bytes=None, device=None
        )
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
