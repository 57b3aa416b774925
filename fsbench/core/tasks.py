"""Task ids: `dataset[:NwKs][/ADAPTATION][@PROTOCOL]`, `dataset:probe`, `dataset:knn`, and groups.

Parts that an id leaves out come from options, else from defaults. A part given twice, or one that
nothing knows, is an error before any work starts. A folder of one's own is `folder:DIR`; since DIR
may hold `:`, `/` and `@`, what follows it counts only from a `:NwKs`, `:probe` or `:knn` on that is
spelled right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.specs import FITTED, Adaptation, Protocol

Kind = Literal["probe", "episodic"]
T = TypeVar("T", bound=str)

FOLDER = "folder:"
Probe = Literal["probe", "knn"]
PROBES: tuple[Probe, ...] = get_args(Probe)
"""The linear probe, and nearest neighbours: on whole data sets, not on episodes."""
PROBED = "transfer"
"""The group whose data sets are probed where an id says no more."""
DEFAULT_WAY = 5
DEFAULT_SHOTS = (1, 5, 20, 50)
DEFAULT_ADAPTATIONS: tuple[Adaptation, ...] = ("linear",)
DEFAULT_PROTOCOL: Protocol = "ibm"
ADAPTATIONS: tuple[Adaptation, ...] = FITTED.names()
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
LARGEST = 1000
"""Upper end of way and shots, as in EpisodeSpec."""

_WHOLE = re.compile(r"\d{1,9}")
_SHAPE = re.compile(r"(\d{1,9})w(\d{1,9})s")
_NAMED = re.compile(r"([^:/@]+)(?::([^:/@]+))?(?:/([^:/@]+))?(?:@([^:/@]+))?")
_FOLDER = re.compile(
    rf"(folder:.+?)(?::({'|'.join(PROBES)}|{_SHAPE.pattern.replace('(', '(?:')})"
    rf"(?:/({'|'.join(ADAPTATIONS)}))?(?:@({'|'.join(PROTOCOLS)}))?)?"
)


@dataclass(frozen=True)
class Task:
    """One cell of a benchmark, but for backbone, input size and seed.

    dataset: a data set's name or folder:DIR. A probe has neither shots, adaptation nor protocol,
    and its n_way means nothing.
    """

    dataset: str
    n_way: int = DEFAULT_WAY
    k_shot: int | None = None
    adaptation: Adaptation | None = None
    protocol: Protocol | None = None
    probe: Probe | None = None

    @property
    def id(self) -> str:
        """e.g. eurosat:5w1s/linear@ibm or eurosat:probe; a folder goes by its name in results."""
        name = folder_name(self.dataset) if self.dataset.startswith(FOLDER) else self.dataset
        if self.probe:
            return f"{name}:{self.probe}"
        return f"{name}:{self.n_way}w{self.k_shot}s/{self.adaptation}@{self.protocol}"


class Asked(NamedTuple):
    """The parts of a task id as written; None where one is left out."""

    text: str
    dataset: str
    shape: str | None
    adaptation: str | None
    protocol: str | None


@dataclass(frozen=True)
class Options:
    """What the command line says of all tasks; None where it is silent. Kinds: what to run."""

    kinds: tuple[Kind, ...] = ("probe", "episodic")
    shots: Sequence[int] | None = None
    way: int | None = None
    adaptations: Sequence[str] | None = None
    protocol: str | None = None


SILENT_OPTIONS = Options()


def resolve(
    texts: Iterable[str],
    canonical: Callable[[str], str],
    groups: Mapping[str, Sequence[str]],
    options: Options = SILENT_OPTIONS,
) -> tuple[Task, ...]:
    """The tasks that the ids and options name, each once, in the order given.

    canonical: a data set's name from its name or alias, raising UnknownName; groups: name -> data
    sets. Raises UsageError for an id that is malformed, says a part twice or asks for a kind that
    is not run here, and UnknownName.
    """
    found: dict[Task, None] = {}
    for text in texts:
        asked = parse(text)
        _refuse_twice(asked, options)
        cells = list(_cells(asked, options))
        for dataset in _datasets(asked.dataset, canonical, groups):
            found |= dict.fromkeys(Task(dataset, *cell) for cell in cells)
    return tuple(found)


def parse(text: str) -> Asked:
    """The parts of a task id. Raises UsageError when it is malformed."""
    pattern = _FOLDER if text.startswith(FOLDER) else _NAMED
    match = pattern.fullmatch(text)
    if match is None:
        raise UsageError(f"malformed task '{text}'", fix=_grammar())
    return Asked(text, *match.groups())


def folder_name(ref: str) -> str:
    """Name of the data set folder:DIR: folder-<last part of DIR>, safe as a file name.

    Raises UsageError for what is no path.
    """
    try:
        last = Path(ref.removeprefix(FOLDER)).expanduser().resolve().name
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"'{ref}' names no folder: {error}", fix="write folder:DIR") from error
    return "folder-" + re.sub(r"[^\w.+@=-]", "-", last)


def integers(values: Iterable[str], what: str) -> tuple[int, ...]:
    """Whole numbers from repeated or comma-separated option values. Raises UsageError."""
    parts = [part.strip() for value in values for part in str(value).split(",")]
    wrong = [part for part in parts if not _WHOLE.fullmatch(part)]
    if wrong:
        raise UsageError(f"{what} '{wrong[0]}' is no whole number", fix=f"write {what} 1,5")
    return tuple(int(part) for part in parts)


def _datasets(
    name: str, canonical: Callable[[str], str], groups: Mapping[str, Sequence[str]]
) -> Sequence[str]:
    if name.startswith(FOLDER):
        return (name,)
    return groups[name] if name in groups else (canonical(name),)


_Cell = tuple[int, int | None, Adaptation | None, Protocol | None, Probe | None]


def _cells(asked: Asked, options: Options) -> Iterator[_Cell]:
    """All of a Task but its data set, for every kind that the id leaves possible."""
    probe: Probe = "knn" if asked.shape == "knn" else "probe"
    bare = not (asked.shape or asked.adaptation or asked.protocol)
    if asked.shape in PROBES or (bare and asked.dataset == PROBED):
        if asked.adaptation or asked.protocol:
            raise UsageError(
                f"'{asked.text}': a probe has no adaptation and no protocol", fix=_grammar()
            )
        kinds: tuple[Kind, ...] = ("probe",)
    elif not bare:
        kinds = ("episodic",)
    else:
        kinds = options.kinds
    for kind in kinds:
        if kind not in options.kinds:
            raise UsageError(
                f"'{asked.text}': this command runs no {kind} tasks",
                fix="use fsbench benchmark, which runs all kinds",
            )
        probed: _Cell = (DEFAULT_WAY, None, None, None, probe)
        yield from (probed,) if kind == "probe" else _episodic(asked, options)


def _episodic(asked: Asked, options: Options) -> Iterator[_Cell]:
    way, shots = options.way or DEFAULT_WAY, tuple(options.shots or DEFAULT_SHOTS)
    if asked.shape:
        way, k = _shape(asked)
        shots = (k,)
    wrong = [n for n in shots if not 1 <= n <= LARGEST]
    if wrong or not 2 <= way <= LARGEST:
        raise UsageError(
            f"'{asked.text}' asks for {way} ways and {(wrong or shots)[0]} shots",
            fix=f"ways lie in 2..{LARGEST}, shots in 1..{LARGEST}",
        )
    given = [asked.adaptation] if asked.adaptation else options.adaptations or DEFAULT_ADAPTATIONS
    adaptations = [_known("adaptation", value, ADAPTATIONS) for value in given]
    protocol = _known("protocol", asked.protocol or options.protocol or DEFAULT_PROTOCOL, PROTOCOLS)
    for adaptation, k in product(adaptations, shots):
        yield way, k, adaptation, protocol, None


def _shape(asked: Asked) -> tuple[int, int]:
    match = _SHAPE.fullmatch(asked.shape or "")
    if match is None:
        raise UsageError(f"malformed task '{asked.text}': '{asked.shape}'", fix=_grammar())
    return int(match[1]), int(match[2])


def _known(kind: str, given: str, allowed: Sequence[T]) -> T:
    for name in allowed:
        if name == given:
            return name
    raise UnknownName(kind, given, allowed)


def _refuse_twice(asked: Asked, options: Options) -> None:
    """Raises UsageError when the id and an option say the same part."""
    shaped = asked.shape not in {None, *PROBES}
    pairs = {
        "--shots": shaped and options.shots is not None,
        "--way": shaped and options.way is not None,
        "--adapt": asked.adaptation is not None and options.adaptations is not None,
        "--protocol": asked.protocol is not None and options.protocol is not None,
    }
    for flag, twice in pairs.items():
        if twice:
            raise UsageError(
                f"'{asked.text}' and {flag} say the same part",
                fix=f"leave it out of one: drop {flag}, or shorten the task",
            )


def _grammar() -> str:
    return "write DATASET, DATASET:5w1s, DATASET:5w1s/linear@ibm, DATASET:probe or DATASET:knn"
