"""A submission: the results of the seeds of one recipe, not verified yet, with a declaration.

The declaration is declaration.yaml of the results folder, which `write_template` starts, or another
YAML, JSON or TOML file.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import read_mapping, refuse_invalid, write_atomic
from fsbench.core.records import columns
from fsbench.core.schema import OF_ITS_MACHINE, BackboneFacts, Declaration
from fsbench.results.assembly import SAME_BACKBONE
from fsbench.results.entry import Loaded, read_entry
from fsbench.results.names import safe_name
from fsbench.results.verification import AGAIN, Problem, find_entries
from leaderboard.intake.archive import TOO_MUCH

DECLARATION_FILE = "declaration.yaml"
"""In a results folder, where it is read without an option."""
TEMPLATE = Path(__file__).parents[1] / "templates" / DECLARATION_FILE
KEYS = tuple(Declaration.model_fields)
NAME_LISTS = ("pretraining_data", "targets_seen")
MAX_OUTCOMES = 2**30
"""Bytes of all records in memory, one byte per query."""


def find_declaration(results: Path) -> Path | None:
    """Return the declaration file of a results folder, None if there is none."""
    path = results / DECLARATION_FILE
    return path if path.is_file() else None


def read_declaration(
    source: str | Path | Declaration | Mapping[str, Any] | None, name: str | None = None
) -> Declaration:
    """Return the declaration of a file, or of its fields. name: replaces the declared one.

    A key without a value counts as missing. Raises UsageError naming missing keys, ValidationFailed
    for a file that cannot be read and for wrong keys.
    """
    where, values = "the declaration", dict[str, Any]()
    if isinstance(source, str | Path):
        where, values = str(source), read_mapping(Path(source), ", ".join(KEYS))
    elif source is not None:
        values = dict(source)
    values |= {} if name is None else {"name": name}
    missing = [key for key in KEYS if values.get(key) in (None, "")]
    if missing and values.keys() <= set(KEYS):  # else one may be misspelled
        raise UsageError(
            f"{where} lacks {', '.join(missing)}",
            fix=f"fsbench submit RESULTS --init writes a {DECLARATION_FILE} to fill in"
            if source is None
            else "fill in these keys; 'none' stands for no data set",
        )
    for key in NAME_LISTS:  # the single word none is the empty list
        if values.get(key) in ("none", ["none"]):
            values[key] = ()
        elif isinstance(values.get(key), str):
            values[key] = [values[key]]
    fix = f"correct these keys of the declaration; it has {', '.join(KEYS)}"
    with refuse_invalid(ValidationFailed, where, fix, KEYS):
        return Declaration.model_validate(values)


def write_template(results: Path) -> Path:
    """Write a commented declaration to fill in into a results folder; return the file.

    The name is filled in, and the pretraining data if every result records them. Raises UsageError
    if the file exists or there is no result.
    """
    path = results / DECLARATION_FILE
    if path.exists():
        raise UsageError(f"{path} exists", fix="edit it, or remove it first")
    models, _ = read_models(results)
    rows = group_by_recipe(models)
    name = common_name([key[0] for key in rows[0]]) if len(rows) == 1 else results.resolve().name
    backbones = [cells[0].result.backbone for cells in models.values()]
    values: dict[str, object] = {"name": safe_name(name)}
    if all(facts.pretraining_data or facts.random_init is not None for facts in backbones):
        data = sorted({source for facts in backbones for source in facts.pretraining_data})
        values["pretraining_data"] = data or "none"
    text = TEMPLATE.read_text(encoding="utf8")
    for key, value in values.items():
        text = text.replace(f"\n{key}:\n", f"\n{key}: {json.dumps(value)}\n")
    write_atomic(path, text.encode())
    return path


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


@dataclass(frozen=True, eq=False)
class Submission:
    """The results of the seeds of one recipe with a declaration; on a board it becomes an entry.

    model: what the names of the models' folders have in common; controls: identities of the models
    that are controls of the others; broken: a Problem for each folder that could not be parsed;
    left_out: names of results that belong to no column of the board.
    """

    declaration: Declaration
    model: str
    cells: tuple[Loaded, ...]
    controls: frozenset[str] = frozenset()
    broken: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def facts(self) -> BackboneFacts:
        """The backbone of the first result."""
        return self.cells[0].result.backbone

    @property
    def by_network(self) -> dict[str, list[Loaded]]:
        """Identity of a network -> its results."""
        networks: dict[str, list[Loaded]] = defaultdict(list)
        for cell in self.cells:
            networks[cell.result.backbone.identity].append(cell)
        return dict(networks)

    @property
    def seeds(self) -> list[list[Loaded]]:
        """The results of each network that is no control."""
        return [cells for key, cells in self.by_network.items() if key not in self.controls]


Models = dict[tuple[str, str], list[Loaded]]
"""Name and identity of a model -> its results."""


def read_submissions(
    folder: Path,
    declaration: Declaration,
    models: Sequence[str] = (),
    controls: Sequence[str] = (),
) -> list[Submission]:
    """Read one submission per recipe below `folder`; several extend the declared name.

    models: names or references to read; all if empty; controls: models that each submission takes
    along as its own control. Raises UnknownName for one that is not there, UsageError for a folder
    without results, ValidationFailed for one with far too many.
    """
    found, broken = read_models(folder)
    beside = select_models(found, controls) if controls else {}
    chosen = select_models(found, models)
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


def read_models(folder: Path) -> tuple[Models, tuple[Problem, ...]]:
    """Return the results below a folder by model, and a Problem for each file that is no result.

    Raises UsageError for a folder without results, ValidationFailed for one with far too many.
    """
    models: Models = defaultdict(list)
    broken: list[Problem] = []
    used = 0
    for home in find_entries(folder):
        try:
            cells = read_entry(home).cells
        except ValidationFailed as error:
            broken.append(Problem("unreadable", str(home), error.message, error.fix or AGAIN))
            continue
        for loaded in cells:
            models[loaded.model, loaded.result.backbone.identity].append(loaded)
            used += sum(values.nbytes for values in columns(loaded.records).values())
        if used > MAX_OUTCOMES:
            raise ValidationFailed(f"records of more than {MAX_OUTCOMES} bytes", fix=TOO_MUCH)
    return {key: unify_facts(cells) for key, cells in models.items()}, tuple(broken)


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
    """Return the results of a network with one record of it, the one that has the most facts.

    Results that contradict each other stay as they are: a rule says so.
    """
    backbones = [loaded.result.backbone for loaded in results]
    facts = next((backbone for backbone in backbones if backbone.training), backbones[0])
    return [
        replace(loaded, result=loaded.result.model_copy(update={"backbone": facts}))
        if is_same_network(loaded.result.backbone, facts)
        else loaded
        for loaded in results
    ]


def is_same_network(a: BackboneFacts, b: BackboneFacts) -> bool:
    """Return whether two records are of one network.

    One may lack the training, or have other costs of it: a run can be repeated on another machine.
    """
    if any(getattr(a, name) != getattr(b, name) for name in SAME_BACKBONE):
        return False
    trainings = [f.training.model_dump(exclude={*OF_ITS_MACHINE}) for f in (a, b) if f.training]
    return trainings[:1] == trainings[-1:]


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
