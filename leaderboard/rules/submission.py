"""Rules that a submission must satisfy before it is added to a board: RULES, in order.

A submission is hostile input. Everything derivable is recomputed from the records, all problems are
listed at once, and nothing in it is ever executed. The rules for single results are those of
fsbench/results/verification.py.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from unicodedata import category

import numpy as np

from fsbench.core import __version__
from fsbench.core.errors import DataError
from fsbench.core.io import MAX_NUMBER
from fsbench.core.records import EpisodeRecords, columns
from fsbench.core.schema import OF_ITS_MACHINE, DatasetRecord, Result
from fsbench.core.specs import FITTED, EpisodicSpec, FeatureSpec, Frozen
from fsbench.core.tasks import ColumnId
from fsbench.results import verification
from fsbench.results.assembly import SAME_BACKBONE, describe_gaps, key_of
from fsbench.results.entry import (
    ENTRY_FILE,
    Loaded,
    digest_outcomes,
    restore_results,
)
from fsbench.results.names import ANALYSES, BADGES, safe_name
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import AGAIN, Problem
from leaderboard.columns import assign_track, match_column
from leaderboard.history import HISTORY_FILE, VERIFICATIONS_FILE
from leaderboard.intake.submission import Submission, recipe_key, resolve_datasets
from leaderboard.record import find_differing_keys
from leaderboard.rules.changes import read_entry_file
from leaderboard.store import Board, seed_of

OUTCOMES = ("correct", "last", "best")
"""Names of the arrays of single outcomes in all kinds of records."""

MAX_TASKS = 1000
MAX_EPISODES = 10_000
MAX_IMAGES = 20_000_000
MAX_DRAWS = 2 * 10**9
"""Episodes times images of their classes over all results: what recomputing the draws costs."""
MAX_TEXT = 4000
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters that Python prints and that show nothing: what Unicode lets a reader ignore
(Default_Ignorable_Code_Point), and braille without a dot."""
MAX_MARKS = 4
"""Combining marks in a row; more of them cover other lines."""
FUTURE = timedelta(days=1)
"""Longest time that a clock may be ahead."""
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
"""Earliest date of a result and of a submission; fsbench is younger."""
WINDOWS_NAMES = {
    *("con", "prn", "aux", "nul"),
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}
"""Names of devices on Windows, also before a suffix."""
TAKEN_NAMES = {
    *("board.json", "index.html", ENTRY_FILE, BADGES, ANALYSES),
    *(HISTORY_FILE, VERIFICATIONS_FILE),
}
"""Names that files and folders of boards and sites have."""
VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[A-Za-z0-9.]+)?")
SHOWN = 3
"""Maximum number of names in a message."""
Finding = Problem | tuple[object, ...]


@dataclass(frozen=True)
class Rule:
    """A rule that a submission must satisfy before it enters a board.

    check: yields what was found and what was expected, with a fix where it is not the rule's, or a
    whole Problem; of_results: whether it checks each result, else the submission.
    """

    name: str
    fix: str
    of_results: bool
    check: Callable[[Any, Board], Iterator[Finding]]

    def find_problems(self, submission: Submission, board: Board) -> Iterator[Problem]:
        """Yield a Problem wherever the rule is broken."""
        for part in submission.cells if self.of_results else (submission,):
            for finding in self.check(part, board):
                if isinstance(finding, Problem):
                    yield finding
                else:
                    actual, expected, fix = (*finding, self.fix)[:3]
                    where = part.where if isinstance(part, Loaded) else part.name
                    yield Problem.contrast(self.name, where, actual, expected, str(fix))


Check = TypeVar("Check", bound=Callable[..., Iterator[Finding]])
RULES: list[Rule] = []


def rule(name: str, fix: str = AGAIN, *, of_results: bool = False) -> Callable[[Check], Check]:
    """Return a decorator that makes a rule of a function."""

    def add(check: Check) -> Check:
        RULES.append(Rule(name, fix, of_results, check))
        return check

    return add


def check_submission(submission: Submission, board: Board, replace: bool = False) -> list[Problem]:
    """Return every Problem of a submission; none if it may be added to the board.

    replace: whether it may take the place of an entry of its name.
    """
    rules = [rule for rule in RULES if not (replace and rule.check is check_name_free)]
    return [problem for rule in rules for problem in rule.find_problems(submission, board)]


@rule("results")
def check_readable(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that every file is a result of a valid schema, and that there is one."""
    yield from submission.broken
    if not 0 < len(submission.cells) <= MAX_TASKS:
        yield len(submission.cells), f"1 to {MAX_TASKS} results"


@rule("result")
def check_results(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check the rules for reading of each result: hashes, means, flags, finite numbers."""
    yield from verification.find_problems(submission.cells)


@rule("name")
def check_safe_names(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that names are path components on every system and unambiguous to readers."""
    names = {submission.name, *(c.result.dataset.name for c in submission.cells)}
    for name in sorted(names):
        if name != safe_name(name) or not name.isascii():
            fix = "use letters, digits and . _ + - = @, not starting with a dot or dash"
            yield repr(name), repr(safe_name(name)), fix
        if name.casefold() in TAKEN_NAMES or name.casefold().partition(".")[0] in WINDOWS_NAMES:
            expected = "a name that no file of a board and no device of Windows has"
            yield repr(name), expected, "choose another name"


@rule("text")
def check_texts(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that texts are short and printable."""
    yield from find_bad_text(submission.name, submission.declaration)
    for loaded in submission.cells:
        yield from find_bad_text(loaded.where, loaded.result)


def find_bad_text(where: str, record: Frozen) -> Iterator[Problem]:
    """Yield a Problem for the first text of a record that is too long or not printable.

    And one for a number that no measurement gives.

    Not printable are the Unicode categories of control and direction characters, of separators but
    the space, and of code points without a meaning; many combining marks in a row are refused too,
    and spaces at the ends.
    """
    for text in iterate_values(record.model_dump(mode="json")):
        if isinstance(text, int | float):
            if abs(text) > MAX_NUMBER:
                yield Problem("number", where, f"a number is larger than {MAX_NUMBER:g}", AGAIN)
                break
            continue
        marks = "".join("m" if category(c) in {"Mn", "Me"} else " " for c in text)
        is_shown = text.isprintable() and text == text.strip() and not INVISIBLE.search(text)
        if not is_shown or len(text) > MAX_TEXT or "m" * (MAX_MARKS + 1) in marks:
            fix = "remove invisible characters, marks and spaces at the ends, and shorten the text"
            expected = f"printable text of at most {MAX_TEXT} characters"
            yield Problem.contrast("text", where, ascii(text[:60]), expected, fix)
            break


@rule("provenance", of_results=True)
def check_provenance(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Check that dates and versions are such that fsbench can have written them."""
    made, where = loaded.result.provenance, loaded.where
    yield from check_date_text(where, "started", made.started)
    versions = {"fsbench": made.fsbench, "python": made.python, **made.packages, **made.plugins}
    for name, version in versions.items():
        yield from check_version_text(where, name, version)


def check_date_text(where: str, name: str, date: str) -> Iterator[Problem]:
    """Yield a Problem unless a text is a date with time and zone, from FIRST until now."""
    stated = f"{name} {date[:60]!a}"
    try:
        parsed = datetime.fromisoformat(date)
        ahead, before = parsed - datetime.now(UTC), FIRST - parsed
    except (ValueError, TypeError, OverflowError):
        yield Problem.contrast("date", where, stated, "a date, ISO 8601, with zone", AGAIN)
        return
    fix = "set the clock of your machine, and submit again"
    if ahead > FUTURE:
        yield Problem.contrast("date", where, stated, "no date in the future", fix)
    if before > timedelta(0):
        yield Problem.contrast("date", where, stated, f"no date before {FIRST:%Y-%m-%d}", fix)


def check_version_text(where: str, name: str, version: str) -> Iterator[Problem]:
    """Yield a Problem unless a text is a version of a Python package; of fsbench, one there is."""
    stated = f"{name[:60]} {version[:60]!a}"
    if len(version) > 100 or not VERSION.fullmatch(version):
        yield Problem.contrast("version", where, stated, "a version such as 1.2.3", AGAIN)
    elif name == "fsbench" and read_release(version) > read_release(__version__):
        fix = "update fsbench, or evaluate again with a released version"
        yield Problem.contrast("version", where, stated, f"at most {__version__}", fix)


def read_release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, e.g. (1, 2) for 1.2.0rc1."""
    numbers = [int(n) for n in re.match(r"[\d.]+", version)[0].split(".")]  # type: ignore[index]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def iterate_values(value: Any) -> Iterator[str | int | float]:
    """Yield all texts and numbers inside nested records."""
    if isinstance(value, str | int | float):
        yield value
    elif isinstance(value, dict):
        yield from iterate_values([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from iterate_values(item)


@rule("manifest")
def check_manifests(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that manifest and class ids equal those recomputed from spec and class counts."""
    draws = count_draws(submission)
    if draws > MAX_DRAWS:
        actual = f"{draws} draws (episodes times images of their classes)"
        expected, fix = f"at most {MAX_DRAWS}", "submit fewer tasks at a time"
        yield Problem.contrast("size", submission.name, actual, expected, fix)
        return
    for loaded in submission.cells:
        records, spec = loaded.records, loaded.result.spec
        if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
            yield from check_episodes(loaded, records, spec)


def count_draws(submission: Submission) -> int:
    """Return an upper bound of the random numbers that draw all episodes; equal ones count once."""
    draws: dict[object, int] = {}
    for loaded in submission.cells:
        spec, data, records = loaded.result.spec, loaded.result.dataset, loaded.records
        if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
            largest = sorted(data.class_counts, reverse=True)[: spec.episode.n_way]
            key = (spec.episode, data.name, data.class_ids, data.class_counts, data.groups)
            size = len(records.index) * (len(data.class_counts) + sum(max(n, 0) for n in largest))
            draws[key] = max(size, draws.get(key, 0))
    return sum(draws.values())


def check_episodes(
    loaded: Loaded, records: EpisodeRecords, spec: EpisodicSpec
) -> Iterator[Problem]:
    from fsbench.data.episodes import draw_manifest

    data, index, where = loaded.result.dataset, records.index, loaded.where
    images = max(sum(data.class_counts), *data.class_ids, 0)  # ids number the classes of images
    if len(index) > MAX_EPISODES or images > MAX_IMAGES:
        size = f"{len(index)} episodes over {images} images"
        expected = f"<= {MAX_EPISODES} and <= {MAX_IMAGES}"
        yield Problem.contrast("size", where, size, expected, "submit less")
        return
    if len(data.class_ids) != len(data.class_counts) or min(data.class_ids, default=0) < 0:
        return  # results/verification.py reports it
    try:
        counts = dict(zip(data.class_ids, data.class_counts, strict=True))
        episodes = draw_manifest(spec.episode, data.name, counts, data.groups, index[index >= 0])
    except DataError as error:
        expected = "classes that an episode can be drawn from"
        yield Problem.contrast("manifest", where, error.message, expected)
        return
    if episodes.hash != loaded.result.manifest_hash:
        yield Problem.contrast("manifest", where, loaded.result.manifest_hash, episodes.hash)
    if records.dense_total is not None and (index >= 0).all():
        drawn = episodes.class_ids[np.searchsorted(episodes.numbers, index)]
        sizes = np.vectorize(counts.__getitem__, otypes=[np.int64])(drawn)
        most = sizes - spec.episode.k_shot
        least = most if spec.episode.track == "classic" else spec.episode.n_query
        if not ((records.dense_total >= least) & (records.dense_total <= most)).all():
            actual, expected = "other totals than the classes give", "all images but the support"
            yield Problem.contrast("dense", where, actual, expected)


@rule("incomplete", "fsbench results merge PART PART -o OUT", of_results=True)
def check_completeness(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Check that episodes are 0..n-1: shards are merged before they are submitted."""
    if isinstance(loaded.records, EpisodeRecords) and "shard" in loaded.result.flags:
        yield f"episodes {describe_gaps(np.sort(loaded.records.index))} missing", "no gap"


@rule("duplicate")
def check_duplicates(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that a network has one result per column, and that no records occur twice."""
    columns = Counter(
        (loaded.result.backbone.identity, loaded.result.column) for loaded in submission.cells
    )
    for (_, column), count in sorted(columns.items()):
        if count > 1:
            fix = "keep the result that belongs on the board"
            yield f"{count} results of {column}", "one", fix
    digests: dict[str, list[Loaded]] = defaultdict(list)
    for loaded in submission.cells:
        if not has_equal_outcomes(loaded):
            digests[digest_records(loaded.records)].append(loaded)
    for repeats in digests.values():
        if len(repeats) > 1:
            where = ", ".join(str(loaded.result.column) for loaded in repeats[:SHOWN])
            yield f"equal outcomes of {where}", "its own"


def has_equal_outcomes(loaded: Loaded) -> bool:
    """Return whether all queries are right, or all wrong, or all episodes collapsed.

    Such records may be equal by chance, e.g. those of two tasks that a model solves without error.
    """
    records = loaded.records
    if isinstance(records, EpisodeRecords) and records.collapsed.all():
        return True
    outcomes = [values for name, values in columns(records).items() if name in OUTCOMES]
    return all(values.all() for values in outcomes) or not any(values.any() for values in outcomes)


@rule("backbone")
def check_same_backbone(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that results of a network agree on it, and seeds on how features are taken.

    Costs of the training may differ: the run may have been repeated on another machine.
    """
    for first, *others in submission.by_network.values():
        for loaded in others:
            yield from compare_backbones(loaded, first, SAME_BACKBONE)
            training, expected = (x.result.backbone.training for x in (loaded, first))
            if training and expected:
                differing = find_differing_keys(training.model_dump(), expected.model_dump())
                for name in sorted({*differing} - OF_ITS_MACHINE):
                    actual, fix = f"another {name}", "evaluate every task with one run"
                    yield Problem.contrast(
                        "training", loaded.where, actual, "that of the others", fix
                    )
    seeds = list_seeds(submission)
    for results in seeds[1:]:
        yield from compare_backbones(results[0], seeds[0][0], SAME_BACKBONE[1:])


def list_seeds(submission: Submission) -> list[list[Loaded]]:
    """Return the results of each network that is no control."""
    networks = submission.by_network.items()
    return [results for identity, results in networks if identity not in submission.controls]


def compare_backbones(loaded: Loaded, other: Loaded, names: Sequence[str]) -> Iterator[Problem]:
    """Yield a Problem for each of these facts in which two results differ."""
    for name in names:
        actual, expected = (getattr(x.result.backbone, name) for x in (loaded, other))
        if actual != expected:
            if isinstance(actual, FeatureSpec):
                actual, expected = (", ".join(x.words) or "native" for x in (actual, expected))
            fix = "evaluate every task with one backbone"
            yield Problem.contrast("backbone", loaded.where, f"{name} {actual}", expected, fix)


@rule("seeds")
def check_seeds(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that the networks of an entry are seeds of one recipe, over the same columns.

    Of each table every seed has the same columns, so that none is left out where it is bad.
    """
    seeds = list_seeds(submission)
    if submission.cells and not seeds:
        yield "no network but controls", "one or more"
    if len(seeds) < 2:
        return
    if len({recipe_key(results[0].result.backbone) for results in seeds}) > 1:
        fix = "submit other recipes as entries of their own"
        yield "networks of several recipes", "one recipe", fix
        return
    numbers = Counter(seed_of(results[0].result.backbone) for results in seeds)
    for number, count in sorted(numbers.items()):
        if count > 1:
            fix = "keep the run that belongs on the board"
            yield f"{count} networks of seed {number}", "one", fix
    tables: dict[object, dict[int, set[ColumnId]]] = defaultdict(lambda: defaultdict(set))
    for result in (loaded.result for results in seeds for loaded in results):
        seed = seed_of(result.backbone)
        tables[assign_track(board.file, result.column)][seed].add(result.column)
    for by_seed in tables.values():
        every = set().union(*by_seed.values())
        for seed, of_seed in sorted(by_seed.items()):
            if missing := sorted(every - of_seed):
                fix = "evaluate the missing tasks; seeds of one table have the same columns"
                actual = f"seed {seed} lacks {', '.join(map(str, missing[:SHOWN]))}"
                yield actual, "the columns of the others", fix


@rule("images")
def check_same_images(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that results of one data set and pool are of the same images and groups."""
    first: dict[tuple[str, str], DatasetRecord] = {}
    groups: dict[tuple[str, str], str] = {}
    for loaded in submission.cells:
        data, key = loaded.result.dataset, (loaded.result.dataset.name, loaded.result.dataset.pool)
        images = data.model_copy(update={"groups": None, "test_counts": ()})
        expected = first.setdefault(key, images)
        same = data.groups is None or groups.setdefault(key, data.groups) == data.groups
        if images != expected or not same:
            fix, where = "evaluate all tasks of a data set on the same copy", loaded.where
            yield Problem.contrast("images", where, data.identity, expected.fingerprint, fix)


@rule(
    "py-reference",
    "publish the weights (hf-hub, a checkpoint file) and evaluate those",
    of_results=True,
)
def check_references(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Refuse `py:` backbones: code of the submitter, which no reader should run."""
    if loaded.result.backbone.runs_code:
        yield loaded.result.backbone.ref, "a reference that needs no code"


@rule("flags", of_results=True)
def check_image_counts(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Check the flags: `subset` for unofficial counts, `custom` for data sets of the user."""
    from fsbench.data.catalog import TARGETS, all_facts

    data = loaded.result.dataset
    if data.name not in TARGETS.suite_names():
        if "custom" not in data.flags:
            yield f"data set {data.name} unflagged", "the flag custom"
    elif data.pool == "full" and not {"subset", "custom"} & set(data.flags):
        facts = all_facts(plugins=False)[data.name]
        if not facts.complete(dict(zip(data.class_ids, data.class_counts, strict=False))):
            expected = f"{facts.n_images} official images, or the flag subset"
            yield f"{sum(data.class_counts)} images and no flag", expected


@rule(
    "plugin", "evaluate with a head of `fsbench ls heads` that comes from fsbench", of_results=True
)
def check_plugins(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Refuse heads of plug-ins: anyone must be able to read and verify an entry.

    A head of a user's file can be read without it, so boards that are not official show it.
    """
    head = loaded.result.task.head
    custom = not board.file.official and head in loaded.result.custom_code
    if head is not None and head not in FITTED.suite_names() and not custom:
        yield f"head {head}", "a head of fsbench"


@rule(
    "flagged",
    "evaluate all episodes on the official data, or choose another board",
    of_results=True,
)
def check_unflagged(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Check that results for an official board are complete and on official data.

    A board with a version has tables for flagged results, so it accepts them.
    """
    if board.file.official and board.file.version is None and loaded.result.flags:
        yield ", ".join(loaded.result.flags), "no flag"


@rule("column", "evaluate with the board's settings and data", of_results=True)
def check_columns(loaded: Loaded, board: Board) -> Iterator[Finding]:
    """Check that results named like a column of the board have its spec and its images."""
    result, column = loaded.result, board.file.named.get(loaded.result.column)
    if column is None or match_column(board.file, result) is not None:
        return
    what, actual, expected = "spec", result.spec_digest, column.spec_digest
    if column.has_spec_of(result):
        what, actual = "images", result.dataset.identity
        expected = column.fingerprint or column.images_hash or f"{column.images} official ones"
    yield f"other {what} than the board's: {actual}", expected


@rule(
    "column",
    "evaluate columns of the board (fsbench leaderboard boards), or choose another board",
)
def check_any_column(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that a result belongs to a column of the board; others are left out."""
    if submission.left_out and not submission.cells:
        names = ", ".join(str(column.name) for column in (board.file.columns or ())[:SHOWN])
        reason = f"{', '.join(submission.left_out[:SHOWN])}: no column of {board.file.title}"
        yield reason, f"columns such as {names}"


@rule("images")
def check_image_copies(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that all entries of a board with a version are of the same images, as pairing needs.

    If the hash of the official images is not published, the first entry decides; where the board
    names the ids of the images, no entry can exclude others by a wrong fingerprint.
    """
    if board.file.version is None:
        return
    unflagged: dict[tuple[str, str, bool], Loaded] = {}
    for loaded in submission.cells:
        data = loaded.result.dataset
        column = board.file.named.get(loaded.result.column)
        if not loaded.result.flags and (column is None or column.images_hash is None):
            unflagged.setdefault((data.name, data.pool, data.groups is None), loaded)
    for loaded in unflagged.values():
        actual, other = loaded.result.dataset.identity, find_same_task(board, loaded, submission)
        if other is not None and other.dataset.identity != actual:
            fix = "evaluate the same copy of the data: compare with fsbench data verify"
            expected = f"{other.dataset.identity}, as of the entries on the board"
            yield Problem.contrast("images", loaded.where, actual, expected, fix)


def find_same_task(board: Board, loaded: Loaded, submission: Submission) -> Result | None:
    """Return the same task's result without flags of the first other entry that has one."""
    for name in board.history.sort(board.names()):
        if name.casefold() != submission.name.casefold():
            path = board.folder / name / ENTRY_FILE
            for result in restore_results(path, read_entry_file(path)):
                if key_of(result) == key_of(loaded.result) and not result.flags:
                    return result
    return None


@rule("undeclared")
def check_undeclared(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that targets seen in pretraining are declared."""
    trained = {*submission.declaration.pretraining_data}
    trained.update(*(cell.result.backbone.pretraining_data for cell in submission.cells))
    undeclared = resolve_datasets(trained) - resolve_datasets(submission.declaration.targets_seen)
    for target in sorted(undeclared & list_targets(submission)):
        fix = f"add {target} to targets_seen in the declaration"
        yield f"trained on {target}", "it declared", fix


@rule("target-seen", "leave the results of this target out, or choose another board")
def check_targets_seen(submission: Submission, board: Board) -> Iterator[Finding]:
    """Refuse targets seen in pretraining on official boards."""
    declared = resolve_datasets(submission.declaration.targets_seen)
    for target in sorted(declared & list_targets(submission)) if board.file.official else ():
        yield target, "targets unseen in pretraining"


def list_targets(submission: Submission) -> set[str]:
    return resolve_datasets(cell.result.dataset.name for cell in submission.cells)


@rule("removed")
def check_removed(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that a maintainer has not removed these outcomes."""
    removed = board.history.removed
    if not (removed and submission.cells):
        return
    digest = digest_outcomes([(cell.result, cell.records) for cell in submission.cells])
    if event := removed.get(digest):
        fix = "ask a maintainer of the board"
        text = f"a maintainer removed these outcomes as '{event.entry}': {event.reason}"
        yield Problem("removed", submission.name, text, fix)


@rule("taken", "choose another name in the declaration; --replace replaces your own entry")
def check_name_free(submission: Submission, board: Board) -> Iterator[Finding]:
    """Check that no entry of the board has the name; --replace skips this rule."""
    if taken := board.find_name(submission.name):
        yield f"an entry '{taken}' on the board", "a free name"
