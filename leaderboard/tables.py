"""Tables of a board: the entries of each track, ranked, with what is shown beside them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from fsbench.core.errors import ValidationFailed
from fsbench.core.process import paused_collection
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Declaration, Result
from fsbench.core.specs import ProbeSpec
from fsbench.core.statistics import score_rows
from fsbench.core.tasks import ColumnId, Track
from fsbench.results.entry import Loaded
from fsbench.results.table import warn_of_scale
from leaderboard.badges import FAILED, SELF_REPORTED
from leaderboard.columns import (
    PROBES,
    TrackColumns,
    complete_columns,
    find_ranked_column,
    label_columns,
    split_by_track,
)
from leaderboard.eligibility import exclude_rows, flag_failures
from leaderboard.near_copies import describe_suspicions, find_suspicions, list_results
from leaderboard.published import PublishedEntry, load_published
from leaderboard.ranking.outcomes import Outcomes, extract_outcomes, has_second_rule
from leaderboard.ranking.seeds import SeedErrors
from leaderboard.ranking.tiers import (
    Contenders,
    RankedEntry,
    Ranking,
    average_groups,
    rank_entries,
)
from leaderboard.record import BoardFile
from leaderboard.store import Board, BoardEntry, number_seeds

CellFlags = Mapping[str, Mapping[str, tuple[str, ...]]]
ResultsByEntry = Mapping[str, Mapping[str, Loaded]]
SOURCE = "tinyimagenet"
"""The data set that the backbones of the source papers were pretrained on."""
EXTRA = "an extra column: outside of the overall and of the ranking"


@dataclass(frozen=True)
class BoardTable:
    """The ranked rows of one track of a board, with what is shown beside them.

    A row is an entry; where it has several pretraining seeds, it is their mean. members: row -> its
    networks in this table; own_controls: row -> networks of the entry that are controls; seeds: row
    -> seed -> a network with its scores over episodes, for rows with several; pooled: rows whose
    spread between seeds is pooled. The next ones know rows and networks. flags: why the numbers are
    not official; sources: in-domain accuracy, mean over seeds; contenders: column -> outcomes;
    cell_flags: column -> why that number is not official, or that its submitter alone vouches for
    it. backbones and results: by network, its facts, and column -> its result. links: of rows, code
    or paper. controls: rows that gains are over. published: published entries on the same data
    sets. notes: sentences for a caption.
    """

    name: str
    official: bool = False
    ranking: Ranking = field(default_factory=Ranking)
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[str, float | None] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    published: tuple[PublishedEntry, ...] = ()
    contenders: Contenders = field(default_factory=dict, repr=False, compare=False)
    track: Track | None = None
    backbones: Mapping[str, BackboneFacts] = field(default_factory=dict, repr=False, compare=False)
    cell_flags: CellFlags = field(default_factory=dict, repr=False, compare=False)
    results: ResultsByEntry = field(default_factory=dict, repr=False, compare=False)
    seeds: Mapping[str, Mapping[int, RankedEntry]] = field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    own_controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    controls: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def names(self) -> list[str]:
        """The rows in order of rank."""
        return [entry.name for entry in self.ranking.entries]

    @property
    def label(self) -> str:
        """What the columns share, e.g. linear ibm 64px; empty for a board without any."""
        return self.track.label if self.track else ""

    @property
    def full_name(self) -> str:
        """The name of the board, and the part of its data if there are several."""
        return f"{self.name} {self.track.data}" if self.track and self.track.data else self.name

    @property
    def warning(self) -> str:
        """That accuracies may measure the scale of features; empty if nothing suggests it."""
        results = {
            name: {loaded.result.column: loaded.result for loaded in by_column.values()}
            for name, by_column in self.results.items()
        }
        return warn_of_scale(results)

    @cached_property
    def seed_errors(self) -> SeedErrors:
        """Return what seeds add to the overall errors of the ranked rows."""
        ranked = [entry.name for entry in self.ranking.entries if entry.tier is not None]
        columns = self.ranking.columns
        return SeedErrors({name: [self.contenders[name][c] for c in columns] for name in ranked})

    @property
    def pooled_spread(self) -> float | None:
        """Standard deviation between seeds that rows of one seed have; None without one."""
        pooled = self.seed_errors.pooled
        return pooled and math.sqrt(pooled.variance)

    @cached_property
    def best_on_test(self) -> dict[str, dict[str, float]]:
        """Row or network -> column -> second accuracy of a probe ranked by the held-out rule."""
        seconds = {
            name: {
                c: best
                for c, loaded in by_column.items()
                if (best := best_on_test(loaded)) is not None
            }
            for name, by_column in self.results.items()
        }
        for row, names in self.members.items():
            first, *others = (seconds[name] for name in names)
            seconds[row] = {
                column: float(np.mean([best, *(other[column] for other in others)]))
                for column, best in first.items()
                if all(column in other for other in others)
            }
        return seconds


def rank_board(folder: Path, report: Reporter = SILENT) -> tuple[BoardTable, ...]:
    """Read, check and rank a board, each track on its own.

    A table lists the entries that have any of its columns. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    return rank_tracks(board.file, board.entries(report))


@paused_collection()
def rank_tracks(file: BoardFile, entries: Sequence[BoardEntry]) -> tuple[BoardTable, ...]:
    """Rank checked entries, in the order in which they came, each track on its own."""
    suspicions = find_suspicions(file, list_results(entries))
    results = [entry.results for entry in entries]
    file = complete_columns(file, results)
    tables = split_by_track(file, results)
    return tuple(rank_table(file, entries, table, suspicions) for table in tables)


def rank_table(
    file: BoardFile,
    entries: Sequence[BoardEntry],
    table: TrackColumns,
    suspicions: Mapping[str, Mapping[str, Sequence[str]]],
) -> BoardTable:
    """Rank the entries over the columns of one track. suspicions: of find_suspicions."""
    labels = label_columns(table.columns)
    owners = {network.name: entry for entry in entries for network in entry.networks}
    networks = {network.name: network for entry in entries for network in entry.networks}
    results = {
        name: {
            labels[column]: loaded
            for loaded in network.cells
            if (column := find_ranked_column(file, table, loaded.result))
        }
        for name, network in networks.items()
    }
    members = {entry.name: names for entry in entries if (names := select_seeds(entry, results))}
    excluded = dict.fromkeys(members, EXTRA)
    if not table.is_extra:
        measured = {name: network.cells for name, network in networks.items()}
        excluded = exclude_rows(members, measured, results, labels, file.episodes)
    view = BoardTable(
        name=file.title,
        official=file.official,
        track=table.track,
        flags={
            name: (
                *list_flags(entry, table.track),
                *flag_failures(results[name]),
                *describe_suspicions(suspicions.get(name, {})),
            )
            for name, entry in owners.items()
        },
        links={entry.name: declaration_of(entry).link for entry in entries},
        published=select_published(table, entries),
        contenders={
            name: {column: extract_outcomes(loaded, True) for column, loaded in by_column.items()}
            for name, by_column in results.items()
            if by_column
        },
        backbones={name: network.facts for name, network in networks.items()},
        cell_flags={
            name: {
                column: (
                    *loaded.result.flags,
                    *flag_custom_code(loaded.result),
                    *flag_targets_seen(entry),
                    *flag_unverified(entry, loaded.result),
                )
                for column, loaded in results[name].items()
            }
            for name, entry in owners.items()
        },
        results=results,
        members=members,
        own_controls={
            entry.name: tuple(n.name for n in entry.networks if n.is_control) for entry in entries
        },
        controls=file.controls,
        pooled=file.pooled or tuple(members),
    )
    return rank_rows(view, list(labels.values()), excluded)


def select_seeds(entry: BoardEntry, results: Mapping[str, Mapping[str, Loaded]]) -> tuple[str, ...]:
    """Return the networks of the row: the seeds with the most columns of the table."""
    counts = {network.name: len(results[network.name]) for network in entry.seeds}
    most = max(counts.values(), default=0)
    return tuple(name for name, count in counts.items() if 0 < count == most)


def rank_rows(view: BoardTable, columns: Sequence[str], excluded: Mapping[str, str]) -> BoardTable:
    """Average the seeds of each row and rank the rows.

    view: the table of single networks; excluded: row -> reason.
    """
    contenders, datasets = dict[str, dict[str, Outcomes]](), group_by_dataset(columns)
    cell_flags, seeds = dict(view.cell_flags), dict[str, dict[int, RankedEntry]]()
    sources = {name: facts.source_accuracy for name, facts in view.backbones.items()}
    for row, names in view.members.items():
        of_seeds = [view.contenders.get(name, {}) for name in names]
        shared = [c for c in columns if all(c in outcomes for outcomes in of_seeds)]
        is_pooled = row in view.pooled
        contenders[row] = {c: Outcomes.average([o[c] for o in of_seeds], is_pooled) for c in shared}
        accuracies = [a for name in names if (a := sources[name]) is not None]
        sources[row] = float(np.mean(accuracies)) if len(accuracies) == len(names) else None
        cell_flags[row] = {
            c: unite(view.cell_flags[name].get(c, ()) for name in names) for c in shared
        }
        if len(names) > 1:
            numbers = number_seeds([view.backbones[name] for name in names])
            seeds[row] = {
                number: score_seed(name, outcomes, shared, datasets)
                for number, name, outcomes in zip(numbers, names, of_seeds, strict=True)
            }
    rows = view.members.items()
    return replace(
        view,
        ranking=rank_entries(contenders, columns, excluded=excluded, averaged=datasets),
        flags={**view.flags, **{row: unite(view.flags[n] for n in names) for row, names in rows}},
        sources=sources,
        cell_flags=cell_flags,
        contenders={**view.contenders, **contenders},
        seeds=seeds,
    )


def group_by_dataset(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each data set."""
    datasets: dict[str, list[str]] = {}
    for column in columns:
        datasets.setdefault(ColumnId.parse(column).task.dataset, []).append(column)
    return datasets


def score_seed(
    name: str,
    outcomes: Mapping[str, Outcomes],
    columns: Sequence[str],
    datasets: Mapping[str, Sequence[str]],
) -> RankedEntry:
    """Return one seed of a row with its scores over episodes. datasets: name -> columns."""
    scores = dict(zip(columns, score_rows([outcomes[c].values for c in columns]), strict=True))
    overall = float(np.mean([s.mean for s in scores.values()])) if scores else None
    averages = average_groups({name: outcomes}, datasets)[name]
    return RankedEntry(name, scores, overall=overall, averages=averages)


def unite(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def best_on_test(loaded: Loaded) -> float | None:
    """Return the accuracy of a probe's best rate and epoch on the test images.

    It is None for a probe without a held-out part, whose only score it is.
    """
    result = loaded.result
    if has_second_rule(result):
        return result.score.mean
    if isinstance(result.spec, ProbeSpec) and "beside_mean" in result.details:
        return float(result.details["beside_mean"])
    return None


def declaration_of(entry: BoardEntry) -> Declaration:
    """Return what the submitter declares. Raises ValidationFailed for a results folder."""
    if entry.file.declaration is None:
        raise ValidationFailed(f"{entry.folder} declares nothing", fix="submit the results")
    return entry.file.declaration


def select_published(
    table: TrackColumns, entries: Sequence[BoardEntry]
) -> tuple[PublishedEntry, ...]:
    """Return the published entries to show beside a table.

    Papers state no more than classic, inductive episodes on official data; other tracks have none.
    In-domain accuracies are shown beside entries that were pretrained on the same data.
    """
    track = table.track
    if track and (track.transductive or track.groups == "disjoint" or track.data == "subset"):
        return ()
    head = None
    if track and track.adaptation and track.adaptation != PROBES and table.columns:
        task = table.columns[0].name.task
        head = task.head or task.shape
    datasets = {column.name.task.dataset for column in table.columns}
    networks = [network for entry in entries for network in entry.networks]
    sources = {name for network in networks for name in network.facts.pretraining_data}
    sources |= {SOURCE} if track and track.data else set()
    published = (entry.about(datasets, sources, head) for entry in load_published())
    return tuple(entry for entry in published if entry.cells)


def list_flags(entry: BoardEntry, track: Track | None = None) -> tuple[str, ...]:
    """Return flags of the results (none on official data), custom code, targets seen, the badge."""
    results = () if track and track.data == "official" else entry.cells
    flags = sorted({flag for loaded in results for flag in loaded.result.flags})
    code = sorted({words for loaded in entry.cells for words in flag_custom_code(loaded.result)})
    badge = entry.verification.words
    return (*flags, *code, *flag_targets_seen(entry), *([badge] if badge else []))


def flag_custom_code(result: Result) -> list[str]:
    """Return a flag for each method and head of a user's file: custom code my_head 1a2b3c4d."""
    return [f"custom code {name} {sha[:8]}" for name, sha in result.custom_code.items()]


def flag_targets_seen(entry: BoardEntry) -> list[str]:
    """Return a flag for each target seen in pretraining."""
    return [f"saw {target}" for target in declaration_of(entry).targets_seen]


def flag_unverified(entry: BoardEntry, result: Result) -> list[str]:
    """Return a flag if no signed badge decides on this result, or if one says that it failed."""
    key = (result.backbone.identity, str(result.column))
    verdict = entry.verification.verdicts.get(key)
    is_signed = verdict not in (None, "undecided")
    return [FAILED] * (verdict == "failed") if is_signed else [SELF_REPORTED]


def list_self_reported(table: BoardTable, name: str) -> list[str]:
    """Return the columns of a row or network that no signed badge covers."""
    flags = table.cell_flags.get(name, {})
    return [column for column in table.ranking.columns if SELF_REPORTED in flags.get(column, ())]
