"""From one track of a board to its method board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fsbench.core import statistics
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts
from leaderboard.board.standing import View, views
from leaderboard.methods.controls import Found, candidates, controls
from leaderboard.methods.gains import adjusted, against, sides
from leaderboard.methods.pareto import fronts
from leaderboard.methods.record import Cell, Control, Costs, Gain, Kind, MethodBoard, Row, Spread
from leaderboard.methods.runs import Group, Run, grouped
from leaderboard.methods.seeds import components, over_both, over_seeds, overall, seed_variance
from leaderboard.ranking.rank import ALPHA, Contenders

OVERALL = ""
"""Stands for all columns together."""


def of_board(
    folder: Path, cache: Path | None = None, report: Reporter = SILENT
) -> tuple[MethodBoard, ...]:
    """One a track. Raises ValidationFailed, UsageError."""
    return tuple(of_view(view) for view in views(folder, cache, report))


def of_view(view: View) -> MethodBoard:
    found = method_board(view.name, view.ranking.columns, view.contenders, view.backbones)
    return found.model_copy(update={"track": view.track.label if view.track else ""})


def method_board(
    name: str,
    columns: Sequence[str],
    contenders: Contenders,
    backbones: Mapping[str, BackboneFacts],
) -> MethodBoard:
    """contenders: entry -> column -> outcomes; backbones: entry -> what it is."""
    runs = [Run(entry, backbones[entry], held) for entry, held in contenders.items() if held]
    groups, left_out = grouped(runs)
    among = candidates(groups)
    found = {group.name: controls(group, among) for group in groups}
    gains = adjusted(all_gains(groups, found, columns))
    rows = [row(group, found[group.name], columns, gains) for group in groups]
    on = fronts(rows)
    return MethodBoard(
        board=name,
        columns=tuple(columns),
        alpha=ALPHA,
        rows=tuple(
            each.model_copy(update={"front": on[each.name]}) for each in sorted(rows, key=order)
        ),
        left_out=left_out,
    )


def order(row: Row) -> tuple[bool, float, str]:
    """Best first, rows that lack a column last."""
    return row.overall is None, -row.overall.mean if row.overall else 0.0, row.name


def all_gains(
    groups: Sequence[Group], found: Mapping[str, Mapping[Kind, Found]], columns: Sequence[str]
) -> dict[tuple[str, str, Kind], Gain]:
    """Of every row over each of its controls, by column and overall."""
    parts = {column: [column] for column in columns} | {OVERALL: list(columns)}
    every = {
        (group.name, name, kind): against(group.runs, kind, control, part)
        for group in groups
        for kind, control in found[group.name].items()
        for name, part in parts.items()
    }
    return {key: gain for key, gain in every.items() if gain is not None}


def row(
    group: Group,
    found: Mapping[Kind, Found],
    columns: Sequence[str],
    gains: Mapping[tuple[str, str, Kind], Gain],
) -> Row:
    training, facts = group.training, group.runs[0].facts
    accuracies = [run.facts.source_accuracy for run in group.runs]
    known = [accuracy for accuracy in accuracies if accuracy is not None]

    def part(name: str, of: Sequence[str]) -> Cell | None:
        own = {kind: gains[key] for kind in found if (key := (group.name, name, kind)) in gains}
        return cell(group.runs, of, own) if of and set(of) <= group.columns else None

    cells = {column: part(column, [column]) for column in columns}
    return Row(
        name=group.name,
        method=group.method,
        recipe=training and training.view.name,
        plan=training and training.plan,
        schedule=training and training.view.schedule,
        restarts=training and training.restarts,
        architecture=facts.architecture,
        pretraining_data=facts.pretraining_data,
        entries=tuple(run.entry for run in group.runs),
        seeds=group.seeds,
        n_seeds=len(group.seeds),
        cells={column: held for column, held in cells.items() if held is not None},
        overall=part(OVERALL, columns),
        source_accuracy=float(np.mean(known)) if len(known) == len(accuracies) else None,
        controls={kind: shown(control) for kind, control in found.items()},
        costs=costs(group),
    )


def cell(runs: Sequence[Run], columns: Sequence[str], gains: dict[Kind, Gain]) -> Cell | None:
    """These runs in one column, or over several; None where they share no outcome."""
    ours, _, draws = both = sides(runs, (), columns)
    if not all(column.size for column in ours[0]):
        return None
    center = over_seeds(ours)
    # its distance from zero outcomes: the standard error of a mean, columns added up as for gaps
    found = statistics.paired(center, [np.zeros_like(column) for column in center], draws)
    many = len(runs) > 1
    if len(columns) == 1:
        spread = components(np.stack([column for (column,) in ours]))
    else:
        spread = Spread(seeds=seed_variance(ours, draws) if many else None)
    return Cell(
        mean=overall(center),
        ci95=finite(found.ci95),
        ci95_seeds=finite(over_both(found.gap, [ours], found.se, draws).ci95) if many else None,
        n=both.n,
        spread=spread,
        gains=gains,
    )


def finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def shown(control: Found) -> Control:
    if control.group is None:
        return Control(reason=control.reason)
    return Control(row=control.group.name)


def costs(group: Group) -> Costs:
    """Means over the seeds; a random init took no step."""
    known = [run.training for run in group.runs if run.training]
    if not known:
        return Costs(steps=0, samples=0, flops=0, hours=0, peak_memory_bytes=None, device=None)
    memory = [training.peak_memory_bytes for training in known]
    devices = {training.device for training in known}
    return Costs(
        steps=float(np.mean([training.steps for training in known])),
        samples=float(np.mean([training.samples for training in known])),
        flops=float(np.mean([training.flops for training in known])),
        hours=float(np.mean([training.seconds for training in known])) / 3600,
        peak_memory_bytes=float(np.mean(memory)) if all(memory) else None,
        device=devices.pop() if len(devices) == 1 else None,
    )
