"""A submission: the results of the seeds of one recipe, not verified yet, with a declaration."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.records import EpisodeRecords, columns
from fsbench.core.schema import OF_ITS_MACHINE, BackboneFacts, Declaration
from fsbench.results.assembly import SAME_BACKBONE
from fsbench.results.entry import Loaded, read_entry
from fsbench.results.verification import AGAIN, Problem, find_entries
from leaderboard.entry_networks import Network, group_networks

MAX_FILES = 5000
MAX_TOTAL = 256 * 2**20
"""Bytes of all files of a folder; the results of one model take about 300 kB."""
MAX_OUTCOMES = 2**30
"""Bytes of all records in memory, one byte per query."""
TOO_MUCH = "submit the results of one model, and only those of the board's columns"


@dataclass(frozen=True, eq=False)
class Submission:
    """The results of the seeds of one recipe with a declaration; on a board it becomes an entry.

    model: what the names of the models' folders have in common; controls: identities of the models
    that are controls of the others; broken: a Problem for each folder that could not be parsed;
    left_out: names of results that belong to no column of the board.
    """

    declaration: Declaration
    model: str
    loaded: tuple[Loaded, ...]
    controls: frozenset[str] = frozenset()
    broken: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def facts(self) -> BackboneFacts:
        """The backbone of the first result."""
        return self.loaded[0].result.backbone

    @property
    def networks(self) -> tuple[Network, ...]:
        return group_networks(self.name, self.loaded, self.controls)


Models = dict[tuple[str, str], list[Loaded]]
"""Name and identity of a model -> its results."""


def read_submissions(
    folder: Path, declaration: Declaration, models: Sequence[str] = (), controls: Sequence[str] = ()
) -> list[Submission]:
    """Read one submission per recipe below `folder`; several extend the declared name.

    models: names or references to read; all if empty; controls: models that each submission takes
    along as its own control. Raises UnknownName for one that is not there, and as `read_models`.
    """
    named = [folder / name for name in (*models, *controls)]
    homes = named if named and all(home.is_dir() for home in named) else [folder]
    available, broken = read_models(homes)
    beside = select_models(available, controls) if controls else {}
    chosen = select_models(available, models)
    rows = group_by_recipe({key: chosen[key] for key in chosen.keys() - beside.keys()})
    submissions = [
        Submission(
            declaration,
            common_name([name for name, _ in row] or ["unnamed"]),
            tuple(chain(*row.values(), *beside.values())),
            frozenset(identity for _, identity in beside),
            broken,
        )
        for row in rows or [{}]
    ]
    if len(submissions) == 1:
        return submissions
    return [add_model_suffix(submission, submissions) for submission in submissions]


def read_models(folders: Sequence[Path]) -> tuple[Models, tuple[Problem, ...]]:
    """Return the results below folders by model, and a Problem for each file that is no result.

    Raises UsageError for a folder without results, ValidationFailed for links and special files,
    and for far too many results.
    """
    models: Models = defaultdict(list)
    broken: list[Problem] = []
    used = 0
    for folder in folders:
        check_folder(folder)
    for home in chain.from_iterable(map(find_entries, folders)):
        try:
            entry = read_entry(home)
        except ValidationFailed as error:
            broken.append(Problem("unreadable", str(home), error.message, error.fix or AGAIN))
            continue
        for one in entry.loaded:
            loaded = one
            if isinstance(one.records, EpisodeRecords):  # boards store no predictions
                loaded = replace(one, records=replace(one.records, predicted=None))
            models[loaded.model, loaded.result.backbone.identity].append(loaded)
            used += sum(values.nbytes for values in columns(loaded.records).values())
        if used > MAX_OUTCOMES:
            raise ValidationFailed(f"records of more than {MAX_OUTCOMES} bytes", fix=TOO_MUCH)
    return {key: unify_facts(results) for key, results in models.items()}, tuple(broken)


def check_folder(root: Path) -> None:
    """Check that a folder holds a bounded number of plain files. Raises ValidationFailed."""
    files = size = 0
    for path in root.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValidationFailed(
                f"{path} is a link or special file", fix="replace it by the file itself"
            )
        if path.is_file():
            files, size = files + 1, size + path.stat().st_size
            if files > MAX_FILES or size > MAX_TOTAL:
                raise ValidationFailed(
                    f"{root} holds more than {MAX_FILES} files or {MAX_TOTAL} bytes", fix=TOO_MUCH
                )


def group_by_recipe(models: Models) -> list[Models]:
    """Return the models of each recipe together, which differ in the seed of pretraining alone."""
    rows: dict[object, Models] = {}
    for key, results in sorted(models.items()):
        rows.setdefault(recipe_key(results[0].result.backbone), {})[key] = results
    return list(rows.values())


def recipe_key(facts: BackboneFacts) -> object:
    """Return what the seeds of a recipe share; the network itself where none is recorded."""
    if facts.training is None or facts.random_init is not None:
        return facts.identity
    return facts.training.composition, facts.model_dump_json(include={*SAME_BACKBONE[1:]})


def unify_facts(results: Sequence[Loaded]) -> list[Loaded]:
    """Return the results of a network with one record of it, that of the first result.

    A run can be repeated, also on another machine: only its costs differ then. Results that
    contradict each other stay as they are: a rule says so.
    """

    def describe(facts: BackboneFacts) -> object:
        training = facts.training and facts.training.model_dump(exclude={*OF_ITS_MACHINE})
        return training, [getattr(facts, name) for name in SAME_BACKBONE]

    first = results[0].result.backbone
    return [
        replace(loaded, result=loaded.result.model_copy(update={"backbone": first}))
        if describe(loaded.result.backbone) == describe(first)
        else loaded
        for loaded in results
    ]


def common_name(models: Sequence[str]) -> str:
    """Return what the names of seeds have in common, e.g. swr of swr-s0 and swr-s1.

    Where that is little it is the first one.
    """
    first, shortest, letters = models[0], min(map(len, models)), zip(*models, strict=False)
    equal = next((i for i, letter in enumerate(letters) if len(set(letter)) > 1), shortest)
    common = re.sub(r"[-_.]+((s|seed)[-_.]?\d*)?$", "", first[:equal])
    return common if len(models) > 1 and 2 * len(common) >= shortest else first


def select_models(groups: Models, models: Sequence[str]) -> Models:
    """Return the groups of these model names or references. Raises UnknownName."""
    if not models:
        return groups
    spellings = {key: {key[0], results[0].result.backbone.ref} for key, results in groups.items()}
    available = set().union(*spellings.values())
    for model in models:
        if model not in available:
            raise UnknownName("model", model, available)
    return {key: groups[key] for key, names in spellings.items() if names & set(models)}


def add_model_suffix(submission: Submission, submissions: Sequence[Submission]) -> Submission:
    """Name a submission NAME-MODEL; add a part of the weights hash if two models share a name."""
    twins = [other for other in submissions if other.model == submission.model]
    tail = f"-{submission.facts.identity[:6]}" if len(twins) > 1 else ""
    name = f"{submission.name}-{submission.model}{tail}"[:200]
    return replace(submission, declaration=submission.declaration.model_copy(update={"name": name}))
