"""The method board of a track: rows with their scores, costs, and gains over their controls."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Training
from leaderboard.methods.controls import Controls, Match, find_training, match_controls
from leaderboard.methods.gains import compute_gains, compute_in_domain_gains
from leaderboard.methods.record import (
    ControlKind,
    Gain,
    MethodBoard,
    MethodCosts,
    MethodRow,
    MethodScore,
)
from leaderboard.ranking.seeds import SeedErrors
from leaderboard.render.notes import finite_or_none
from leaderboard.tables import BoardTable, Row, rank_board

RANDOM = "random init"
NO_RUN = "not pretrained by fsbench: its training is unknown"
NO_RECIPE = "its results have no recipe and cost, which a new evaluation would record"


def read_method_boards(folder: Path, report: Reporter = SILENT) -> tuple[MethodBoard, ...]:
    """Build the method boards of every track. Raises ValidationFailed, UsageError."""
    return tuple(b for table in rank_board(folder, report) for b in build_from_table(table))


def build_from_table(table: BoardTable) -> tuple[MethodBoard, ...]:
    """Build a method board per network and part of a source; at least one."""
    parts = split_conditions({name: row.facts for name, row in table.rows.items()})
    return tuple(build_method_board(table, part, names) for part, names in parts.items())


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


def build_method_board(table: BoardTable, part: str, names: Iterable[str]) -> MethodBoard:
    """Build the record of some rows of a table. part: what tells them from the other rows."""
    rows, left_out = dict[str, Row](), dict[str, str]()
    for name in names:
        facts = table.rows[name].facts
        if facts.training is None and facts.random_init is None:
            left_out[name] = NO_RECIPE if facts.source == "run" else NO_RUN
        else:
            rows[name] = table.rows[name]
    named = [rows[name] for name in table.controls if name in rows]
    controls = {name: match_controls(row, named) for name, row in rows.items()}
    columns = table.ranking.columns
    scores = {column: score_methods(rows, controls, [column]) for column in columns}
    overall = score_methods(rows, controls, columns)
    source_gains = compute_in_domain_gains(controls)
    built = [
        build_row(
            row,
            controls[name],
            {column: scores[column][name] for column in columns if name in scores[column]},
            overall.get(name),
            source_gains.get(name),
        )
        for name, row in rows.items()
    ]
    built.sort(key=lambda r: (r.overall is None, -r.overall.mean if r.overall else 0.0, r.name))
    return MethodBoard(
        board=table.name,
        track=", ".join(filter(None, (table.label, part))),
        columns=columns,
        rows=tuple(built),
        left_out=left_out,
    )


def build_row(
    row: Row,
    controls: Controls,
    scores: Mapping[str, MethodScore],
    overall: MethodScore | None,
    source_gain: Gain | None,
) -> MethodRow:
    """Return the record of a row. scores: by column."""
    trainings = [run for n in row.networks if (run := find_training(n.facts))]
    first = trainings[0] if trainings else None
    return MethodRow(
        name=row.name,
        method="+".join(first.methods) if first else RANDOM,
        plan=first and first.plan,
        schedule=first and first.view.schedule,
        architecture=row.facts.architecture,
        seeds=tuple(network.seed for network in row.networks),
        scores=dict(scores),
        overall=overall,
        source_accuracy=row.source,
        source_gain=source_gain,
        self_reported=bool(row.self_reported),
        controls={
            k: match.control.name for k, match in controls.items() if isinstance(match, Match)
        },
        missing={kind: reason for kind, reason in controls.items() if isinstance(reason, str)},
        costs=average_costs(trainings),
    )


def score_methods(
    rows: Mapping[str, Row], controls: Mapping[str, Controls], columns: Sequence[str]
) -> dict[str, MethodScore]:
    """Return the scores and gains in the mean of columns, of the rows that have them all."""
    whole = {n: row for n, row in rows.items() if columns and {*columns} <= row.outcomes.keys()}
    errors = SeedErrors({n: [row.outcomes[c] for c in columns] for n, row in whole.items()})
    gains = compute_gains(controls, columns, errors.pooled)
    return {
        name: make_score(errors, name, {k: of[name] for k, of in gains.items() if name in of})
        for name in whole
    }


def make_score(errors: SeedErrors, name: str, gains: Mapping[ControlKind, Gain]) -> MethodScore:
    """Return the score of a row over its seeds."""
    mean, seeds = errors.means[name], errors.estimates.get(name)
    return MethodScore(
        mean=mean.gap,
        ci95=finite_or_none(mean.ci95),
        ci95_seeds=finite_or_none(errors.scores[name].ci95) if seeds else None,
        n=mean.n,
        variance_seeds=finite_or_none(seeds.component) if seeds else None,
        gains=dict(gains),
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
