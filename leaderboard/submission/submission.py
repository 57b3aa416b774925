"""A submission: the results of one model, not verified yet, with a declaration.

The declaration comes from options and from a JSON, TOML or YAML file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fsbench.core.errors import UnknownName, UsageError, ValidationFailed, nearest_names
from fsbench.core.io import parse_record, read_mapping
from fsbench.core.schema import BackboneFacts, Declaration
from fsbench.results.verification import Loaded, Problem, load_result, result_files
from leaderboard.submission.archive import MemoryBudget, check_sizes

DECLARATION_FILES = ("declaration.json", "declaration.toml", "declaration.yaml", "declaration.yml")
DECLARATION_OPTIONS = {
    "name": "--name",
    "authors": "--authors",
    "link": "--link",
    "license": "--licence",
    "pretraining_data": "--pretraining-data",
    "targets_seen": "--targets-seen",
    "statement": "--statement",
}


def find_declaration(folder: Path) -> Path | None:
    """Return the declaration file in a submitted folder, at its top or one level below."""
    places = [folder, *(sub for sub in sorted(folder.iterdir()) if sub.is_dir())]
    return next((f / n for f in places for n in DECLARATION_FILES if (f / n).is_file()), None)


def read_declaration(file: Path | None, options: Mapping[str, Any]) -> Declaration:
    """Return the declaration; options replace the values of the file unless they are None.

    Raises UsageError naming missing fields, ValidationFailed for a file that cannot be read.
    """
    values: dict[str, Any] = read_mapping(file, ", ".join(DECLARATION_OPTIONS)) if file else {}
    values |= {name: value for name, value in options.items() if value is not None}
    for key in values:
        if key not in DECLARATION_OPTIONS:
            near = [f", use '{name}'" for name in nearest_names(key, DECLARATION_OPTIONS)]
            raise ValidationFailed(
                f"{file}: unknown key '{key[:60]}'{''.join(near)}",
                fix=f"the keys are {', '.join(DECLARATION_OPTIONS)}",
            )
    missing = [option for name, option in DECLARATION_OPTIONS.items() if name not in values]
    if missing:
        raise UsageError(
            f"the declaration lacks {', '.join(missing)}",
            fix=f"give these options or --declaration {DECLARATION_FILES[0]} (no targets: 'none')",
        )
    for name in ("pretraining_data", "targets_seen"):  # the single word none is the empty list
        names = [values[name]] if isinstance(values[name], str) else values[name]
        values[name] = () if names in (["none"], [], ()) else names
    return parse_record(values, Declaration, file or Path("the declaration"))


@dataclass(frozen=True, eq=False)
class Submission:
    """The results of one model with a declaration; on a board it becomes an entry.

    model: name of the model's folder; broken: a Problem for each file that could not be parsed;
    left_out: names of results that belong to no column of the board.
    """

    declaration: Declaration
    model: str
    cells: tuple[Loaded, ...]
    broken: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def facts(self) -> BackboneFacts:
        """The backbone of the first result; that all agree is a check. Raises UsageError."""
        if not self.cells:
            raise UsageError(f"{self.name} has no readable result", fix="see the problems above")
        return self.cells[0].result.backbone

    def with_results(self, results: Iterable[Loaded], left_out: Iterable[str] = ()) -> Submission:
        return replace(self, cells=tuple(results), left_out=tuple(left_out))

    def with_name(self, name: str) -> Submission:
        return replace(self, declaration=self.declaration.model_copy(update={"name": name}))


def read_submissions(
    folder: Path, declaration: Declaration, models: Sequence[str] = ()
) -> list[Submission]:
    """Read one submission per model below `folder`; several models extend the declared name.

    models: names or references to read; all if empty. Raises UnknownName for one that is not
    there, UsageError for a folder without results, ValidationFailed for one with far too many.
    """
    files, budget = result_files(folder), MemoryBudget()
    check_sizes(files)
    groups: dict[tuple[str, str], list[Loaded]] = defaultdict(list)
    broken: list[Problem] = []
    for path in files:
        try:
            loaded = load_result(path)
        except ValidationFailed as error:
            broken.append(Problem("unreadable", str(path), error.message, "a result", error.fix))
            continue
        groups[loaded.model, loaded.result.backbone.identity].append(budget.add(loaded))
    submissions = [
        Submission(declaration, model, tuple(results), tuple(broken))
        for (model, _), results in sorted(select_models(groups, models).items())
    ]
    if not submissions:
        return [Submission(declaration, "unnamed", (), tuple(broken))]
    if len(submissions) == 1:
        return submissions
    return [add_model_suffix(submission, submissions) for submission in submissions]


def select_models(
    groups: dict[tuple[str, str], list[Loaded]], models: Sequence[str]
) -> dict[tuple[str, str], list[Loaded]]:
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
    return submission.with_name(f"{submission.name}-{submission.model}{tail}"[:200])
