"""The method board: pretraining methods with gains over controls of matched compute.

With two seeds or more on both sides the interval of a gain covers seeds and episodes
(ranking/gaps.py); with fewer episodes and, if three rows or more have several seeds, their pooled
spread (ranking/seeds.py). Runs of one seed share initial weights and batches, so gains over plain
training, tuned or not, are paired by seed; gains over random initializations are not.

The records are written to JSON: accuracies, gaps and variances are fractions, unknown values None.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from fsbench.core import statistics
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Training
from fsbench.core.specs import Frozen, omitted
from leaderboard.controls import (
    IS_TUNED,
    ControlKind,
    Controls,
    Match,
    find_training,
    match_controls,
)
from leaderboard.ranking.gaps import compute_joint_interval
from leaderboard.ranking.outcomes import align_outcomes
from leaderboard.ranking.seeds import (
    Columns,
    Coverage,
    PooledSpread,
    SeedErrors,
    average_columns,
    compute_seed_interval,
    list_pooled_variances,
)
from leaderboard.ranking.tiers import ALPHA
from leaderboard.tables import OVERALL, BoardTable, Row, finite_or_none, rank_board

RANDOM, PUBLISHED, TUNED_NORMAL = "random init", "published weights", "normal (tuned)"
NO_RUN = "its training is not recorded: no run of fsbench, or results without recipe and cost"
TESTED = ("seeds", "seeds and episodes")
"""Coverage of the interval of a gain that may be significant: seeds of both sides."""
COSTS = ("steps", "samples", "flops", "seconds", "peak_memory_bytes")
"""Costs of a run; samples are training images, repeats counted."""
Spread = Annotated[Annotated[float, Field(ge=0)] | None, BeforeValidator(finite_or_none)]
"""A half-width or a variance; None if it is unknown."""


class Gain(Frozen):
    """Row - control. ci95 is the half-width of the interval of `covers`; by_seed: of each seed.

    On the targets over shared episodes or test images. On the source (covers: seeds) by a paired t
    test over the seeds that both sides have; below two, ci95 is None and p is 1.
    """

    gap: float
    ci95: Spread
    p: float = Field(ge=0, le=1, description="two-sided, of no gap")
    p_holm: float = Field(
        1.0, ge=0, le=1, description="adjusted over the rows of this board, column and control"
    )
    significant: bool = Field(False, description="after Holm; never with one seed on a side")
    n: int = Field(ge=0, description="shared episodes or test images; on the source: seeds")
    seeds: tuple[int, ...] = Field(
        description="pretraining seeds that both sides have; for random_init those of the row"
    )
    covers: Coverage | Literal["seeds"] = Field(
        description="pooled: the spread between seeds is that of the rows with several seeds"
    )
    by_seed: tuple[float, ...] = Field((), description="empty where the sides share no seeds")


class MethodScore(Frozen):
    """A row in one column, or overall: the unweighted mean over the columns."""

    mean: float = Field(ge=0, le=1, description="over seeds and shared episodes")
    ci95: Spread = Field(description="half-width over episodes, for these seeds")
    ci95_seeds: Spread = Field(description="half-width over seeds and episodes; null for one seed")
    n: int = Field(ge=1, description="shared episodes or test images")
    variance_seeds: Spread = Field(
        description="component of the pretraining seeds; null for one seed"
    )
    gains: dict[ControlKind, Gain] = Field({})


class MethodRow(Frozen):
    """An entry of the board with its seeds.

    method: names of its methods joined by +, `normal (tuned)`, `published weights` or `random
    init`; overall: null for a row that lacks a column.
    """

    name: str
    method: str
    plan: str | None = Field(description="e.g. '3 rounds x 4 epochs'; null for random weights")
    schedule: str | None
    architecture: str
    seeds: tuple[int, ...] = Field(min_length=1)
    scores: dict[str, MethodScore] = Field(
        description="by column; a column that it lacks is missing"
    )
    overall: MethodScore | None
    source_accuracy: float | None = Field(description="in-domain; mean over the seeds")
    source_gain: Gain | None = Field(description="in-domain, over plain training")
    source_gain_tuned: Gain | None = omitted(None, description="in-domain, over normal (tuned)")
    self_reported: bool = Field(description="no signed badge covers some result of the entry")
    controls: dict[ControlKind, str] = Field(description="names of the rows that gains are over")
    missing: dict[ControlKind, str] = Field(description="why there is no control of this kind")
    costs: dict[str, float] = Field(description="of a pretraining run, mean over the seeds")

    @property
    def gain(self) -> Gain | None:
        """The overall gain over plain training."""
        return self.overall.gains.get("normal") if self.overall else None

    @property
    def gain_tuned(self) -> Gain | None:
        """The overall gain over plain training whose settings were searched."""
        return self.overall.gains.get("tuned") if self.overall else None


class MethodBoard(Frozen):
    """The fsbench runs on one track of a board; best row first, incomplete rows last.

    left_out: entry -> why it is in no row.
    """

    board: str
    track: str = Field("", description="what all columns share, e.g. 'ibm 64px'")
    columns: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    left_out: dict[str, str]

    @property
    def kinds(self) -> list[ControlKind]:
        """The kinds of control that a row has; plain training in any case, `tuned` if a row is."""
        present = {"normal", *chain.from_iterable(row.controls for row in self.rows)}
        present.update("tuned" for row in self.rows if row.method == TUNED_NORMAL)
        return [kind for kind in get_args(ControlKind) if kind in present]


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
        ", ".join(text for text, shown in zip(part, differ, strict=True) if shown and text): entries
        for part, entries in members.items()
    }


def build_method_board(table: BoardTable, part: str, names: Iterable[str]) -> MethodBoard:
    """Build the record of some rows of a table. part: what tells them from the other rows.

    Weights without a recorded run have a row if the board names random ones of their network.
    """
    rows = {name: table.rows[name] for name in names}
    named = [rows[name] for name in table.controls if name in rows]
    controls = {name: match_controls(row, named, table.tuned) for name, row in rows.items()}
    left_out = {
        name: NO_RUN
        for name, row in rows.items()
        if row.facts.training is None and isinstance(controls[name].get("random_init"), str)
    }
    for name in left_out:
        del rows[name], controls[name]
    columns = table.ranking.columns
    groups = {column: [column] for column in columns} | {OVERALL: columns}
    scores = {group: score_methods(rows, controls, of) for group, of in groups.items()}
    over_plain, over_tuned = (compute_source_gains(controls, k) for k in ("normal", "tuned"))
    built = [
        build_row(
            row,
            controls[name],
            {group: of[name] for group, of in scores.items() if name in of},
            over_plain.get(name),
            over_tuned.get(name),
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
    scores: dict[str, MethodScore],
    source_gain: Gain | None,
    source_gain_tuned: Gain | None,
) -> MethodRow:
    """Return the record of a row. scores: by column, and overall."""
    trainings = [run for n in row.networks if (run := find_training(n.facts))]
    first = trainings[0] if trainings else None
    method = "+".join(first.methods) if first else PUBLISHED if controls else RANDOM
    return MethodRow(
        name=row.name,
        method=TUNED_NORMAL if controls.get("tuned") == IS_TUNED else method,
        plan=first and first.plan,
        schedule=first and first.view.schedule,
        architecture=row.facts.architecture,
        seeds=tuple(network.seed for network in row.networks),
        overall=scores.pop(OVERALL, None),
        scores=scores,
        source_accuracy=row.source,
        source_gain=source_gain,
        source_gain_tuned=source_gain_tuned,
        self_reported=bool(row.self_reported),
        controls={k: m.control.name for k, m in controls.items() if isinstance(m, Match)},
        missing={kind: reason for kind, reason in controls.items() if isinstance(reason, str)},
        costs=average_costs(trainings),
    )


def average_costs(trainings: Sequence[Training]) -> dict[str, float]:
    """Return the mean over the seeds of what all of them record; nothing for random weights."""
    values = {name: [getattr(training, name) for training in trainings] for name in COSTS}
    return {name: fmean(of) for name, of in values.items() if of and None not in of}


def score_methods(
    rows: Mapping[str, Row], controls: Mapping[str, Controls], columns: Sequence[str]
) -> dict[str, MethodScore]:
    """Return the scores and gains in the mean of columns, of the rows that have them all."""
    whole = {n: row for n, row in rows.items() if columns and {*columns} <= row.outcomes.keys()}
    errors = SeedErrors({n: [row.outcomes[c] for c in columns] for n, row in whole.items()})
    gains = compute_gains(controls, columns, errors.pooled)
    scores = {}
    for name in whole:
        mean, seeds = errors.means[name], errors.estimates.get(name)
        scores[name] = MethodScore(
            mean=mean.gap,
            ci95=mean.ci95,
            ci95_seeds=errors.scores[name].ci95 if seeds else None,
            n=mean.n,
            variance_seeds=seeds.component if seeds else None,
            gains={kind: of[name] for kind, of in gains.items() if name in of},
        )
    return scores


def compute_gains(
    controls: Mapping[str, Controls], columns: Sequence[str], pooled: PooledSpread | None
) -> dict[ControlKind, dict[str, Gain]]:
    """Return kind -> row -> gain in the mean of columns, with Holm's correction over the rows."""
    gains: dict[ControlKind, dict[str, Gain]] = {}
    for name, matches in controls.items():
        for kind, match in matches.items():
            if isinstance(match, Match) and (gain := compute_gain(match, columns, pooled)):
                gains.setdefault(kind, {})[name] = gain
    return {kind: adjust_gains(of_kind) for kind, of_kind in gains.items()}


def compute_gain(
    match: Match, columns: Sequence[str], pooled: PooledSpread | None = None
) -> Gain | None:
    """Return the gain over a control in the mean of columns.

    None if a side lacks a column, or if the sides share no outcome of one. pooled: the spread of
    rows with several seeds, for sides of one seed.
    """
    row, control, is_paired = match
    if not columns or not {*columns} <= row.outcomes.keys() & control.outcomes.keys():
        return None
    aligned = [align_outcomes([row.outcomes[c], control.outcomes[c]]) for c in columns]
    ours, theirs = zip(*aligned, strict=True)
    if not all(outcomes.index.size for outcomes in ours):
        return None
    draws = [outcomes.draws for outcomes in ours]
    paired = statistics.paired([o.values for o in ours], [o.values for o in theirs], draws)
    sides: list[list[Columns]] = [
        list(zip(*(outcomes.by_seed for outcomes in side), strict=True)) for side in (ours, theirs)
    ]
    if is_paired:
        pairs = zip(*sides, strict=True)
        sides = [[[x - y for x, y in zip(a, b, strict=True)] for a, b in pairs]]
    ci95, p = paired.ci95, paired.p
    covers: Coverage = "episodes"
    if min(map(len, sides)) > 1:
        ci95, p = compute_seed_interval(paired.gap, sides, paired.se, draws)
        covers = "seeds and episodes"
    elif pooled:
        n_seeds = ours[0].n_seeds, theirs[0].n_seeds
        variances = list_pooled_variances(paired, n_seeds, pooled)
        ci95, p = compute_joint_interval(paired.gap, variances)
        covers = "pooled seeds and episodes"
    return Gain(
        gap=paired.gap,
        ci95=ci95,
        p=p if p == p else 1.0,
        n=paired.n,
        seeds=tuple(network.seed for network in row.networks),
        covers=covers,
        by_seed=tuple(map(average_columns, sides[0])) if is_paired else (),
    )


def compute_source_gains(controls: Mapping[str, Controls], kind: ControlKind) -> dict[str, Gain]:
    """Return row -> gain over plain training on the source, or over the tuned one.

    p is adjusted by Holm over the rows with two or more seeds; one seed is no test.
    """
    gains = {
        name: gain
        for name, matches in controls.items()
        if isinstance(match := matches.get(kind), Match) and (gain := compute_source_gain(match))
    }
    return gains | adjust_gains({name: gain for name, gain in gains.items() if gain.n > 1})


def compute_source_gain(match: Match) -> Gain | None:
    """Return the gain over the common seeds; None if a run has no accuracy on its source."""
    pairs = zip(match.row.networks, match.control.networks, strict=True)
    accuracies = [(ours.source, theirs.source) for ours, theirs in pairs]
    gaps = [x - y for x, y in accuracies if x is not None and y is not None]
    if len(gaps) < len(accuracies):
        return None
    paired = statistics.paired_by_seed(gaps)
    return Gain(
        gap=paired.gap,
        ci95=paired.ci95,
        p=paired.p,
        n=len(gaps),
        seeds=tuple(network.seed for network in match.row.networks),
        covers="seeds",
        by_seed=tuple(gaps),
    )


def adjust_gains(gains: Mapping[str, Gain]) -> dict[str, Gain]:
    """Return these gains with their p-values adjusted by Holm."""
    adjusted = {}
    for name, p in zip(gains, statistics.holm([gain.p for gain in gains.values()]), strict=True):
        significant = gains[name].covers in TESTED and p < ALPHA
        update = {"p_holm": p, "significant": significant}
        adjusted[name] = gains[name].model_copy(update=update)
    return adjusted
