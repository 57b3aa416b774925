"""Rules for a submission: of each result, of an entry, and of an entry among the others.

A submission is hostile input. Everything derivable is recomputed from the records, all problems are
listed at once, and nothing in it is ever executed. What one field may contain is said by the schema
(fsbench/core/schema.py); the rules of a result by itself are in fsbench/results/verification.py.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import numpy as np

from fsbench.core import __version__
from fsbench.core.errors import DataError, UnknownName
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import IN_MEMORY, Result, find_code
from fsbench.core.specs import FITTED, EpisodicSpec
from fsbench.core.tasks import ColumnId
from fsbench.results.assembly import describe_range
from fsbench.results.entry import ENTRY_FILE, Loaded, digest_outcomes, restore_results
from fsbench.results.names import ANALYSES, BADGES, safe_name
from fsbench.results.verification import Problem, RuleList, find_problems
from leaderboard.columns import assign_track, find_column
from leaderboard.entry_networks import seed_of
from leaderboard.history import HISTORY_FILE, VERIFICATIONS_FILE
from leaderboard.record import BoardFile
from leaderboard.rules.changes import read_entry_file
from leaderboard.store import CHOOSE_NAME, Board
from leaderboard.submission import Submission, recipe_key

MAX_DRAWS = 2 * 10**9
"""Work of drawing the episodes of a submission again, in random numbers."""
DRAWS_OF_EPISODE = 10_000
"""Random numbers that take as long as what an episode takes beside its own."""
AHEAD = timedelta(days=1)
"""Longest time that a clock may be ahead."""
WINDOWS_NAME = re.compile(r"(con|prn|aux|nul|(com|lpt)\d)(\..*)?", re.IGNORECASE)
"""A device of Windows, also before a suffix."""
TAKEN_NAMES = {
    *("board.json", "index.html", ENTRY_FILE, BADGES, ANALYSES),
    *(HISTORY_FILE, VERIFICATIONS_FILE),
}
"""Names that files and folders of boards and sites have."""
SHOWN = 3
"""Maximum number of names in a message."""
RESULT_RULES, ENTRY_RULES, BOARD_RULES = RuleList(), RuleList(), RuleList()
"""Of a result and of an entry on a board, and of all results of a board."""


def check_submissions(
    submissions: Sequence[Submission], board: Board, replace: bool = False
) -> list[Problem]:
    """Return every Problem of submissions; none if they may be added to the board.

    replace: whether they may take the place of entries of their names.
    """
    results = {submission.name: [c.result for c in submission.loaded] for submission in submissions}
    if board.file.version is not None:  # entries of other boards may be of other images
        names = [name for name in board.history.sort(board.names()) if name not in results]
        paths = {name: board.folder / name / ENTRY_FILE for name in names}
        others = {n: restore_results(path, read_entry_file(path)) for n, path in paths.items()}
        results = others | results
    problems = [p for submission in submissions for p in check_entry(submission, board)]
    for name in () if replace else (submission.name for submission in submissions):
        if present := board.find_name(name):
            text = f"an entry '{present}' on the board, expected a free name"
            problems.append(Problem("taken", name, text, CHOOSE_NAME))
    problems += BOARD_RULES.find_problems(board.folder, results, board.file)
    return list(dict.fromkeys(problems))


def check_entry(submission: Submission, board: Board) -> Iterator[Problem]:
    """Yield every Problem of an entry by itself, be it new or on the board."""
    yield from submission.broken
    yield from find_problems(submission.loaded)
    for loaded in submission.loaded:
        yield from RESULT_RULES.find_problems(loaded, loaded, board)
    yield from ENTRY_RULES.find_problems(submission.name, submission, board)


def check_origin(date: str, version: str) -> Iterator[str]:
    """Check that a date is not to come, and that a version of fsbench is not newer than this."""
    if datetime.fromisoformat(date) > datetime.now(UTC) + AHEAD:
        yield f"the date {date}, expected no date in the future"
    release, newest = (
        [int(number) for number in re.split(r"\D", text)[:3] if number]
        for text in (version, __version__)
    )
    if release > newest:
        yield f"fsbench {version}, expected at most {__version__}"


@RESULT_RULES.add("provenance", "set your clock, update fsbench, and evaluate again")
def check_provenance(loaded: Loaded, board: Board) -> Iterator[str]:
    """Check that this version of fsbench, or an earlier one, made the result in the past."""
    made = loaded.result.provenance
    yield from check_origin(made.started, made.fsbench)


@RESULT_RULES.add("incomplete", "fsbench results merge PART PART -o OUT")
def check_completeness(loaded: Loaded, board: Board) -> Iterator[str]:
    """Check that episodes are 0..n-1: shards are merged before they are submitted."""
    if isinstance(loaded.records, EpisodeRecords) and "shard" in loaded.result.flags:
        yield f"{describe_range(np.sort(loaded.records.index))}, expected 0 to n - 1"


@RESULT_RULES.add(
    "own-code", "publish weights that need no code (hf-hub, a checkpoint), or choose a free board"
)
def check_own_code(loaded: Loaded, board: Board) -> Iterator[str]:
    """Refuse code of the submitter and of plug-ins, which no reader should run, if official."""
    facts = loaded.result.backbone
    if board.file.official and (facts.runs_code or facts.source not in list_sources()):
        yield f"{facts.ref}, expected a reference that needs no code"


def list_sources() -> set[str]:
    """Return the sources of backbones that fsbench brings, as results name them."""
    paths = (files("fsbench") / "backbones" / "sources").iterdir()
    return {path.name.removesuffix(".py").replace("_", "-") for path in paths}


@RESULT_RULES.add("code-hash", "evaluate again: fsbench records it for py: references alone")
def check_code_hash(loaded: Loaded, board: Board) -> Iterator[str]:
    """Check that code of the submitter has a sha-256 unless it is in memory, and no other has."""
    facts = loaded.result.backbone
    has_file = facts.runs_code and facts.source != IN_MEMORY
    if has_file != (facts.code is not None):
        expected = "the sha-256 of its code" if has_file else "no sha-256 of code"
        yield f"{find_code([facts.ref, facts.architecture]) or facts.ref}, expected {expected}"


@RESULT_RULES.add("flags")
def check_image_counts(loaded: Loaded, board: Board) -> Iterator[str]:
    """Check the flags: `subset` for unofficial counts, `custom` for data sets of the user."""
    from fsbench.data.catalog import TARGETS, all_facts

    data = loaded.result.dataset
    if data.name not in TARGETS.suite_names():
        if "custom" not in data.flags:
            yield f"data set {data.name} unflagged, expected the flag custom"
    elif data.pool == "full" and not {"subset", "custom"} & set(data.flags):
        facts = all_facts(plugins=False)[data.name]
        if not facts.complete(dict(zip(data.class_ids, data.class_counts, strict=True))):
            expected = f"{facts.n_images} official images, or the flag subset"
            yield f"{sum(data.class_counts)} images and no flag, expected {expected}"


@RESULT_RULES.add("plugin", "evaluate with a head of `fsbench ls heads` that comes from fsbench")
def check_plugins(loaded: Loaded, board: Board) -> Iterator[str]:
    """Refuse heads of plug-ins: anyone must be able to read an entry, as one with a user's file."""
    head = loaded.result.task.head
    if head not in {None, *FITTED.suite_names(), *loaded.result.custom_code}:
        yield f"head {head}, expected a head of fsbench"


@RESULT_RULES.add("column", "evaluate with the board's settings and data")
def check_columns(loaded: Loaded, board: Board) -> Iterator[str]:
    """Check that results named like a column of the board have its spec and its images."""
    result, column = loaded.result, board.file.named.get(loaded.result.column)
    matching = find_column(board.file, result)
    if column is None or matching == column or (matching and board.file.version):
        return
    what, actual, expected = "spec", result.spec_digest, column.spec_digest
    if column.has_spec_of(result):
        what, actual = "images", result.dataset.identity
        expected = column.fingerprint or column.images_hash or f"{column.images} official ones"
    yield f"other {what} than the board's: {actual}, expected {expected}"


@ENTRY_RULES.add("name", "use letters, digits and . _ + - = @, and neither . nor - at the start")
def check_safe_names(submission: Submission, board: Board) -> Iterator[str]:
    """Check that names are path components on every system and unambiguous to readers."""
    for name in sorted({submission.name, *(c.result.dataset.name for c in submission.loaded)}):
        if name != safe_name(name) or not name.isascii():
            yield f"{name!a}, expected {safe_name(name)!a}"
        if name.casefold() in TAKEN_NAMES or WINDOWS_NAME.fullmatch(name):
            yield f"{name!r}, expected a name that no file of a board and no device of Windows has"


@ENTRY_RULES.add("size", "submit fewer tasks at a time")
def check_draws(submission: Submission, board: Board) -> Iterator[str]:
    """Check that the episodes can be drawn again in little time."""
    if (draws := count_draws(submission)) > MAX_DRAWS:
        yield f"{draws} draws (episodes times images of classes), expected at most {MAX_DRAWS}"


def count_draws(submission: Submission) -> int:
    """Return an upper bound of the random numbers that draw all episodes; equal ones count once."""
    draws: dict[object, int] = {}
    for loaded in submission.loaded:
        spec, data, records = loaded.result.spec, loaded.result.dataset, loaded.records
        if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
            largest = sorted(data.class_counts, reverse=True)[: spec.episode.n_way]
            key = (spec.episode, data.name, data.class_ids, data.class_counts, data.groups)
            images = DRAWS_OF_EPISODE + len(data.class_counts) + sum(largest)
            draws[key] = max(len(records.index) * images, draws.get(key, 0))
    return sum(draws.values())


@ENTRY_RULES.add("manifest")
def check_manifests(submission: Submission, board: Board) -> Iterator[str]:
    """Check that manifest and dense totals equal those drawn from spec and class counts."""
    for loaded in submission.loaded if count_draws(submission) <= MAX_DRAWS else ():
        records, spec = loaded.records, loaded.result.spec
        if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
            for text in check_episodes(loaded.result, records, spec):
                yield f"{loaded.result.column}: {text}"


def check_episodes(result: Result, records: EpisodeRecords, spec: EpisodicSpec) -> Iterator[str]:
    from fsbench.data.episodes import draw_manifest

    data, index = result.dataset, records.index
    counts = dict(zip(data.class_ids, data.class_counts, strict=True))
    try:
        episodes = draw_manifest(spec.episode, data.name, counts, data.groups, index[index >= 0])
    except DataError as error:
        yield error.message
        return
    if episodes.hash != result.manifest_hash:
        yield f"manifest {result.manifest_hash}, expected {episodes.hash}"
    if records.dense_total is not None and (index >= 0).all():
        drawn = episodes.class_ids[np.searchsorted(episodes.numbers, index)]
        sizes = np.vectorize(counts.__getitem__, otypes=[np.int64])(drawn)
        most = sizes - spec.episode.k_shot
        least = most if spec.episode.track == "classic" else spec.episode.n_query
        if not ((records.dense_total >= least) & (records.dense_total <= most)).all():
            yield "other dense totals than the classes give, expected all images but the support"


@ENTRY_RULES.add("backbone", "evaluate every task with one backbone, of one run")
def check_networks(submission: Submission, board: Board) -> Iterator[str]:
    """Check that all results of a network have one record of it."""
    for network in submission.networks:
        for other in (loaded.result.backbone for loaded in network.loaded):
            if names := [name for name, value in other if value != getattr(network.facts, name)]:
                yield f"results of one network with other {', '.join(names)}"


@ENTRY_RULES.add("duplicate", "keep the result that belongs on the board")
def check_duplicates(submission: Submission, board: Board) -> Iterator[str]:
    """Check that a network has one result per column."""
    for network in submission.networks:
        for column, count in sorted(Counter(c.result.column for c in network.loaded).items()):
            if count > 1:
                yield f"{count} results of {column}, expected one"


@ENTRY_RULES.add("seeds", "submit other recipes as entries of their own, and one run per seed")
def check_recipe(submission: Submission, board: Board) -> Iterator[str]:
    """Check that the networks of an entry but its controls are seeds of one recipe."""
    facts = [network.facts for network in submission.networks if not network.is_control]
    if submission.loaded and not facts:
        yield "no network but controls, expected one or more"
    if len({recipe_key(network) for network in facts}) > 1:
        yield "networks of several recipes, expected one recipe"
    for seed, count in sorted(Counter(map(seed_of, facts)).items()):
        if count > 1:
            yield f"{count} networks of seed {seed}, expected one"


@ENTRY_RULES.add("seeds", "evaluate the missing tasks; seeds of one table have the same columns")
def check_seed_columns(submission: Submission, board: Board) -> Iterator[str]:
    """Check that the seeds have the same columns of a table, so that no bad one is left out."""
    tables: dict[object, dict[int, set[ColumnId]]] = defaultdict(lambda: defaultdict(set))
    for network in (network for network in submission.networks if not network.is_control):
        for column in (loaded.result.column for loaded in network.loaded):
            tables[assign_track(board.file, column)][network.seed].add(column)
    for table in tables.values():
        for seed, columns in sorted(table.items()):
            if missing := sorted(set().union(*table.values()) - columns):
                listed = ", ".join(map(str, missing[:SHOWN]))
                yield f"seed {seed} lacks {listed}, expected the columns of the others"


@ENTRY_RULES.add("column", "evaluate columns of the board (fsbench ls boards --json)")
def check_any_column(submission: Submission, board: Board) -> Iterator[str]:
    """Check that a result belongs to a column of the board; others are left out."""
    if submission.left_out and not submission.loaded:
        names = ", ".join(str(column.name) for column in (board.file.columns or ())[:SHOWN])
        listed = ", ".join(submission.left_out[:SHOWN])
        yield f"{listed}: no column of {board.file.title}, expected columns such as {names}"


@ENTRY_RULES.add("undeclared", "add it to targets_seen in the declaration")
def check_undeclared(submission: Submission, board: Board) -> Iterator[str]:
    """Check that targets seen in pretraining are declared."""
    trained = {*submission.declaration.pretraining_data}
    trained.update(*(one.result.backbone.pretraining_data for one in submission.loaded))
    undeclared = resolve_datasets(trained) - resolve_datasets(submission.declaration.targets_seen)
    for target in sorted(undeclared & list_targets(submission)):
        yield f"trained on {target}, expected it declared"


@ENTRY_RULES.add("target-seen", "leave the results of this target out, or choose another board")
def check_targets_seen(submission: Submission, board: Board) -> Iterator[str]:
    """Refuse targets seen in pretraining on official boards."""
    declared = resolve_datasets(submission.declaration.targets_seen)
    for target in sorted(declared & list_targets(submission)) if board.file.official else ():
        yield f"{target}, expected targets unseen in pretraining"


def list_targets(submission: Submission) -> set[str]:
    return resolve_datasets(one.result.dataset.name for one in submission.loaded)


def resolve_datasets(names: Iterable[str]) -> set[str]:
    """Return the data sets of names or aliases in any spelling; unknown ones in lower case."""
    from fsbench.data.catalog import resolve_alias

    datasets = set()
    for name in names:
        try:
            datasets.add(resolve_alias(name, plugins=False))
        except UnknownName:
            datasets.add(name.casefold())
    return datasets


@ENTRY_RULES.add("removed", "ask a maintainer of the board")
def check_removed(submission: Submission, board: Board) -> Iterator[str]:
    """Check that a maintainer has not removed these outcomes."""
    if submission.loaded and (removed := board.history.removed):
        digest = digest_outcomes([(one.result, one.records) for one in submission.loaded])
        if event := removed.get(digest):
            yield f"a maintainer removed these outcomes as '{event.entry}': {event.reason}"


@BOARD_RULES.add("images", "evaluate the same copy of the data: compare with fsbench data verify")
def check_images(results: Mapping[str, Sequence[Result]], file: BoardFile) -> Iterator[str]:
    """Check that results of one data set are of the same images.

    results: of each entry, in the order in which they came; the first one of the same images
    decides what the others must have.
    """
    first: dict[tuple[str, ...], tuple[str, object]] = {}
    problems: dict[str, None] = {}
    for name, of_entry in results.items():
        for result in of_entry:
            for scope, facts in scope_images(name, result, file).items():
                other, expected = first.setdefault(scope, (name, facts))
                if facts != expected:
                    names = " and ".join(dict.fromkeys((name, other)))
                    problems[f"{names}: {scope[-1]} of {result.dataset.name}"] = None
    yield from problems


def scope_images(name: str, result: Result, file: BoardFile) -> dict[tuple[str, ...], object]:
    """Return what other results must have in common with one: scope -> facts of its images.

    A scope ends in what is wrong where facts differ. A fingerprint has one count of each class. The
    results of an entry agree on images and groups. On a board with a version entries do so as well,
    as pairing needs, but where it names the ids of the images: no entry can exclude others there by
    a wrong fingerprint.
    """
    data = result.dataset
    counts = (data.class_ids, data.class_counts, data.images_hash)
    facts: dict[tuple[str, ...], object] = {
        (data.name, data.fingerprint, "equal fingerprints with other class counts"): counts,
        (name, data.name, data.pool, "several copies in one entry"): data.fingerprint,
    }
    if data.groups is not None:
        facts[name, data.name, data.pool, "several groupings in one entry"] = data.groups
    column = file.named.get(result.column)
    is_named = column is not None and column.images_hash is not None
    if file.version is not None and not result.flags and not is_named:
        track = "classic" if data.groups is None else "disjoint"
        facts[data.name, data.pool, track, "other images"] = data.identity
    return facts
