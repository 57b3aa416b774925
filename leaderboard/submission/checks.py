"""Rules that a submission must satisfy before it is added to a board; each yields Problems.

A submission is hostile input. Everything derivable is recomputed from the records, all problems
are listed at once, and nothing in it is ever executed. The rules for single results are those of
fsbench/results/rules.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from glob import escape
from typing import Any

import numpy as np

from fsbench.core.errors import DataError, UnknownName
from fsbench.core.io import read_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import DatasetRecord, Result
from fsbench.core.specs import EpisodicSpec
from fsbench.core.training import OF_ITS_MACHINE
from fsbench.results import rules
from fsbench.results.building import SAME_BACKBONE, gaps
from fsbench.results.names import safe
from fsbench.results.rules import Loaded, Problem
from leaderboard.board.board import Board
from leaderboard.board.definition import differing_keys, identify_column
from leaderboard.board.tables import match_column
from leaderboard.submission.submission import Submission

SHOWN = 3
"""Names that a message lists."""


def check_flags(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Official boards take complete results on official data only, but for the subset tracks of
    those with a version."""
    if board.file.official and board.file.version is None:
        for cell in candidate.cells:
            if cell.result.flags:
                fix = "evaluate all episodes on the official data, or choose another board"
                yield cell.problem("flagged", ", ".join(cell.result.flags), "no flag", fix)


def check_columns(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Results that bear the name of a board column have its spec and its images."""
    for cell in candidate.cells:
        expected = board.file.named.get(cell.result.column)
        if expected is not None and match_column(board.file, cell.result) is None:
            wrong = "images" if expected.same_cell(cell.result) else "spec"
            fix = "evaluate with the board's settings and data"
            found = identify_column(cell.result).canonical()
            yield cell.problem("column", f"other {wrong}: {found}", expected.canonical(), fix)


def check_any_column(candidate: Submission, board: Board) -> Iterator[Problem]:
    """At least one result belongs to a column of the board; the others are left out."""
    if candidate.left_out and not candidate.cells:
        names = ", ".join(str(column.name) for column in (board.file.columns or ())[:SHOWN])
        found = f"{', '.join(candidate.left_out[:SHOWN])}: no column of {board.file.title}"
        fix = "evaluate columns of the board (fsbench leaderboard boards), or choose another board"
        yield Problem("column", candidate.name, found[:300], f"columns such as {names}", fix)


def check_image_copies(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Where the hash of the official images is not published, the first entry on a board settles
    it: episodes of entries that met other images could not be paired."""
    if board.file.version is None:
        return
    for cell in first_unflagged(candidate):
        held = find_same_task(board, cell, candidate.name)
        if held is not None and held.dataset.identity != cell.result.dataset.identity:
            fix = "evaluate the same copy of the data: compare with fsbench data verify"
            expected = f"{held.dataset.identity}, as of the entries on the board"
            yield cell.problem("images", cell.result.dataset.identity, expected, fix)


def first_unflagged(candidate: Submission) -> list[Loaded]:
    """A result without flags for each data set, pool and group rule; the others are alike."""
    found: dict[tuple[str, str, bool], Loaded] = {}
    for cell in candidate.cells:
        data = cell.result.dataset
        if not cell.result.flags:
            found.setdefault((data.name, data.pool, data.groups is None), cell)
    return list(found.values())


def find_same_task(board: Board, cell: Loaded, name: str) -> Result | None:
    """The same cell, without flags, of the first other entry on the board that has it; the task is
    the one of a column of the board."""
    dataset = cell.result.task.dataset
    pattern = f"*/*/{dataset}/{escape(cell.path.name)}"
    others = (e for e in sorted(board.folder.glob("[!.]*")) if e.name.casefold() != name.casefold())
    for path in (path for entry in others for path in sorted(entry.glob(pattern))):
        result = read_record(path, Result)
        if not result.flags:
            return result
    return None


SubmissionRule = Callable[[Submission, Board], Iterator[Problem]]

MAX_CELLS = 1000
MAX_EPISODES = 10_000
MAX_IMAGES = 20_000_000
MAX_TEXT = 4000


def check_readable(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Every file is a result of a valid schema, and there is at least one."""
    yield from candidate.broken
    if not 0 < len(candidate.cells) <= MAX_CELLS:
        yield make_problem("results", candidate, len(candidate.cells), f"1 to {MAX_CELLS} results")


def check_results(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Each result satisfies the rules for reading: hashes, means, flags, finite numbers."""
    for cell in candidate.cells:
        yield from rules.find_problems(cell)


def check_names(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Names are path components that are valid on every system and unambiguous to readers."""
    names = {candidate.name, candidate.model, *(c.result.dataset.name for c in candidate.cells)}
    for name in sorted(names):
        if name != safe(name) or not name.isascii():
            fix = "use letters, digits and . _ + - = @, not starting with a dot or dash"
            yield make_problem("name", candidate, repr(name), repr(safe(name)), fix)


def check_texts(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Texts that people read hold no control or direction character and are of bounded length."""
    records = [(candidate.name, candidate.declaration.model_dump())]
    records += [(str(c.path), c.result.model_dump(mode="json")) for c in candidate.cells]
    for where, record in records:
        for text in iterate_strings(record):
            if not text.isprintable() or len(text) > MAX_TEXT:
                fix = "remove control characters and shorten the text"
                expected = f"printable text of at most {MAX_TEXT} characters"
                yield Problem("text", where, repr(text[:60]), expected, fix)
                break


def iterate_strings(value: Any) -> Iterator[str]:
    """Yield all strings inside nested records."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from iterate_strings([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from iterate_strings(item)


def check_manifests(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Manifest hash and class ids equal those recomputed from the spec and the class counts."""
    for cell in candidate.cells:
        if isinstance(cell.records, EpisodeRecords) and isinstance(cell.result.spec, EpisodicSpec):
            yield from check_episodes(cell, cell.records, cell.result.spec)


def check_episodes(cell: Loaded, records: EpisodeRecords, spec: EpisodicSpec) -> Iterator[Problem]:
    from fsbench.data.episodes import manifest

    data, index = cell.result.dataset, records.index
    images = max(sum(data.class_counts), *data.class_ids, 0)  # ids number the classes of images
    if len(records.index) > MAX_EPISODES or images > MAX_IMAGES:
        size = f"{len(records.index)} episodes over {images} images"
        yield cell.problem("size", size, f"<= {MAX_EPISODES} and <= {MAX_IMAGES}", "submit less")
        return
    if len(data.class_ids) != len(data.class_counts) or min(data.class_ids, default=0) < 0:
        return  # results/rules.py reports it
    try:
        counts = dict(zip(data.class_ids, data.class_counts, strict=True))
        episodes = manifest(spec.episode, data.name, counts, data.groups, index[index >= 0])
    except DataError as error:
        yield cell.problem("manifest", error.message, "classes that an episode can be drawn from")
        return
    if episodes.hash != cell.result.manifest_hash:
        yield cell.problem("manifest", cell.result.manifest_hash, episodes.hash)
    drawn = episodes.class_ids[np.searchsorted(episodes.numbers, index[index >= 0])]
    if drawn.shape != records.class_ids.shape or (drawn != records.class_ids).any():
        yield cell.problem("classes", "other classes than the episodes have", "the drawn classes")


def check_completeness(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Episodes are 0..n-1 without a gap: shards are merged before they are submitted."""
    for cell in candidate.cells:
        if isinstance(cell.records, EpisodeRecords) and "shard" in cell.result.flags:
            missing = f"episodes {gaps(np.sort(cell.records.index))} missing"
            yield cell.problem(
                "incomplete", missing, "no gap", "fsbench results merge PART PART -o OUT"
            )


def check_duplicates(candidate: Submission, board: Board) -> Iterator[Problem]:
    """There is one result per column, and no records occur twice under different names."""
    columns = Counter(cell.result.column for cell in candidate.cells)
    for column, count in sorted(columns.items()):
        if count > 1:
            fix = "keep the result that belongs on the board"
            yield make_problem("duplicate", candidate, f"{count} results of {column}", "one", fix)
    digests = Counter(cell.result.records_digest for cell in candidate.cells)
    for digest, count in digests.items():
        if count > 1:
            yield make_problem(
                "duplicate", candidate, f"{count} results of records {digest}", "one"
            )


def check_same_backbone(candidate: Submission, board: Board) -> Iterator[Problem]:
    """All results are of the same weights, with features taken the same way."""
    for cell in candidate.cells[1:]:
        for name in SAME_BACKBONE:
            actual = getattr(cell.result.backbone, name)
            expected = getattr(candidate.facts, name)
            if actual != expected:
                fix = "evaluate every cell with one backbone"
                yield cell.problem("backbone", f"{name} {actual}", expected, fix)


def check_same_training(candidate: Submission, board: Board) -> Iterator[Problem]:
    """All results that record how the weights were trained, which old ones do not, record the same.

    Costs may differ: the run may have been repeated on another machine.
    """
    trained = [(cell, made) for cell in candidate.cells if (made := cell.result.backbone.training)]
    for cell, made in trained[1:]:
        first, expected = trained[0]
        for name in sorted({*differing_keys(dict(made), dict(expected))} - OF_ITS_MACHINE):
            fix = "evaluate every cell with one run"
            yield cell.problem("training", f"another {name}", f"that of {first.path}", fix)


def check_same_images(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Results of one data set and pool are of the same images, those of a track of equal groups."""
    first: dict[tuple[str, str], DatasetRecord] = {}
    groups: dict[tuple[str, str], str] = {}
    for cell in candidate.cells:
        data, key = cell.result.dataset, (cell.result.dataset.name, cell.result.dataset.pool)
        images = data.model_copy(update={"groups": None})
        expected = first.setdefault(key, images)
        same = data.groups is None or groups.setdefault(key, data.groups) == data.groups
        if images != expected or not same:
            fix = "evaluate all cells of a data set on the same copy"
            yield cell.problem("images", data.identity, expected.fingerprint, fix)


def check_references(candidate: Submission, board: Board) -> Iterator[Problem]:
    """No backbone is a `py:` reference: code of the submitter, which no reader should run."""
    for cell in candidate.cells:
        facts = cell.result.backbone
        if facts.source == "py" or facts.ref.startswith("py:"):
            fix = "publish the weights (hf-hub, a checkpoint file) and evaluate those"
            yield cell.problem("py-reference", facts.ref, "a reference that needs no code", fix)


def check_image_counts(candidate: Submission, board: Board) -> Iterator[Problem]:
    """A data set of fsbench with unofficial counts is flagged `subset`, any other one `custom`."""
    from fsbench.data.catalog import TARGETS, all_facts

    for cell in candidate.cells:
        data = cell.result.dataset
        if data.name not in TARGETS.names():
            if "custom" not in data.flags:
                yield cell.problem("flags", f"data set {data.name} unflagged", "flag custom")
        elif data.pool == "full" and not {"subset", "custom"} & set(data.flags):
            facts = all_facts()[data.name]
            if not facts.complete(dict(zip(data.class_ids, data.class_counts, strict=False))):
                yield cell.problem("flags", f"counts {data.class_counts}", "flag subset")


def check_targets_seen(candidate: Submission, board: Board) -> Iterator[Problem]:
    """Targets seen in pretraining are declared; an official board refuses them."""
    declared = {resolve_dataset(name) for name in candidate.declaration.targets_seen}
    trained = set(candidate.declaration.pretraining_data)
    trained |= {name for cell in candidate.cells for name in cell.result.backbone.pretraining_data}
    for target in sorted({resolve_dataset(cell.result.dataset.name) for cell in candidate.cells}):
        if target in {resolve_dataset(name) for name in trained} - declared:
            fix = f"add --targets-seen {target}"
            yield make_problem("undeclared", candidate, f"trained on {target}", "it declared", fix)
        if target in declared and board.file.official:
            fix = "leave the cells of this target out, or choose another board"
            yield make_problem(
                "target-seen", candidate, target, "targets unseen in pretraining", fix
            )


def resolve_dataset(name: str) -> str:
    """Return the data set of a name or alias in any spelling; else the name in lower case."""
    from fsbench.data.catalog import resolve

    try:
        return resolve(name)
    except UnknownName:
        return name.casefold()


def check_name_free(candidate: Submission, board: Board) -> Iterator[Problem]:
    """No entry of the board has the name; --replace skips this rule."""
    if taken := board.taken(candidate.name):
        fix = "choose another --name, or give --replace to replace your own entry"
        yield make_problem(
            "taken", candidate, f"an entry '{taken}' on the board", "a free name", fix
        )


RULES: tuple[SubmissionRule, ...] = (
    check_readable,
    check_results,
    check_names,
    check_texts,
    check_manifests,
    check_completeness,
    check_duplicates,
    check_same_backbone,
    check_same_training,
    check_same_images,
    check_references,
    check_image_counts,
    check_flags,
    check_columns,
    check_any_column,
    check_image_copies,
    check_targets_seen,
    check_name_free,
)


def make_problem(
    code: str, candidate: Submission, actual: object, expected: object, fix: str = rules.AGAIN
) -> Problem:
    """Return a Problem of the submission as a whole."""
    return Problem(code, candidate.name, str(actual)[:300], str(expected)[:300], fix)


def check_submission(candidate: Submission, board: Board, replace: bool = False) -> list[Problem]:
    """Return every Problem of a submission; none if it may be added to the board."""
    rules_to_check = [rule for rule in RULES if not (replace and rule is check_name_free)]
    return [problem for rule in rules_to_check for problem in rule(candidate, board)]
