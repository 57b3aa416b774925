"""Tables of a board: its columns split by track, its entries ranked in each table.

Which columns a table has never depends on an entry that comes later: board.json names them, or the
first entry of a track has them. All others are listed in tables of their own that rank nothing.
"""

import math
from collections import Counter
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
from fsbench.core.statistics import Score, score
from fsbench.core.tasks import ColumnId, Data, Track, by_track
from fsbench.results.entry import Loaded
from fsbench.results.table import warn_of_scale
from leaderboard.badges import FAILED, SELF_REPORTED
from leaderboard.eligibility import exclude_rows, flag_failures
from leaderboard.near_copies import OutcomeRow, describe_suspicions, find_suspicions
from leaderboard.published import PublishedEntry, load_published
from leaderboard.ranking.outcomes import Outcomes, extract_outcomes, has_second_rule
from leaderboard.ranking.seeds import FEWEST_POOLED, SeedErrors
from leaderboard.ranking.tiers import Contenders, RankedEntry, Ranking, rank_entries
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.store import Board, BoardEntry, Network, seed_of

CellFlags = Mapping[str, Mapping[str, tuple[str, ...]]]
ResultsByEntry = Mapping[str, Mapping[str, Loaded]]
SOURCE = "tinyimagenet"
"""The data set that the backbones of the source papers were pretrained on."""
PROBES = "probes"
"""Names the table of probes beside tables of episodes."""

EXTRA = "an extra column: outside of the overall and of the ranking"


@dataclass(frozen=True)
class TrackColumns:
    """The columns of one table, all of one track; a board without columns has one, track None."""

    track: Track | None
    columns: tuple[Column, ...]

    @cached_property
    def members(self) -> frozenset[Column]:
        return frozenset(self.columns)

    @property
    def is_extra(self) -> bool:
        """Return whether the columns stand outside of the ranking."""
        return self.track is not None and self.track.extra

    @classmethod
    def extra(cls, track: Track | None, columns: Sequence[Column]) -> "TrackColumns":
        """Return a table outside of the ranking."""
        marked = track and track.model_copy(update={"extra": True})
        return cls(marked, tuple(columns))


@dataclass(frozen=True)
class BoardTable:
    """The ranked rows of one track of a board, with what is shown beside them.

    A row is an entry; where it has several pretraining seeds, it is their mean. members: row -> its
    networks in this table; own_controls: row -> networks of the entry that are controls; seeds: row
    -> seed -> a network with its scores over episodes, for rows with several; pooled: rows whose
    spread between seeds is pooled. The next ones know rows and networks. flags: why the numbers are not official; sources: in-domain accuracy, mean
    over seeds; links: code or paper; contenders: column -> outcomes; cell_flags: column -> why that
    number is not official, or that its submitter alone vouches for it. backbones and results: by
    network, its facts, and column -> its result. controls: rows that gains are over. published:
    published entries on the same data sets.
    """

    name: str
    official: bool
    ranking: Ranking
    flags: dict[str, tuple[str, ...]]
    sources: dict[str, float | None]
    links: dict[str, str]
    published: tuple[PublishedEntry, ...]
    contenders: Contenders = field(default_factory=dict, repr=False, compare=False)
    track: Track | None = None
    backbones: dict[str, BackboneFacts] = field(default_factory=dict, repr=False, compare=False)
    cell_flags: CellFlags = field(default_factory=dict, repr=False, compare=False)
    results: ResultsByEntry = field(default_factory=dict, repr=False, compare=False)
    seeds: Mapping[str, Mapping[int, RankedEntry]] = field(default_factory=dict)
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    own_controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    controls: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()

    @cached_property
    def seed_errors(self) -> SeedErrors:
        """Return what seeds add to the overall errors of the ranked rows."""
        ranked = [entry.name for tier in self.ranking.tiers for entry in tier]
        columns = self.ranking.columns
        return SeedErrors({name: [self.contenders[name][c] for c in columns] for name in ranked})

    @property
    def pooled_spread(self) -> float | None:
        """Standard deviation between seeds that rows of one seed have; None without one."""
        pooled = self.seed_errors.pooled
        return pooled and math.sqrt(pooled.variance)

    @cached_property
    def best_on_test(self) -> dict[str, dict[str, Score]]:
        """Row or entry -> column -> second figure of a probe ranked by the held-out rule."""
        seconds = {
            name: {c: score for c, loaded in by_column.items() if (score := best_on_test(loaded))}
            for name, by_column in self.results.items()
        }
        for row, entries in self.seeds.items():
            of_seeds = [seconds[entry.name] for entry in entries.values()]
            seconds[row] = {
                column: Score(float(np.mean([s[column].mean for s in of_seeds])), math.nan, score.n)
                for column, score in of_seeds[0].items()
                if all(column in scores for scores in of_seeds)
            }
        return {name: by_column for name, by_column in seconds.items() if by_column}

    @property
    def names(self) -> list[str]:
        """The rows in order of rank."""
        return [entry.name for entry in self.ranking.entries]

    def find_row(self, name: str) -> str:
        """Return the row that contains the entry of this name; the name itself if there is none."""
        rows = (
            row for row, seeds in self.seeds.items() if name in {e.name for e in seeds.values()}
        )
        return next(rows, name)

    @property
    def warning(self) -> str:
        """That accuracies may measure the scale of features; empty if nothing suggests it."""
        return warn_of_scale(
            {
                name: {loaded.result.column: loaded.result for loaded in by_column.values()}
                for name, by_column in self.results.items()
                if by_column
            }
        )


def rank_board(folder: Path, report: Reporter = SILENT) -> tuple[BoardTable, ...]:
    """Read, check and rank a board, each track on its own.

    A table lists the entries that have any of its columns. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    return rank_tracks(board.file, board.entries(report))


@paused_collection()
def rank_tracks(file: BoardFile, entries: Sequence[BoardEntry]) -> tuple[BoardTable, ...]:
    """Rank checked entries, in the order in which they came, each track on its own."""
    rows = (
        OutcomeRow.of(entry.name, network.name, loaded)
        for entry in entries
        for network in entry.networks
        for loaded in network.cells
    )
    suspicions = find_suspicions(file, rows)
    file = complete_file(file, entries)
    tables = split_by_track(file, [[c.result for c in entry.cells] for entry in entries])
    return tuple(rank_table(file, entries, table, suspicions) for table in tables)


def rank_table(
    file: BoardFile,
    entries: Sequence[BoardEntry],
    table: TrackColumns,
    suspicions: Mapping[str, Mapping[str, Sequence[str]]],
) -> BoardTable:
    """Rank the entries over the columns of one track. suspicions: of find_suspicions."""
    labels = label_columns(table.columns)
    networks = {network.name: (entry, network) for entry in entries for network in entry.networks}
    results = {
        name: {
            labels[column]: loaded
            for loaded in network.cells
            if (column := find_ranked_column(file, table, loaded.result))
        }
        for name, (_, network) in networks.items()
    }
    chosen = {entry.name: select_seeds(entry, results) for entry in entries}
    members = {row: names for row, names in chosen.items() if names}
    contenders = {
        name: {column: extract_outcomes(loaded, True) for column, loaded in by_column.items()}
        for name, by_column in results.items()
        if by_column
    }
    excluded = dict.fromkeys(members, EXTRA)
    if not table.is_extra:
        measured = {name: network.cells for name, (_, network) in networks.items()}
        excluded = exclude_rows(members, measured, results, labels, file.episodes)
    view = BoardTable(
        name=file.title,
        official=file.official,
        track=table.track,
        ranking=Ranking((), (), ()),
        flags={
            name: (
                *list_flags(entry, table.track),
                *flag_failures(results[name]),
                *describe_suspicions(suspicions.get(name, {})),
            )
            for name, (entry, _) in networks.items()
        },
        sources={n: find_backbone(net).source_accuracy for n, (_, net) in networks.items()},
        links={n: declaration_of(entry).link for n, (entry, _) in networks.items()},
        published=select_published(table, entries),
        contenders=contenders,
        backbones={name: find_backbone(network) for name, (_, network) in networks.items()},
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
            for name, (entry, _) in networks.items()
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
    contenders = dict[str, dict[str, Outcomes]]()
    flags, links, sources = dict(view.flags), dict(view.links), dict(view.sources)
    cell_flags, seeds = dict(view.cell_flags), dict[str, dict[int, RankedEntry]]()
    for row, names in view.members.items():
        of_seeds = [view.contenders.get(name, {}) for name in names]
        shared = [c for c in columns if all(c in outcomes for outcomes in of_seeds)]
        is_pooled = row in view.pooled
        contenders[row] = {c: average_outcomes([o[c] for o in of_seeds], is_pooled) for c in shared}
        accuracies = [a for name in names if (a := view.sources[name]) is not None]
        sources[row] = float(np.mean(accuracies)) if len(accuracies) == len(names) else None
        flags[row] = unite(view.flags[name] for name in names)
        links[row] = view.links[names[0]]
        cell_flags[row] = {
            c: unite(view.cell_flags[name].get(c, ()) for name in names) for c in shared
        }
        if len(names) > 1:
            numbers = [seed_of(view.backbones[name]) for name in names]
            numbers = numbers if len(set(numbers)) == len(names) else list(range(len(names)))
            seeds[row] = {
                number: score_seed(name, outcomes, shared)
                for number, name, outcomes in zip(numbers, names, of_seeds, strict=True)
            }
    ranking = rank_entries(
        contenders, columns, excluded=excluded, averaged=group_by_dataset(columns)
    )
    return replace(
        view,
        ranking=ranking,
        flags=flags,
        links=links,
        sources=sources,
        cell_flags=cell_flags,
        contenders={**view.contenders, **contenders},
        seeds=seeds,
    )


def average_outcomes(seeds: Sequence[Outcomes], is_pooled: bool) -> Outcomes:
    """Return the outcomes of a row: those of its only seed, or the mean of several."""
    return seeds[0] if len(seeds) == 1 else Outcomes.average(seeds, is_pooled)


def group_by_dataset(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each data set."""
    datasets: dict[str, list[str]] = {}
    for column in columns:
        datasets.setdefault(ColumnId.parse(column).task.dataset, []).append(column)
    return datasets


def score_seed(name: str, outcomes: Mapping[str, Outcomes], columns: Sequence[str]) -> RankedEntry:
    """Return one seed of a row with its scores over episodes."""
    scores = {column: score(outcomes[column].values) for column in columns}
    overall = float(np.mean([s.mean for s in scores.values()])) if scores else None
    return RankedEntry(name, scores, overall=overall)


def unite(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


TrackKey = tuple[Track, bool]
"""A track, and whether it is of probes."""


def track_key(file: BoardFile, column: ColumnId, data: Data | None = None) -> TrackKey:
    """Return the track of a column on this board; heads may stand together without a version."""
    track = Track.of(column, data)
    if data is None and file.heads == "apart":
        track = track.model_copy(update={"adaptation": column.adaptation})
    return track, column.task.probe is not None


def complete_file(file: BoardFile, entries: Sequence[BoardEntry]) -> BoardFile:
    """Return the definition with what the first entries decide: columns, and rows to be pooled."""
    file = complete_columns(file, entries)
    several = tuple(entry.name for entry in entries if len(entry.seeds) > 1)
    if file.pooled or len(several) < FEWEST_POOLED:
        return file
    return file.model_copy(update={"pooled": several})


def complete_columns(file: BoardFile, entries: Sequence[BoardEntry]) -> BoardFile:
    """Return the definition with the columns of tracks that it does not name.

    The first entry of a track decides them. A board with a version names all of its columns.
    """
    if file.version is not None:
        return file
    columns, seen = list(file.columns or ()), set(file.columns or ())
    for entry in entries:
        fresh = {identify_column(cell.result) for cell in entry.cells} - seen
        if not fresh:
            continue
        tracks = {track_key(file, column.name) for column in columns}
        new = first_of_names(sorted(fresh, key=column_order))
        columns += [column for column in new if track_key(file, column.name) not in tracks]
        seen |= fresh
    named = tuple(sorted(columns, key=column_order)) or None
    return file if named == file.columns else file.model_copy(update={"columns": named})


def first_of_names(columns: Iterable[Column]) -> list[Column]:
    """Return one column of each name, the first one."""
    by_name: dict[ColumnId, Column] = {}
    for column in columns:
        by_name.setdefault(column.name, column)
    return list(by_name.values())


def split_by_track(file: BoardFile, results: Sequence[Sequence[Result]]) -> list[TrackColumns]:
    """Return the tables of a board, or one empty table.

    results: of each entry, in the order in which they came; the tables of a board whose columns are
    complete do not depend on them but for those outside of the ranking.
    """
    if file.version is not None:
        return split_versioned(file, results)
    named = list(file.columns or ())
    measured = {identify_column(result) for of_entry in results for result in of_entry}
    extra = sorted(measured - set(named), key=column_order)
    tables = [t for table in group_columns(named) for t in split_by_head(file, table)]
    tables += [TrackColumns.extra(table.track, table.columns) for table in group_columns(extra)]
    return tables or [TrackColumns(None, ())]


def group_columns(columns: Sequence[Column]) -> list[TrackColumns]:
    """Return one table per track; probes stand apart."""
    probes = [c for c in columns if c.name.task.probe]
    episodes = [column for column in columns if column not in probes]
    tables = [
        TrackColumns(track, tuple(c for c in part if c.name in names))
        for part in (episodes, probes)
        for track, names in by_track(column.name for column in part).items()
    ]
    if not (episodes and probes):
        return tables
    return [
        replace(table, track=table.track.model_copy(update={"adaptation": PROBES}))
        if table.track and table.columns[0] in probes
        else table
        for table in tables
    ]


def split_by_head(file: BoardFile, table: TrackColumns) -> list[TrackColumns]:
    """Return one table per head, if heads stand apart; kinds of probe are heads."""
    heads = dict.fromkeys(column.name.adaptation for column in table.columns)
    if table.track is None or file.heads == "together" or len(heads) < 2:
        return [table]
    return [
        TrackColumns(
            table.track.model_copy(update={"adaptation": head}),
            tuple(c for c in table.columns if c.name.adaptation == head),
        )
        for head in heads
    ]


def split_versioned(file: BoardFile, results: Sequence[Sequence[Result]]) -> list[TrackColumns]:
    """Return the tables of a board with a version that contain any result.

    A table on official data has all columns of its track, on the images of the first entry; one of
    flagged results has the columns of its first entry. All other results stand outside.
    """
    chosen: dict[Track, dict[ColumnId, Column]] = {}
    for named in file.columns or ():
        chosen.setdefault(Track.of(named.name, "official"), {})[named.name] = named
    measured: dict[Track, dict[Column, None]] = {}
    for of_entry in results:
        fresh: dict[Track, dict[ColumnId, Column]] = {}
        for result in of_entry:
            if (matched := match_column(file, result)) is not None:
                track = Track.of(matched.name, classify_data(result))
                measured.setdefault(track, {})[matched] = None
                fresh.setdefault(track, {}).setdefault(matched.name, matched)
        for track, columns in fresh.items():
            decided = chosen.setdefault(track, columns)
            undecided = {name: c for name, c in columns.items() if decided[name] in file.compared}
            decided |= undecided if track.data == "official" else {}
    tables = []
    for track, by_name in chosen.items():
        ranked = tuple(sorted(by_name.values(), key=column_order))
        extra = tuple(sorted(measured.get(track, {}).keys() - set(ranked), key=column_order))
        tables += [TrackColumns(track, ranked)] if track in measured else []
        tables += [TrackColumns.extra(track, extra)] if extra else []
    if not tables:
        track, by_name = next(iter(chosen.items()))
        tables = [TrackColumns(track, tuple(sorted(by_name.values(), key=column_order)))]
    return tables


def column_order(column: Column) -> tuple[ColumnId, str, str]:
    """Return the sort key of a column."""
    return column.name, column.spec_digest, column.fingerprint or ""


def match_column(file: BoardFile, result: Result) -> Column | None:
    """Return the column of a result, with the result's images; None if the board names none."""
    column = identify_column(result)
    if file.version is None:
        return column if column in file.compared else None
    named = file.named.get(column.name)
    if named is None or not named.has_spec_of(result):
        return None
    return column if result.flags or named.has_images_of(result) else None


def classify_data(result: Result) -> Data:
    """Return the part of a board with a version: a result with any flag is not official."""
    return "subset" if result.flags else "official"


def find_ranked_column(file: BoardFile, table: TrackColumns, result: Result) -> Column | None:
    """Return the column of a table that a result is in; None if it is in none."""
    data = table.track and table.track.data
    if data not in {None, classify_data(result)}:
        return None
    column = match_column(file, result) if data else identify_column(result)
    return column if column in table.members else None


def best_on_test(loaded: Loaded) -> Score | None:
    """Return the accuracy of a probe's best rate and epoch on the test images.

    It is None for a probe without a held-out part, whose only score it is.
    """
    result = loaded.result
    if has_second_rule(result):
        half = result.score.ci95
        return Score(result.score.mean, math.nan if half is None else half, result.score.n)
    if isinstance(result.spec, ProbeSpec) and "beside_mean" in result.details:
        half = float(result.details.get("beside_ci95", math.nan))
        return Score(float(result.details["beside_mean"]), half, result.score.n)
    return None


def find_backbone(network: Network) -> BackboneFacts:
    """Return the facts of a network, from a result that records its training if there is one."""
    backbones = [loaded.result.backbone for loaded in network.cells]
    return next((backbone for backbone in backbones if backbone.training), backbones[0])


def declaration_of(entry: BoardEntry) -> Declaration:
    """Return what the submitter declares. Raises ValidationFailed for a results folder."""
    if entry.file.declaration is None:
        raise ValidationFailed(f"{entry.entry.folder} declares nothing", fix="submit the results")
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
    sources = {name for network in networks for name in find_backbone(network).pretraining_data}
    sources |= {SOURCE} if track and track.data else set()
    published = (entry.about(datasets, sources, head) for entry in load_published())
    return tuple(entry for entry in published if entry.cells)


def label_columns(columns: tuple[Column, ...]) -> dict[Column, str]:
    """Return a distinct label per column: its name, marked by the start of its digest if needed."""
    counts = Counter(column.name for column in columns)
    marked = {column: column.name.marked(f"#{column.digest()[:6]}") for column in columns}
    return {c: str(marked[c] if counts[c.name] > 1 else c.name) for c in columns}


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
    """Return a flag if no signed badge covers this result, or if a signed one failed."""
    key = (result.backbone.identity, str(result.column))
    verdict = entry.verification.verdicts.get(key)
    return [SELF_REPORTED] if verdict is None else [FAILED] * (verdict == "failed")


def list_shared_tasks(entry: PublishedEntry, datasets: set[str]) -> list[str]:
    """Return the tasks of a published entry that are in-domain or on these data sets."""
    return [cell.task for cell in entry.cells if cell.in_domain or cell.dataset in datasets]
