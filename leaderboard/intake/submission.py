"""A submission: the results of the seeds of one recipe, not verified yet, with a declaration.

The declaration comes from options and from a JSON, TOML or YAML file; `write_template` starts one.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import explain_errors, read_mapping, write_atomic
from fsbench.core.records import columns
from fsbench.core.schema import OF_ITS_MACHINE, BackboneFacts, Declaration
from fsbench.results.assembly import SAME_BACKBONE
from fsbench.results.entry import Loaded, read_entry
from fsbench.results.names import safe_name
from fsbench.results.verification import AGAIN, Problem, find_entries
from leaderboard.intake.archive import TOO_MUCH, check_sizes
from leaderboard.record import find_differing_keys

DECLARATION_FILES = ("declaration.json", "declaration.toml", "declaration.yaml", "declaration.yml")
TEMPLATE_FILE = "declaration.yaml"
KEYS = tuple(Declaration.model_fields)
NAME_LISTS = ("pretraining_data", "targets_seen")
MAX_OUTCOMES = 2**30
"""Bytes of all records in memory, one byte per query."""


def find_declaration(folder: Path) -> Path | None:
    """Return the declaration file in a submitted folder, at its top or one level below."""
    places = [folder, *(sub for sub in sorted(folder.iterdir()) if sub.is_dir())]
    return next((f / n for f in places for n in DECLARATION_FILES if (f / n).is_file()), None)


def read_declaration(
    source: str | Path | Declaration | None, options: Mapping[str, Any]
) -> Declaration:
    """Return the declaration; options replace the values of `source` unless they are None.

    source: a file, or a declaration. A key without a value counts as missing. Raises UsageError
    naming missing keys, ValidationFailed for a file that cannot be read and for wrong keys.
    """
    where = "the declaration"
    values: dict[str, Any] = {}
    if isinstance(source, Declaration):
        values = source.model_dump()
    elif source is not None:
        where, values = str(source), read_fields(Path(source))
    values |= {name: value for name, value in options.items() if value is not None}
    missing = [key for key in KEYS if values.get(key) in (None, "")]
    if missing and values.keys() <= set(KEYS):  # else one may be misspelled
        raise UsageError(
            f"{where} lacks {', '.join(missing)}",
            fix=f"fsbench submit RESULTS --init writes a {TEMPLATE_FILE} to fill in"
            if source is None
            else "fill in these keys; 'none' stands for no data set",
        )
    for key in NAME_LISTS:  # the single word none is the empty list
        if values.get(key) in ("none", ["none"]):
            values[key] = ()
        elif isinstance(values.get(key), str):
            values[key] = [values[key]]
    try:
        return Declaration.model_validate(values)
    except ValidationError as error:
        raise ValidationFailed(
            f"{where}: {explain_errors(error, KEYS)}",
            fix=f"correct these keys of the declaration; it has {', '.join(KEYS)}",
        ) from error


def read_fields(file: Path) -> dict[str, Any]:
    """Return what a declaration file states, by key; `licence` is read as `license`.

    Raises ValidationFailed for a file that cannot be read, and for both spellings.
    """
    values = read_mapping(file, ", ".join(KEYS))
    if {"license", "licence"} <= values.keys():
        raise ValidationFailed(f"{file}: both license and licence", fix="keep one spelling")
    if "licence" in values:
        values["license"] = values.pop("licence")
    return values


def write_template(results: Path, file: Path | None = None, models: Sequence[str] = ()) -> Path:
    """Write a commented declaration, filled from the results where they say it; return the file.

    file: by default declaration.yaml in the results folder, where it is read without an option.
    Raises UsageError if the file exists or there is no result.
    """
    path = file or results / TEMPLATE_FILE
    if not results.is_dir():
        reason = "is no folder" if results.exists() else "does not exist"
        raise UsageError(f"{results} {reason}", fix="--init reads a folder of results")
    if path.suffix not in {".yaml", ".yml"}:
        raise UsageError(f"{path} is no YAML file", fix=f"name a file such as {TEMPLATE_FILE}")
    if path.exists():
        raise UsageError(f"{path} exists", fix="edit it, or remove it first")
    name = safe_name(results.resolve().name)
    draft = read_declaration(None, {**dict.fromkeys(KEYS, "-"), "name": name})
    submissions = read_submissions(results, draft, models)
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(submissions) == 1:
        name = submissions[0].model
    write_atomic(path, render_template(name, submissions).encode())
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


def render_template(name: str, submissions: "Sequence[Submission]") -> str:
    """Return a declaration of this name as YAML, with a comment above every key.

    Whether data that fsbench does not know contain a target is left to the submitter.
    """
    from fsbench.data.catalog import all_facts

    backbones = [submission.facts for submission in submissions]
    count = sum(len(submission.cells) for submission in submissions)
    models = ", ".join(safe_name(submission.model) for submission in submissions)
    more = " The name of each model is appended." if len(submissions) > 1 else ""
    data = sorted({source for facts in backbones for source in facts.pretraining_data})
    is_stated = all(facts.pretraining_data or facts.random_init is not None for facts in backbones)
    stated = (data or "none") if is_stated else None
    targets = {c.result.dataset.name for submission in submissions for c in submission.cells}
    names = resolve_datasets(data)
    is_clear = is_stated and not (names & targets or names - all_facts(plugins=False).keys())
    targets_seen = "none" if is_clear else sorted(names & targets) or None
    values: dict[str, tuple[str, object]] = {
        "name": (f"Name of the entry: letters, digits and . _ + - = @.{more}", name),
        "authors": ("Who made the backbone, e.g. A. Author, B. Author.", None),
        "link": ("Code or paper.", find_link(backbones)),
        "license": ("License of the weights, e.g. Apache-2.0; licence is read too.", None),
        "pretraining_data": ("Data sets of the pretraining, or none.", stated),
        "targets_seen": ("Of them, targets of the evaluation, or none.", targets_seen),
        "statement": ("How the numbers came about, in one sentence.", describe_origin(submissions)),
    }
    lines = [f"# Declaration of {count} results of {models}. Fill in the empty keys."]
    for key, (comment, value) in values.items():
        shown = "" if value is None else f" {json.dumps(value, ensure_ascii=False)}"
        lines += ["", f"# {comment}", f"{key}:{shown}"]
    return "\n".join(lines) + "\n"


def find_link(backbones: Sequence[BackboneFacts]) -> str | None:
    """Return the page of the hub repository that the weights are from, if they are from one."""
    links = set()
    for facts in backbones:
        scheme, _, name = facts.ref.partition("/" if facts.source == "timm" else ":")
        repository = f"timm/{name}" if scheme == "timm" else name.partition("@")[0]
        is_hub = scheme in {"timm", "hf-hub", "transformers"} and facts.random_init is None
        links.add(f"https://huggingface.co/{repository}" if is_hub else None)
    return links.pop() if len(links) == 1 else None


def describe_origin(submissions: "Sequence[Submission]") -> str:
    """Return one sentence on weights and evaluation, from what the results record."""
    origins, versions = [], []
    for submission in submissions:
        facts = submission.facts
        origin = f"weights {facts.ref}"
        if facts.random_init is not None:
            origin = f"random weights of {facts.ref}, seed {facts.random_init}"
        elif facts.recipe:
            origin = f"trained by the recipe {facts.recipe}"
        origins.append(origin)
        versions.append(submission.cells[0].result.provenance.fsbench)
    origin, version = ("; ".join(dict.fromkeys(texts)) for texts in (origins, versions))
    return f"{origin[0].upper()}{origin[1:]}, evaluated by fsbench {version}."


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
        """The backbone of the first result. Raises UsageError."""
        if not self.cells:
            raise UsageError(f"{self.name} has no readable result", fix="see the problems above")
        return self.cells[0].result.backbone

    @property
    def by_network(self) -> dict[str, list[Loaded]]:
        """Identity of a network -> its results."""
        networks: dict[str, list[Loaded]] = defaultdict(list)
        for cell in self.cells:
            networks[cell.result.backbone.identity].append(cell)
        return dict(networks)


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
    folders, used = find_entries(folder), 0
    check_sizes(folders)
    groups: Models = defaultdict(list)
    broken: list[Problem] = []
    for home in folders:
        try:
            cells = read_entry(home).cells
        except ValidationFailed as error:
            broken.append(Problem("unreadable", str(home), error.message, error.fix or AGAIN))
            continue
        for loaded in cells:
            groups[loaded.model, loaded.result.backbone.identity].append(loaded)
            used += sum(values.nbytes for values in columns(loaded.records).values())
        if used > MAX_OUTCOMES:
            raise ValidationFailed(f"records of more than {MAX_OUTCOMES} bytes", fix=TOO_MUCH)
    own = select_models(groups, controls) if controls else {}
    chosen = {key: r for key, r in select_models(groups, models).items() if key not in own}
    beside = [unify_facts(results) for results in own.values()]
    identities = frozenset(identity for _, identity in own)
    submissions = [
        Submission(
            declaration,
            common_name([name for name, _ in sorted(row)]),
            tuple(chain(*map(unify_facts, row.values()), *beside)),
            identities,
            tuple(broken),
        )
        for row in group_by_recipe(chosen)
    ]
    if not submissions:
        return [Submission(declaration, "unnamed", (), identities, tuple(broken))]
    if len(submissions) == 1:
        return submissions
    return [add_model_suffix(submission, submissions) for submission in submissions]


def group_by_recipe(models: Models) -> list[Models]:
    """Return the models of each recipe together, which differ in the seed of pretraining alone."""
    rows: dict[object, Models] = {}
    for key, results in sorted(models.items()):
        rows.setdefault(recipe_key(results), {})[key] = results
    return list(rows.values())


def recipe_key(results: Sequence[Loaded]) -> object:
    """Return what the seeds of a recipe share; the network itself where none is recorded."""
    facts = unify_facts(results)[0].result.backbone
    if facts.training is None or facts.random_init is not None:
        return facts.identity
    return facts.training.composition, facts.features, facts.feature_spec.model_dump_json()


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
    """Return whether two records are of one network; one of them may lack the training."""
    same = all(getattr(a, name) == getattr(b, name) for name in SAME_BACKBONE)
    if not (same and a.training and b.training):
        return same
    differing = find_differing_keys(a.training.model_dump(), b.training.model_dump())
    return {*differing} <= OF_ITS_MACHINE


def common_name(models: Sequence[str]) -> str:
    """Return what the names of seeds have in common, e.g. swr of swr-s0 and swr-s1.

    Where that is little it is the first one.
    """
    first = models[0]
    shortest, letters = min(map(len, models)), zip(*models, strict=False)
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
