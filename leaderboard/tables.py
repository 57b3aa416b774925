"""Tables of a board: the rows of each track, ranked, with what is shown beside them.

A row is an entry; where it has several pretraining seeds, it is their mean.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Declaration, FeatureCost, Result
from fsbench.core.statistics import Score
from fsbench.core.tasks import ColumnId, Track
from fsbench.results.table import collapse_notes, combine_costs, rule_notes, warn_of_feature_scale
from leaderboard.badges import FAILED, OWN_CODE, SELF_REPORTED
from leaderboard.columns import TrackColumns, split_by_track
from leaderboard.eligibility import describe_failures, explain_exclusion
from leaderboard.entry_networks import Network
from leaderboard.near_copies import find_suspicions, list_results
from leaderboard.published import PublishedEntry, select_published
from leaderboard.ranking.outcomes import Outcomes, extract_outcomes, has_second_rule
from leaderboard.ranking.seeds import SeedErrors
from leaderboard.ranking.tiers import RankedEntry, Ranking, rank_entries, score_groups
from leaderboard.record import BoardFile
from leaderboard.store import Board, BoardEntry
from leaderboard.trust import Verification

OVERALL = "overall"
"""The mean over all columns of a table."""
EXTRA = "an extra column: outside of the overall and of the ranking"
HELD_OUT_NOTE = "Probes are ranked at the learning rate chosen on held-out training images."


@dataclass(frozen=True, eq=False)
class NetworkGroup:
    """The networks that make a row: those of an entry, or runs of one recipe in results folders.

    declaration, verification: of an entry; suspicions: network -> texts.
    """

    name: str
    networks: tuple[Network, ...]
    declaration: Declaration | None = None
    verification: Verification | None = None
    suspicions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Row:
    """A row of a table, or one of its networks.

    Three fields are by column: outcomes, of a row of several seeds the means over them; results,
    those of every seed; column_flags, why the number is not official, or that no signed badge
    decides on it. facts: of the first network; notes: on the row as a whole, e.g. what its badges
    say; source: in-domain accuracy, mean over the seeds; excluded: why the row is not ranked; link:
    code or paper; seed: of a single network; seeds: the networks of a row of several; controls:
    networks of the entry that are controls.
    """

    name: str
    facts: BackboneFacts
    outcomes: Mapping[str, Outcomes]
    results: Mapping[str, tuple[Result, ...]] = field(default_factory=dict)
    column_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: float | None = None
    excluded: str = ""
    link: str = ""
    seed: int = 0
    seeds: "tuple[Row, ...]" = ()
    controls: "tuple[Row, ...]" = ()

    @cached_property
    def cost(self) -> FeatureCost | None:
        """The cost of the features of its first network; None where nobody measured it."""
        return combine_costs(results[0] for results in self.results.values())

    @property
    def networks(self) -> "tuple[Row, ...]":
        """The seeds, or the row itself if it has one."""
        return self.seeds or (self,)

    @property
    def flags(self) -> tuple[str, ...]:
        """Why numbers of the row are not official, and its notes."""
        flags = unite(self.column_flags.values())
        return (*(flag for flag in flags if flag not in {SELF_REPORTED, FAILED}), *self.notes)

    @property
    def self_reported(self) -> list[str]:
        """The columns on which no signed badge decides."""
        return [column for column, flags in self.column_flags.items() if SELF_REPORTED in flags]


@dataclass(frozen=True)
class BoardTable:
    """The rows of one track of a board, by name, in order of rank.

    controls, tuned: rows that gains are over; notes: sentences for a caption.
    """

    name: str
    official: bool = False
    track: Track | None = None
    ranking: Ranking = field(default_factory=Ranking)
    rows: Mapping[str, Row] = field(default_factory=dict, repr=False, compare=False)
    controls: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The rows in order of rank."""
        return [*self.rows]

    @property
    def label(self) -> str:
        """What the columns share, e.g. linear ibm 64px; empty for a board without any."""
        return self.track.label if self.track else ""

    @cached_property
    def lines(self) -> dict[str, Row]:
        """The rows and the seeds of rows of several, by name."""
        return {line.name: line for row in self.rows.values() for line in (row, *row.seeds)}

    @cached_property
    def runs(self) -> set[str]:
        """Rows of one draw of a recipe or of an initialization."""
        rows = (row for row in self.rows.values() if not row.seeds)
        return {row.name for row in rows if row.facts.training or row.facts.random_init is not None}

    @cached_property
    def contenders(self) -> dict[str, Mapping[str, Outcomes]]:
        """Row -> column -> outcomes."""
        return {name: row.outcomes for name, row in self.rows.items()}

    @cached_property
    def seeds(self) -> dict[str, dict[int, RankedEntry]]:
        """Row -> seed -> its scores over episodes, for rows of several."""
        columns = self.ranking.columns
        groups = {c: [c] for c in columns} | group_by_dataset(columns) | {OVERALL: columns}
        rows = [row for row in self.rows.values() if row.seeds]
        networks = {s.name: {c: s.outcomes[c] for c in r.outcomes} for r in rows for s in r.seeds}
        scored = score_groups(networks, groups)
        return {
            row.name: {s.seed: rank_seed(row, s, scored[s.name]) for s in row.seeds} for row in rows
        }

    @cached_property
    def published(self) -> tuple[PublishedEntry, ...]:
        """Published entries on the same data sets."""
        columns = map(ColumnId.parse, self.ranking.columns)
        facts = (network.facts for row in self.rows.values() for network in row.networks)
        sources = (name for network in facts for name in network.pretraining_data)
        return select_published(self.track, columns, sources)

    @property
    def warning(self) -> str:
        """That accuracies may measure the scale of features; empty if nothing suggests it."""
        networks = (network for row in self.rows.values() for network in row.networks)
        return warn_of_feature_scale(
            {n.name: {result.column: result for (result,) in n.results.values()} for n in networks}
        )

    @cached_property
    def seed_errors(self) -> SeedErrors:
        """Return what seeds add to the overall errors of the ranked rows."""
        ranked = [entry.name for entry in self.ranking.entries if entry.tier is not None]
        columns = self.ranking.columns
        return SeedErrors({name: [self.contenders[name][c] for c in columns] for name in ranked})


def rank_board(folder: Path, report: Reporter = SILENT) -> tuple[BoardTable, ...]:
    """Read, check and rank a board, each track on its own.

    A table lists the entries that have any of its columns. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    return rank_tracks(board.file, board.entries(report))


def rank_tracks(file: BoardFile, entries: Sequence[BoardEntry]) -> tuple[BoardTable, ...]:
    """Rank checked entries, in the order in which they came, each track on its own."""
    suspicions = find_suspicions(file, list_results(entries))
    return rank_groups(
        file,
        [
            NetworkGroup(e.name, e.networks, declaration_of(e), e.verification, suspicions)
            for e in entries
        ],
    )


def rank_groups(file: BoardFile, groups: Sequence[NetworkGroup]) -> tuple[BoardTable, ...]:
    """Rank groups of networks, each track on its own."""
    results = [[one.result for n in group.networks for one in n.loaded] for group in groups]
    tables = split_by_track(file, results)
    return tuple(rank_table(file, groups, table) for table in tables)


def rank_table(file: BoardFile, groups: Sequence[NetworkGroup], table: TrackColumns) -> BoardTable:
    """Rank the groups that have any column of one table."""
    rows = {group.name: row for group in groups if (row := make_row(file, group, table))}
    columns = list(table.labels.values())
    ranking = rank_entries(
        {name: row.outcomes for name, row in rows.items()},
        columns,
        excluded={name: row.excluded for name, row in rows.items() if row.excluded},
        averaged=group_by_dataset(columns),
    )
    results = [r for row in rows.values() for of_seeds in row.results.values() for r in of_seeds]
    notes = [*rule_notes(results), *collapse_notes(results)]
    if any(group.declaration for group in groups):
        notes = [HELD_OUT_NOTE] * any(map(has_second_rule, results))
    return BoardTable(
        name=file.title,
        official=file.official,
        track=table.track,
        ranking=ranking,
        rows={entry.name: rows[entry.name] for entry in ranking.entries},
        controls=file.controls,
        tuned=file.tuned,
        notes=tuple(notes),
    )


def make_row(file: BoardFile, group: NetworkGroup, table: TrackColumns) -> Row | None:
    """Return the row of a group: the mean over the seeds with the most columns of the table.

    It is None for a group without any column.
    """
    made = [(n.is_control, make_network_row(file, group, n, table)) for n in group.networks]
    seeds = [row for is_control, row in made if not is_control]
    most = max((len(seed.outcomes) for seed in seeds), default=0)
    if not most:
        return None
    is_pooled = not file.pooled or group.name in file.pooled
    return replace(
        average_rows([seed for seed in seeds if len(seed.outcomes) == most], is_pooled),
        name=group.name,
        link=group.declaration.link if group.declaration else "",
        controls=tuple(row for is_control, row in made if is_control and row.outcomes),
    )


def make_network_row(
    file: BoardFile, group: NetworkGroup, network: Network, table: TrackColumns
) -> Row:
    """Return what a network has in a table. Entries are ranked by the held-out rule of probes."""
    matched = {table.find(loaded.result): loaded for loaded in network.loaded}
    by_column = {label: matched[c] for c, label in table.labels.items() if c in matched}
    results = {column: loaded.result for column, loaded in by_column.items()}
    badge = str(group.verification or "")
    notes = *filter(None, [describe_code(network.facts), badge]), *describe_failures(results)
    excluded = EXTRA
    if not table.is_extra:
        measured = (loaded.result for loaded in network.loaded)
        excluded = explain_exclusion(measured, results, table.labels, file.episodes)
        excluded += f" ({network.name})" if excluded and network.name != group.name else ""
    return Row(
        name=network.name,
        facts=network.facts,
        outcomes={c: extract_outcomes(of, bool(group.declaration)) for c, of in by_column.items()},
        results={column: (result,) for column, result in results.items()},
        column_flags={column: list_flags(group, result) for column, result in results.items()},
        notes=(*notes, *group.suspicions.get(network.name, ())),
        source=network.facts.source_accuracy,
        excluded=excluded,
        seed=network.seed,
    )


def list_flags(group: NetworkGroup, result: Result) -> tuple[str, ...]:
    """Return the flags of a result, code of users, targets seen, and what signed badges decide."""
    network = [OWN_CODE] * result.backbone.runs_code
    code = (f"custom code {name} {sha[:8]}" for name, sha in result.custom_code.items())
    targets = group.declaration.targets_seen if group.declaration else ()
    trust = []
    if group.verification is not None:
        verdict = group.verification.verdicts.get((result.backbone.identity, str(result.column)))
        is_signed = verdict not in (None, "undecided")
        trust = [FAILED] * (verdict == "failed") if is_signed else [SELF_REPORTED]
    return (*result.flags, *network, *code, *(f"saw {target}" for target in targets), *trust)


def describe_code(facts: BackboneFacts) -> str:
    """Return the start of the sha-256 of own code and its weights; '' for a network without."""
    code = f"sha-256 {facts.code[:12]}" if facts.code else "in memory"
    return f"code {code}, weights {facts.weights_hash[:12]}" if facts.runs_code else ""


def average_rows(seeds: Sequence[Row], is_pooled: bool) -> Row:
    """Return the mean over seeds, on the columns that all have; a single one as it is."""
    first, *others = seeds
    if not others:
        return first
    shared = [column for column in first.outcomes if all(column in o.outcomes for o in others)]
    accuracies = [seed.source for seed in seeds if seed.source is not None]
    return replace(
        first,
        outcomes={c: Outcomes.average([s.outcomes[c] for s in seeds], is_pooled) for c in shared},
        results={c: tuple(chain.from_iterable(s.results[c] for s in seeds)) for c in shared},
        column_flags={c: unite(seed.column_flags[c] for seed in seeds) for c in shared},
        notes=unite(seed.notes for seed in seeds),
        source=float(np.mean(accuracies)) if len(accuracies) == len(seeds) else None,
        excluded=next((seed.excluded for seed in seeds if seed.excluded), ""),
        seeds=tuple(seeds),
    )


def group_by_dataset(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each data set."""
    datasets: dict[str, list[str]] = {}
    for column in columns:
        datasets.setdefault(ColumnId.parse(column).task.dataset, []).append(column)
    return datasets


def finite_or_none(value: float | None) -> float | None:
    """Return None for nan and infinity, which JSON cannot write."""
    return value if value is not None and math.isfinite(value) else None


def rank_seed(row: Row, seed: Row, scored: Mapping[str, Score]) -> RankedEntry:
    """Return a seed of a row without a tier. scored: means over columns and groups of columns."""
    scores = {column: scored[column] for column in row.outcomes}
    overall = float(np.mean([score.mean for score in scores.values()])) if scores else None
    return RankedEntry(seed.name, scores, overall=overall, averages=scored)


def unite(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the texts of all parts, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def declaration_of(entry: BoardEntry) -> Declaration:
    """Return what the submitter declares. Raises ValidationFailed for a results folder."""
    if entry.file.declaration is None:
        raise ValidationFailed(f"{entry.folder} declares nothing", fix="submit the results")
    return entry.file.declaration
