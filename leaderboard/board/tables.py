"""Tables of a board: its columns split by track, its entries ranked in each table."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from fsbench.core.process import paused_collection
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import BackboneFacts, Result
from fsbench.core.specs import ProbeSpec
from fsbench.core.statistics import Score, score
from fsbench.core.tasks import ColumnId, Data, Track, by_track
from fsbench.results.table import warn_of_scale
from fsbench.results.verification import Loaded
from leaderboard.board.badges import FAILED, SELF_REPORTED
from leaderboard.board.board import Board, BoardEntry
from leaderboard.board.definition import BoardFile, Column, identify_column
from leaderboard.board.eligibility import exclude_entries, flag_failures
from leaderboard.board.published import PublishedEntry, load_published
from leaderboard.board.ranking_cache import NOT_CACHED, RankingCache
from leaderboard.board.suspicion import OutcomeRow, describe_suspicions, find_suspicions
from leaderboard.methods.runs import MethodRun, group_seeds
from leaderboard.ranking.outcomes import Outcomes, extract_outcomes, has_second_rule
from leaderboard.ranking.seeds import SeedErrors
from leaderboard.ranking.tiers import Contenders, RankedEntry, Ranking

CellFlags = Mapping[str, Mapping[str, tuple[str, ...]]]
ResultsByEntry = Mapping[str, Mapping[str, Loaded]]
SOURCE = "tinyimagenet"
"""The data set that the backbones of the source papers were pretrained on."""
PROBES = "probes"
"""Names the table of probes beside tables of episodes."""

DATA_PARTS: tuple[Data, ...] = ("official", "subset")


@dataclass(frozen=True)
class TrackColumns:
    """The columns of one ranking, all of one track; a board without columns has one, track None."""

    track: Track | None
    columns: tuple[Column, ...]

    @cached_property
    def members(self) -> frozenset[Column]:
        return frozenset(self.columns)

    def mark(self, deviating: bool) -> "TrackColumns":
        """Return the table, named by its first column if its images deviate from the main ones."""
        if not deviating or self.track is None:
            return self
        images = self.columns[0].digest()[:6]
        return replace(self, track=self.track.model_copy(update={"images": images}))


@dataclass(frozen=True)
class BoardTable:
    """The ranked rows of one track of a board, with what is shown beside them.

    A row is an entry, or the seeds of a recipe. seeds: row -> seed -> the entry, with its scores
    over episodes, for rows with several. The next ones know rows and entries. flags: why
    the numbers are not official; sources: in-domain accuracy, mean over seeds; links: code or
    paper; contenders: column -> outcomes; cell_flags: column -> why that number is not official, or
    that its submitter alone vouches for it. backbones, owners and results: by entry, its facts,
    its key or else its authors, and column -> its result. published: published entries on the same
    data sets.
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
    owners: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    cell_flags: CellFlags = field(default_factory=dict, repr=False, compare=False)
    results: ResultsByEntry = field(default_factory=dict, repr=False, compare=False)
    seeds: Mapping[str, Mapping[int, RankedEntry]] = field(default_factory=dict)

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


def rank_board(
    folder: Path, cache: Path | None = None, report: Reporter = SILENT
) -> tuple[BoardTable, ...]:
    """Read, verify and rank a board, each track on its own.

    A table lists the entries that have any of its columns. Raises ValidationFailed, UsageError.
    """
    board = Board.open(folder)
    rankings = RankingCache(folder, cache, report)
    return rank_tracks(board.file, board.entries(cache, report), rankings)


@paused_collection()
def rank_tracks(
    file: BoardFile, entries: Sequence[BoardEntry], rankings: RankingCache = NOT_CACHED
) -> tuple[BoardTable, ...]:
    """Rank verified entries, each track on its own. rankings: those of the same outcomes."""
    results = [loaded.result for entry in entries for loaded in entry.cells]
    rows = (OutcomeRow.of(entry.name, loaded) for entry in entries for loaded in entry.cells)
    suspicions = find_suspicions(file, rows)
    tables = split_by_track(file, results)
    return tuple(rank_table(file, entries, table, suspicions, rankings) for table in tables)


def rank_table(
    file: BoardFile,
    entries: Sequence[BoardEntry],
    table: TrackColumns,
    suspicions: Mapping[str, Mapping[str, Sequence[str]]],
    rankings: RankingCache,
) -> BoardTable:
    """Rank the entries over the columns of one track. suspicions: of find_suspicions."""
    labels = label_columns(table.columns)
    results = {
        entry.name: {
            labels[column]: loaded
            for loaded in entry.cells
            if (column := find_ranked_column(file, table, loaded.result))
        }
        for entry in entries
    }
    contenders = {
        name: {column: extract_outcomes(loaded, True) for column, loaded in by_column.items()}
        for name, by_column in results.items()
        if by_column or not table.columns
    }
    rows = [entry for entry in entries if entry.name in contenders]
    excluded = exclude_entries(rows, results, labels, file.episodes) if table.columns else {}
    columns = list(labels.values())
    owners = {entry.name: entry.file.key or entry.file.declaration.authors for entry in entries}
    runs = [
        MethodRun(entry.name, find_backbone(entry), contenders[entry.name], owners[entry.name])
        for entry in rows
        if entry.name not in excluded and len(results[entry.name]) == len(columns)
    ]
    trusted = {entry.name for entry in entries if entry.verification.is_trusted}
    view = BoardTable(
        name=file.title,
        official=file.official,
        track=table.track,
        ranking=Ranking((), (), ()),
        flags={
            entry.name: (
                *list_flags(entry, table.track),
                *flag_failures(results[entry.name]),
                *describe_suspicions(suspicions.get(entry.name, {})),
            )
            for entry in entries
        },
        sources={entry.name: entry.cells[0].result.backbone.source_accuracy for entry in entries},
        links={entry.name: entry.file.declaration.link for entry in entries},
        published=select_published(table, entries),
        contenders=contenders,
        backbones={entry.name: find_backbone(entry) for entry in entries},
        owners=owners,
        cell_flags={
            entry.name: {
                column: (
                    *loaded.result.flags,
                    *flag_custom_code(loaded.result),
                    *flag_targets_seen(entry),
                    *flag_unverified(entry, loaded.result),
                )
                for column, loaded in results[entry.name].items()
            }
            for entry in entries
        },
        results=results,
    )
    seeds = group_seeds(runs, columns, trusted) if columns else {}
    return rank_rows(view, columns, seeds, excluded, rankings)


def rank_rows(
    entries: BoardTable,
    columns: Sequence[str],
    seeds: Mapping[str, Sequence[MethodRun]],
    excluded: Mapping[str, str],
    rankings: RankingCache = NOT_CACHED,
) -> BoardTable:
    """Join the seeds of each recipe to a row and rank the rows.

    entries: the table of single entries; seeds: row -> its runs; excluded: entry -> reason.
    """
    means: dict[str, dict[str, Outcomes]] = {
        row: {c: Outcomes.average([run.outcomes[c] for run in runs]) for c in columns}
        for row, runs in seeds.items()
    }
    single = entries.contenders.keys() - {run.entry for runs in seeds.values() for run in runs}
    flags, links, sources = dict(entries.flags), dict(entries.links), dict(entries.sources)
    cell_flags = dict(entries.cell_flags)
    for row, runs in seeds.items():
        names = [run.entry for run in runs]
        accuracies = [a for name in names if (a := sources.get(name)) is not None]
        sources[row] = float(np.mean(accuracies)) if len(accuracies) == len(names) else None
        flags[row] = unite(flags.get(name, ()) for name in names)
        links[row] = links.get(names[0], "")
        cell_flags[row] = {c: unite(cell_flags[name].get(c, ()) for name in names) for c in columns}
    contenders = {name: o for name, o in entries.contenders.items() if name in single} | means
    return replace(
        entries,
        ranking=rankings.rank(
            entries.track.label if entries.track else "",
            contenders,
            columns,
            excluded,
            group_by_dataset(columns),
        ),
        flags=flags,
        links=links,
        sources=sources,
        cell_flags=cell_flags,
        contenders={**entries.contenders, **means},
        seeds={
            row: {run.seed: score_seed(run, columns) for run in runs} for row, runs in seeds.items()
        },
    )


def group_by_dataset(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of each data set."""
    datasets: dict[str, list[str]] = {}
    for column in columns:
        datasets.setdefault(ColumnId.parse(column).task.dataset, []).append(column)
    return datasets


def score_seed(run: MethodRun, columns: Sequence[str]) -> RankedEntry:
    """Return one seed of a row with its scores over episodes."""
    scores = {column: score(run.outcomes[column].values) for column in columns}
    return RankedEntry(run.entry, scores, overall=float(np.mean([s.mean for s in scores.values()])))


def unite(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def split_by_track(file: BoardFile, results: Sequence[Result]) -> list[TrackColumns]:
    """Return the tables that these results fill, or one empty table; the order is irrelevant.

    Without a version they hold the columns that board.json names, else all columns of the results;
    in the latter case a track is split by head if a network lacks one of its heads. Probes have
    tables of their own, and so have results on other images or episodes than most others.
    """
    if file.version is not None:
        return split_versioned(file, results)
    empty = [TrackColumns(None, ())]
    if file.columns is not None:
        return group_columns(file.columns) or empty
    columns = sorted({identify_column(result) for result in results}, key=column_order)
    tables = [
        table.mark(deviating)
        for part, deviating in split_by_images(columns, results)
        for table in group_columns(part)
    ]
    return [part for table in tables for part in split_by_head(table, results)] or empty


def split_by_images(
    columns: Iterable[Column], results: Iterable[Result]
) -> list[tuple[list[Column], bool]]:
    """Return the columns in parts with one set of images and episodes per name.

    The first part holds the column of each name that most networks have, the one that was computed
    first if several do; it is the main table. Columns of other images, seeds or settings that have
    networks in common form further parts, so that a deviating result stands apart and makes no
    other one incomplete. Returns each part with whether it deviates.
    """
    networks: dict[Column, set[str]] = defaultdict(set)
    started: dict[Column, str] = {}
    for result in results:
        column = identify_column(result)
        networks[column].add(result.backbone.identity)
        started[column] = min(
            started.get(column, result.provenance.started), result.provenance.started
        )
    remaining = sorted(
        columns, key=lambda c: (-len(networks[c]), started.get(c, ""), column_order(c))
    )
    parts: list[tuple[list[Column], bool]] = []
    while remaining:
        near = networks[remaining[0]]
        part: dict[ColumnId, Column] = {}
        # the main part takes the most common column of each name, others follow their networks
        order = sorted(remaining, key=lambda c: -len(networks[c] & near)) if parts else remaining
        for column in order:
            if not parts or networks[column] & near:
                part.setdefault(column.name, column)
        chosen = set(part.values())
        parts.append((sorted(chosen, key=column_order), bool(parts)))
        remaining = [column for column in remaining if column not in chosen]
    return parts


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


def split_by_head(table: TrackColumns, results: Iterable[Result]) -> list[TrackColumns]:
    """Return one table per head if a network lacks a head, else the table itself.

    In a common table that network would be unranked. The head that most networks have comes first;
    kinds of probe are heads.
    """
    networks_by_head: dict[str, set[str]] = defaultdict(set)
    for result in results:
        column = identify_column(result)
        if column in table.members:
            networks_by_head[column.name.adaptation].add(result.backbone.identity)
    networks = set().union(*networks_by_head.values())
    if table.track is None or all(some == networks for some in networks_by_head.values()):
        return [table]
    return [
        TrackColumns(
            table.track.model_copy(update={"adaptation": head}),
            tuple(c for c in table.columns if c.name.adaptation == head),
        )
        for head in sorted(networks_by_head, key=lambda h: (-len(networks_by_head[h]), h))
    ]


def column_order(column: Column) -> tuple[ColumnId, str, str]:
    """Return the sort key of a column."""
    return column.name, column.spec_digest, column.fingerprint or ""


def split_versioned(file: BoardFile, results: Sequence[Result]) -> list[TrackColumns]:
    """Return the tables of a board with a version that contain any result.

    A table on official data has all columns of its track, a table of flagged results only the
    columns with results. Entries on different images of a column get different columns and tables.
    """
    columns_by_name: dict[tuple[ColumnId, Data], set[Column]] = defaultdict(set)
    for result in results:
        if column := match_column(file, result):
            columns_by_name[column.name, classify_data(result)].add(column)
    used = {Track.of(name, data) for name, data in columns_by_name}
    tables: dict[Track, list[Column]] = defaultdict(list)
    for data in DATA_PARTS:
        for column in file.columns or ():
            measured = sorted(columns_by_name[column.name, data], key=column_order)
            required = [column] if data == "official" else []
            tables[Track.of(column.name, data)] += measured or required
    split = [
        (TrackColumns(track, tuple(part)).mark(deviating), track in used)
        for track, columns in tables.items()
        for part, deviating in split_by_images(columns, results)
    ]
    return [table for table, has_results in split if has_results] or [
        table for table, _ in split[:1]
    ]


def match_column(file: BoardFile, result: Result) -> Column | None:
    """Return the column of a result, with the result's images; None if the board has none."""
    column = identify_column(result)
    if file.version is None:
        return column if file.columns is None or column in file.compared else None
    named = file.named.get(column.name)
    if named is None or not named.has_spec_of(result):
        return None
    return column if result.flags or named.has_images_of(result) else None


def classify_data(result: Result) -> Data:
    """Return the part of a board with a version: a result with any flag is not official."""
    return "subset" if result.flags else "official"


def find_ranked_column(file: BoardFile, table: TrackColumns, result: Result) -> Column | None:
    """Return the column in which a table ranks a result; None if it does not rank it."""
    data = table.track and table.track.data
    if data not in {None, classify_data(result)}:
        return None
    column = match_column(file, result)
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


def find_backbone(entry: BoardEntry) -> BackboneFacts:
    """Return the backbone of an entry, from a result that records its training if there is one."""
    backbones = [loaded.result.backbone for loaded in entry.cells]
    return next((backbone for backbone in backbones if backbone.training), backbones[0])


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
    sources = {name for entry in entries for name in find_backbone(entry).pretraining_data}
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
    return [f"saw {target}" for target in entry.file.declaration.targets_seen]


def flag_unverified(entry: BoardEntry, result: Result) -> list[str]:
    """Return a flag if no signed badge covers this result, or if a signed one failed."""
    verdict = entry.verification.verdicts.get(str(result.column))
    return [SELF_REPORTED] if verdict is None else [FAILED] * (verdict == "failed")


def list_shared_tasks(entry: PublishedEntry, datasets: set[str]) -> list[str]:
    """Return the tasks of a published entry that are in-domain or on these data sets."""
    return [cell.task for cell in entry.cells if cell.in_domain or cell.dataset in datasets]
