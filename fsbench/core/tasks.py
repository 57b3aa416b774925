"""Identities of tasks, board columns and tracks: parsed once into a typed object, printed by `str`.

    eurosat:5w1s/linear@ibm                 task: data set, ways and shots, head, protocol
    eurosat:probe, eurosat:knn              task: a probe of the whole data set
    folder:DIR:5w1s/linear@ibm              task on images of the user, as hf-hub:ORG/NAME:...
    eurosat:5w1s/affine@ibm 224px bn-train  column: task, input size, variant of the spec

A `TaskPattern` of the command line may leave parts out (`eurosat`, `isic@startup`) or name a group
(`cdfsl:5w1s`); `resolve` completes it. References to images of the user may contain `:`, `/` and
`@`, so what follows them counts only from a valid `:NwKs`, `:probe` or `:knn`.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic_core import CoreSchema, core_schema

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.options import expand_path
from fsbench.core.specs import (
    FITTED,
    Adaptation,
    EpisodeSpec,
    EpisodicSpec,
    Frozen,
    Protocol,
    Spec,
    omitted,
)

Kind = Literal["probe", "episodic"]

FOLDER, HUB = "folder:", "hf-hub:"
USER_DATA = (FOLDER, HUB)
"""Prefixes of references to images of the user; results on them are flagged `custom`."""
Probe = Literal["probe", "knn"]
PROBES: tuple[Probe, ...] = get_args(Probe)
"""The linear probe and k nearest neighbours: evaluated on whole data sets, without episodes."""
PROBED = "transfer"
"""The group whose data sets are probed if a pattern states nothing else."""
DEFAULT_WAY = 5
DEFAULT_SHOTS = (1, 5, 20, 50)
DEFAULT_PROTOCOL: Protocol = "ibm"
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
LARGEST = 1000
"""Largest n_way and n_shot, as in EpisodeSpec."""
TRANSDUCTIVE = "transductive"
"""Word of a column's variant: the head sees all queries of an episode at once."""

GRAMMAR = "write DATASET, DATASET:5w1s, DATASET:5w1s/linear@ibm, DATASET:probe or DATASET:knn"
_USER_DATA = rf"(?:{'|'.join(USER_DATA)})"
_TASK = re.compile(
    rf"(?P<dataset>{_USER_DATA}.+|[^:\x00-\x1f\x7f]+):"
    rf"(?:(?P<probe>{'|'.join(PROBES)})|(?P<n_way>[1-9]\d{{0,8}})w(?P<n_shot>[1-9]\d{{0,8}})s"
    rf"/(?P<head>[\w-]+)@(?P<protocol>{'|'.join(PROTOCOLS)}))"
)
_COLUMN = re.compile(rf"(?P<task>{_TASK.pattern}) (?P<size>[1-9]\d{{0,3}})px(?P<variant>(?: \S+)*)")
_USER = re.compile(
    rf"({_USER_DATA}.+?)(?::({'|'.join(PROBES)}|\d{{1,9}}w\d{{1,9}}s)"
    rf"(?:/([\w-]+))?(?:@({'|'.join(PROTOCOLS)}))?)?"
)
_NAMED = re.compile(r"([^:/@]+)(?::([^:/@]+))?(?:/([^:/@]+))?(?:@([^:/@]+))?")
_QUERIED = re.compile(r"(.*?)(?:\?(\w+=[^/]*))?", re.DOTALL)


def head_names() -> tuple[Adaptation, ...]:
    """Return the names of all heads, those of the user's files included."""
    return (*FITTED.names(), *FITTED.custom())


@dataclass(frozen=True)
class TaskId:
    """A data set with an episodic setting or a probe: the unit of evaluation.

    dataset: a name, folder:DIR or hf-hub:ORG/NAME; a probe has no n_shot, head and protocol.
    """

    dataset: str
    n_way: int = DEFAULT_WAY
    n_shot: int | None = None
    head: Adaptation | None = None
    protocol: Protocol | None = None
    probe: Probe | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the task of a complete id. Raise UsageError if it is malformed or incomplete."""
        match = _TASK.fullmatch(text)
        if match is None:
            raise UsageError(f"malformed task '{text}'", fix=GRAMMAR)
        parts: dict[str, Any] = match.groupdict()
        if parts["probe"]:
            return cls(parts["dataset"], probe=parts["probe"])
        return cls(**parts | {name: int(parts[name]) for name in ("n_way", "n_shot")})

    @classmethod
    def of(cls, dataset: str, spec: Spec) -> Self:
        if isinstance(spec, EpisodicSpec):
            episode = spec.episode
            return cls(dataset, episode.n_way, episode.k_shot, spec.adaptation, spec.protocol)
        return cls(dataset, probe=spec.kind)

    def __str__(self) -> str:
        return f"{self.dataset}:{self.shape}{f'/{self.mode}' if self.mode else ''}"

    @property
    def shape(self) -> str:
        """Ways and shots, or the probe, e.g. 5w1s or knn."""
        return self.probe or f"{self.n_way}w{self.n_shot}s"

    @property
    def mode(self) -> str:
        """Head and protocol, e.g. linear@ibm; empty for a probe."""
        return "" if self.probe else f"{self.head}@{self.protocol}"

    @property
    def in_results(self) -> Self:
        """The task as results name it, images of the user by `user_data_name`."""
        return replace(self, dataset=user_data_name(self.dataset))


@dataclass(frozen=True)
class ColumnId:
    """Identity of a table column: a task, the input size (px) and the spec's variant.

    variant: the words of a spec that must never pass for its default, e.g. bn-train. In records a
    column is its text.
    """

    task: TaskId
    input_size: int
    variant: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the column of a text. Raise UsageError if it is malformed."""
        match = _COLUMN.fullmatch(text)
        if match is None:
            fix = "write a task and a size, e.g. eurosat:probe 64px"
            raise UsageError(f"'{text}' names no column", fix=fix)
        variant = tuple(match["variant"].split())
        return cls(TaskId.parse(match["task"]), int(match["size"]), variant)

    @classmethod
    def of(cls, task: TaskId, spec: Spec) -> Self:
        """Return the column of a task under a spec; other than 15 queries are part of it."""
        variant = spec.variant
        if isinstance(spec, EpisodicSpec) and spec.episode.n_query != EpisodeSpec().n_query:
            variant += (f"n_query={spec.episode.n_query}",)
        return cls(task.in_results, spec.image.input_size, variant)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        def read(value: object) -> ColumnId:
            if isinstance(value, cls):
                return value
            if not isinstance(value, str) or len(value) > 2000:
                raise ValueError("it is no text of at most 2000 characters")
            try:
                return cls.parse(value)
            except UsageError as error:
                raise ValueError(error.message) from error

        text = core_schema.to_string_ser_schema()
        return core_schema.no_info_plain_validator_function(read, serialization=text)

    def __str__(self) -> str:
        return " ".join([str(self.task), f"{self.input_size}px", *self.variant])

    def __lt__(self, other: "ColumnId") -> bool:
        """Order by data set, then by the number of shots (5 before 20), probes first."""
        one, two = ((c.task.dataset, c.task.n_shot or 0, str(c)) for c in (self, other))
        return one < two

    @property
    def transductive(self) -> bool:
        """Return whether an outcome depends on the other queries of its episode."""
        return TRANSDUCTIVE in self.variant

    @property
    def adaptation(self) -> str:
        """Head and variant, or probe and variant, e.g. affine bn-train."""
        words = (word for word in self.variant if word != TRANSDUCTIVE)
        return " ".join([self.task.head or self.task.shape, *words])

    def marked(self, word: str) -> Self:
        """Return the same column with one more word behind its variant."""
        return replace(self, variant=(*self.variant, word))


@dataclass(frozen=True)
class TaskPattern:
    """A data set or group as written on the command line, and the fields of TaskId behind it."""

    text: str
    dataset: str
    fields: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the parts of a text. Raise UsageError if it is malformed, and UnknownName."""
        match = (_USER if text.startswith(USER_DATA) else _NAMED).fullmatch(text)
        if match is None:
            raise UsageError(f"malformed task '{text}'", fix=GRAMMAR)
        dataset, shape, head, protocol = match.groups()
        fields: dict[str, Any] = {"probe": shape} if shape in PROBES else {}
        if shape and not fields:
            sizes = re.fullmatch(r"(\d{1,9})w(\d{1,9})s", shape)
            n_way, n_shot = map(int, sizes.groups()) if sizes else (0, 0)
            if not (2 <= n_way <= LARGEST and 1 <= n_shot <= LARGEST):
                ranges = f"ways lie in 2..{LARGEST}, shots in 1..{LARGEST}"
                raise UsageError(f"malformed task '{text}': '{shape}'", fix=f"{GRAMMAR}; {ranges}")
            fields = {"n_way": n_way, "n_shot": n_shot}
        if head:
            fields["head"] = require_name("adaptation", head, head_names())
        if protocol:
            fields["protocol"] = require_name("protocol", protocol, PROTOCOLS)
        if "probe" in fields and len(fields) > 1:
            raise UsageError(f"'{text}': a probe has no adaptation and no protocol", fix=GRAMMAR)
        return cls(text, dataset, fields)

    def covers(self, task: TaskId) -> bool:
        """Return whether a task agrees with all parts that are stated, whatever its data set."""
        return all(getattr(task, name) == value for name, value in self.fields.items())


class Options(Frozen):
    """Parts of all tasks that options state; None for the defaults. kinds: what to run."""

    kinds: tuple[Kind, ...] = ("probe", "episodic")
    shots: tuple[int, ...] | None = None
    way: int | None = None
    heads: tuple[str, ...] | None = None
    protocol: str | None = None


OPTION_OF = {"n_shot": "shots", "n_way": "way", "head": "heads", "protocol": "protocol"}
"""Field of a task -> the option that states it, too."""


def resolve(
    text: str, find_datasets: Callable[[str], Sequence[str]], options: Options
) -> tuple[TaskId, ...]:
    """Return the tasks that a pattern and options name.

    find_datasets: gives the data sets of a name, alias or group. Raise UnknownName, and UsageError
    for a malformed pattern, a part that an option also states, or a kind that is not run here.
    """
    pattern = TaskPattern.parse(text)
    for field, name in OPTION_OF.items():
        if field in pattern.fields and getattr(options, name):
            raise UsageError(
                f"'{text}' and --{name} say the same part",
                fix=f"leave it out of one: drop --{name}, or shorten the task",
            )
    kinds: tuple[Kind, ...] = options.kinds
    if pattern.fields or pattern.dataset == PROBED:
        is_probe = "probe" in pattern.fields or not pattern.fields
        kinds = ("probe",) if is_probe else ("episodic",)
    if not {*kinds} <= {*options.kinds}:
        raise UsageError(
            f"'{text}': this command runs no {kinds[0]} tasks",
            fix="use fsbench benchmark, which runs all kinds",
        )
    heads, protocol = options.heads or ("linear",), options.protocol or DEFAULT_PROTOCOL
    choices: dict[str, Sequence[Any]] = {
        "head": [require_name("adaptation", head, head_names()) for head in heads],
        "n_shot": options.shots or DEFAULT_SHOTS,
        "n_way": [options.way or DEFAULT_WAY],
        "protocol": [require_name("protocol", protocol, PROTOCOLS)],
        **{field: [value] for field, value in pattern.fields.items()},
    }
    tasks = [TaskId("", probe=pattern.fields.get("probe", "probe"))] if "probe" in kinds else []
    if "episodic" in kinds:
        chosen = (zip(choices, values, strict=True) for values in product(*choices.values()))
        tasks += [TaskId("", **dict(fields)) for fields in chosen]
    datasets = find_datasets(pattern.dataset)
    return tuple(replace(task, dataset=dataset) for dataset in datasets for task in tasks)


def require_name(kind: str, name: str, allowed: Sequence[str]) -> str:
    """Return a name that is allowed. Raise UnknownName for any other."""
    if name not in allowed:
        raise UnknownName(kind, name, allowed)
    return name


def user_data_name(ref: str) -> str:
    """Return the name that results give to a data set: its own, or that of the user's images.

    It is `short_name` with eight digits of the sha-256 of the whole reference, so none collide.
    """
    if not ref.startswith(USER_DATA):
        return ref
    full = ref
    if ref.startswith(FOLDER):
        folder, bits = parse_folder(ref)
        full = f"{folder}?bits={bits}" if bits else str(folder)
    return f"{short_name(ref)}+{hashlib.sha256(full.encode()).hexdigest()[:8]}"


def short_name(ref: str) -> str:
    """Return `folder-<last part of DIR>`, `hub-ORG-NAME` or the name of a data set.

    Random draws are keyed by it, so a folder gives the same episodes wherever it lies.
    """
    if ref.startswith(FOLDER):
        ref = f"folder-{parse_folder(ref)[0].name}"
    elif ref.startswith(HUB):
        source = re.split("[?@]", ref.removeprefix(HUB))[0]
        ref = f"hub-{Path(source).name if source[:1] in {'/', '.', '~'} else source}"
    else:
        return ref
    return re.sub(r"[^\w.+@=-]", "-", ref)[:80]


def strip_digest(name: str) -> str:
    """Return the short name of a name that `user_data_name` made; other names are unchanged."""
    return re.sub(r"^((?:folder|hub)-.*)\+[0-9a-f]{8}$", r"\1", name)


def parse_folder(ref: str) -> tuple[Path, int | None]:
    """Return the absolute path of folder:DIR[?bits=N], and N. Raise UsageError for other text."""
    parts = _QUERIED.fullmatch(ref.removeprefix(FOLDER))
    text, query = parts.groups(default="") if parts else ("", "")
    try:
        return expand_path(text).resolve(), parse_bits(parse_query(query, ref, ("bits",)))
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"'{ref}' names no folder: {error}", fix="write folder:DIR") from error


def parse_query(query: str, ref: str, names: Sequence[str] | None = None) -> dict[str, str]:
    """Return the options `name=value&...` of a reference. Raise UsageError, and UnknownName."""
    options: dict[str, str] = {}
    for assignment in filter(None, query.split("&")):
        name, _, value = assignment.partition("=")
        if names is not None and name not in names:
            raise UnknownName(f"option of {ref.partition(':')[0]}:", name, names)
        if not name.isidentifier() or not value or options.setdefault(name, value) != value:
            raise UsageError(
                f"'{assignment}' in '{ref}' sets nothing, or {name} twice",
                fix="write ?name=value&name=value, each name once",
            )
    return options


def parse_bits(options: Mapping[str, str]) -> int | None:
    """Return the bits in use of 16-bit images, None if not stated. Raise UsageError."""
    bits = options.get("bits")
    if bits is not None and not (bits.isdecimal() and 8 <= int(bits) <= 15):
        raise UsageError(f"?bits={bits} is not in 8..15", fix="give the bits that are in use")
    return None if bits is None else int(bits)


Data = Literal["official", "subset"]


class Track(Frozen):
    """Facts that all results of one table share; null where a table may mix them.

    protocol: null for probes alone; input_size: px; adaptation: head and variant; data: `subset`
    holds results with any flag; extra: columns outside of the table's ranking.
    """

    protocol: Protocol | None
    input_size: int
    transductive: bool = False
    adaptation: str | None = None
    data: Data | None = None
    extra: bool = omitted(False)

    @classmethod
    def of(cls, column: ColumnId, data: Data | None = None) -> "Track":
        """Return the track of a column; with `data`, the one of a board with a version."""
        return cls(
            protocol=column.task.protocol,
            input_size=column.input_size,
            transductive=column.transductive,
            adaptation=column.adaptation if data else None,
            data=data,
        )

    @property
    def label(self) -> str:
        """e.g. ibm 64px, 64px, or linear ibm 224px official."""
        words = [self.adaptation, self.protocol, f"{self.input_size}px"]
        words += [TRANSDUCTIVE] if self.transductive else []
        words += [self.data, "extra columns" if self.extra else None]
        return " ".join(filter(None, words))
