"""One form for the results of a model and for an entry of a board: a folder of two files.

    entry.json                          every fact once, and a line per result (EntryFile)
    outcomes-<sha-256, 12>.arrow.zst    a row per episode (outcomes.py)

In a results folder each model has one, results/<model>/<identity12>/. An entry of a board has a
declaration besides, and several models, one per pretraining seed. The digest of entry.json covers
both files; it is replaced after new outcomes lie beside it: a kill leaves the old entry or the new.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from weakref import WeakValueDictionary

from pydantic import AfterValidator, Field, model_validator

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_bytes, refuse_invalid, write_atomic
from fsbench.core.records import Records
from fsbench.core.schema import (
    MAX_SECONDS,
    BackboneFacts,
    DatasetRecord,
    Date,
    Declaration,
    Environment,
    FeatureCost,
    Provenance,
    Result,
    ScoredFields,
    Sha256,
    Text,
    Version,
)
from fsbench.core.specs import Frozen, Spec, omitted
from fsbench.results import outcomes
from fsbench.results.names import model_name, safe_name

ENTRY_FILE = "entry.json"
MAX_ENTRY = 16 * 2**20
"""Bytes of entry.json; 90 results of five networks take 80 kB."""
SCORED = tuple(ScoredFields.model_fields)
PARTS = ("model", "dataset", "spec", "environment", "cost", "manifest")
RESULT_FIELDS, PROVENANCE_FIELDS = set(Result.model_fields), set(Provenance.model_fields)
"""One set for all results, of which a board has tens of thousands."""
SHARED: WeakValueDictionary[object, Frozen] = WeakValueDictionary()


def share(part: Frozen) -> Frozen:
    """Return one object for equal parts of entries, by their text and the types of their values."""
    return SHARED.setdefault((part.model_dump_json(), *map(type, vars(part).values())), part)


class ResultLine(ScoredFields):
    """One result of an entry; its PARTS are positions in the lists of the entry."""

    column: Text = Field(description="e.g. eurosat:5w1s/linear@ibm 224px")
    model: int = Field(ge=0)
    dataset: int = Field(ge=0)
    spec: int = Field(ge=0)
    environment: int = Field(ge=0)
    started: Date
    seconds: float = Field(ge=0, le=MAX_SECONDS)
    cost: int | None = omitted(None, ge=0)
    manifest: int | None = omitted(None, ge=0)


class EntryFile(Frozen):
    """The content of entry.json."""

    schema_version: Literal[1] = 1
    declaration: Declaration | None = Field(None, description="null in a results folder")
    submitted: Date | None = None
    fsbench: Version | None = Field(None, description="version that checked it")
    key: Text | None = Field(None, description="SSH key of the owner, who signed this file")
    controls: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (), description="models that are controls of the others"
    )
    models: tuple[BackboneFacts, ...] = Field(description="one per pretraining seed")
    datasets: tuple[Annotated[DatasetRecord, AfterValidator(share)], ...]
    specs: tuple[Annotated[Spec, AfterValidator(share)], ...]
    environments: tuple[Annotated[Environment, AfterValidator(share)], ...]
    costs: tuple[Annotated[FeatureCost, AfterValidator(share)], ...] = omitted(())
    manifests: tuple[Sha256, ...] = omitted((), description="of episodes")
    results: tuple[ResultLine, ...] = Field(min_length=1)
    outcomes: Sha256 = Field(description="of the file of outcomes")

    @model_validator(mode="after")
    def _parts_exist(self) -> Self:
        if max(self.controls, default=-1) >= len(self.models):
            raise ValueError("controls are no models of the entry")
        for name in PARTS:
            length = len(getattr(self, f"{name}s"))
            for line in self.results:
                if (position := getattr(line, name)) is not None and position >= length:
                    raise ValueError(f"{line.column} names {name} {position} of {length}")
        return self

    @property
    def outcomes_file(self) -> str:
        return f"outcomes-{self.outcomes[:12]}{outcomes.SUFFIX}"

    def to_text(self) -> str:
        """Return the JSON: one line per part and result, keys sorted so that no order counts."""
        dump = partial(json.dumps, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        fields = []
        for name, value in sorted(self.model_dump(mode="json").items()):
            is_list = isinstance(value, list) and value
            text = "[\n" + ",\n".join(map(dump, value)) + "\n]" if is_list else dump(value)
            fields.append(f'"{name}":{text}')
        return "{\n" + ",\n".join(fields) + "\n}\n"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A result with its records in memory. folder: of the entry that holds it."""

    folder: Path
    result: Result
    records: Records

    @property
    def model(self) -> str:
        """The model's folder in a results tree, else the name that its reference gives."""
        home, facts = self.folder.resolve(), self.result.backbone
        in_tree = home.name == facts.identity[:12]
        return safe_name(home.parent.name) if in_tree else model_name(facts)

    def __str__(self) -> str:
        return f"{self.folder}:{self.result.column}"


@dataclass(frozen=True, eq=False)
class Entry:
    """The two files of a folder, parsed; digest: sha-256 of entry.json, which covers both."""

    folder: Path
    file: EntryFile
    digest: str
    loaded: tuple[Loaded, ...]

    @property
    def name(self) -> str:
        """The declared name, in a results folder that of the model."""
        return self.file.declaration.name if self.file.declaration else self.loaded[0].model

    @property
    def controls(self) -> frozenset[str]:
        """Identities of the models that are controls of the others."""
        return frozenset(self.file.models[i].identity for i in self.file.controls)


def read_entry(folder: Path) -> Entry:
    """Read an entry, parsed but not checked. Raises ValidationFailed naming the file."""
    path = folder / ENTRY_FILE
    text = read_content(path, MAX_ENTRY)
    while True:
        file = parse_entry(path, text)
        try:
            table = read_outcomes(folder / file.outcomes_file, file.outcomes)
            break
        except ValidationFailed:
            before, text = text, read_content(path, MAX_ENTRY)
            if text == before:  # else another process replaced the entry in the meantime
                raise
    results = restore_results(path, file)
    with named_in_errors(folder / file.outcomes_file):
        if len(table) != len(results):
            raise ValueError(f"it holds {len(table)} results, not {len(results)}")
        records = table.records([(result.spec, result.score.n) for result in results])
    loaded = tuple(Loaded(folder, *pair) for pair in zip(results, records, strict=True))
    return Entry(folder, file, hashlib.sha256(text).hexdigest(), loaded)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Raise ValidationFailed naming the file where its content cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValidationFailed(f"{path} cannot be read: {reason}", fix=outcomes.FIX) from error


def read_outcomes(path: Path, digest: str) -> outcomes.OutcomeTable:
    """Return the outcomes in a file with this sha-256. Raises ValidationFailed."""
    with named_in_errors(path):
        content = read_bytes(path, outcomes.MAX_FILE)
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"it has other content than {ENTRY_FILE} states")
        return outcomes.decode(content)


def read_content(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file. Raises ValidationFailed."""
    with named_in_errors(path):
        return read_bytes(path, most)


def parse_entry(path: Path, content: bytes) -> EntryFile:
    """Return the content of entry.json. Raises ValidationFailed naming every wrong field."""
    fix = "restore the file that fsbench wrote instead of editing it"
    with refuse_invalid(ValidationFailed, f"{path} is no valid entry", fix, EntryFile.model_fields):
        return EntryFile.model_validate_json(content)


def restore_results(path: Path, file: EntryFile) -> list[Result]:
    """Return the results of an entry. Raises ValidationFailed for one named like another column."""
    digests = [spec.digest() for spec in file.specs]
    results = []
    for line in file.results:
        made = vars(file.environments[line.environment]).copy()
        cost = None if line.cost is None else file.costs[line.cost]
        made |= {"started": line.started, "seconds": line.seconds, "cost": cost}
        manifest = None if line.manifest is None else file.manifests[line.manifest]
        result = Result.model_construct(
            RESULT_FIELDS,
            backbone=file.models[line.model],
            dataset=file.datasets[line.dataset],
            spec=file.specs[line.spec],
            manifest_hash=manifest,
            provenance=Provenance.model_construct(PROVENANCE_FIELDS, **made),
            **{name: getattr(line, name) for name in SCORED},
        )
        if line.column != str(result.column):
            raise ValidationFailed(
                f"{path}: a result of {result.column} is named '{line.column}'", fix=outcomes.FIX
            )
        vars(result)["spec_digest"] = digests[line.spec]
        results.append(result)
    return results


def write_entry(
    folder: Path,
    pairs: Iterable[tuple[Result, Records]],
    controls: Collection[str] = (),
    level: int = outcomes.FAST,
    **facts: Any,
) -> Entry:
    """Write results as an entry, sorted by model and column, and return it.

    controls: identities of models; level: of compression; facts: other fields of EntryFile.
    """
    ordered = in_order(pairs)
    content = outcomes.encode([records for _, records in ordered], level)
    digest = hashlib.sha256(content).hexdigest()
    file = make_file([result for result, _ in ordered], controls, outcomes=digest, **facts)
    text = file.to_text().encode()
    outcomes.require_size(str(folder / ENTRY_FILE), len(text), MAX_ENTRY)
    write_atomic(folder / file.outcomes_file, content)
    write_atomic(folder / ENTRY_FILE, text)
    for path in folder.glob(f"outcomes-*{outcomes.SUFFIX}"):
        if path.name != file.outcomes_file:
            with suppress(OSError):
                path.unlink()
    loaded = tuple(Loaded(folder, *pair) for pair in ordered)
    return Entry(folder, file, hashlib.sha256(text).hexdigest(), loaded)


def in_order(pairs: Iterable[tuple[Result, Records]]) -> list[tuple[Result, Records]]:
    """Return results as an entry has them: by model and column."""
    return sorted(pairs, key=lambda p: (p[0].backbone.identity, p[0].column, p[0].spec_digest))


def digest_outcomes(pairs: Iterable[tuple[Result, Records]]) -> str:
    """Return the sha-256 that the file of outcomes of these results has on a board."""
    content = outcomes.encode([records for _, records in in_order(pairs)], outcomes.SMALL)
    return hashlib.sha256(content).hexdigest()


def make_file(results: Sequence[Result], controls: Collection[str], **facts: Any) -> EntryFile:
    """Return the content of entry.json for these results, in their order."""
    parts: dict[str, dict[str, Any]] = {f"{name}s": {} for name in PARTS}
    lines = []
    for result in results:
        made = result.provenance.model_dump(exclude={"started", "seconds", "cost"})
        used = result.backbone, result.dataset, result.spec, Environment.model_validate(made)
        others = result.provenance.cost, result.manifest_hash
        positions = {}
        for name, part in zip(PARTS, (*used, *others), strict=True):
            if part is None:
                continue
            numbered, text = parts[f"{name}s"], part if isinstance(part, str) else part.canonical()
            numbered.setdefault(text, part)
            positions[name] = list(numbered).index(text)
        line = ResultLine(
            **{name: getattr(result, name) for name in SCORED},
            **positions,
            column=str(result.column),
            started=result.provenance.started,
            seconds=result.provenance.seconds,
        )
        lines.append(line)
    facts |= {name: tuple(numbered.values()) for name, numbered in parts.items()}
    is_control = [model.identity in controls for model in facts["models"]]
    facts["controls"] = tuple(i for i, value in enumerate(is_control) if value)
    return EntryFile(results=tuple(lines), **facts)
