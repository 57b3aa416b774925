"""What an evaluation is asked for: tasks, and the fields of their specs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from fsbench import backbones, data
from fsbench.backbones.base import Backbone
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.progress import Reporter
from fsbench.core.specs import (
    BN_MODES,
    FITTED,
    SAMPLING,
    SGD,
    EpisodeSpec,
    EpisodicSpec,
    FittedSpec,
    ImageSpec,
    KnnSpec,
    Pool,
    ProbeSpec,
    Spec,
    Split,
)
from fsbench.core.tasks import Options, Probe, TaskId, resolve
from fsbench.data import TARGETS
from fsbench.data.manifest import episode_spec


@dataclass(frozen=True)
class Models:
    """The backbones to evaluate: references and how to read them.

    names: replace the names that follow from the references, one each; in_memory: backbones made
    by `Backbone.from_module`, by their reference.
    """

    refs: tuple[str, ...]
    arch: str | None = None
    random_init: int | None = None
    names: tuple[str, ...] = ()
    in_memory: Mapping[str, Backbone] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        models: str | Backbone | Sequence[str | Backbone],
        arch: str | None = None,
        random_init: int | None = None,
        name: str | None = None,
    ) -> Models:
        """Return the models that a user names; raise UsageError if they share a name."""
        each = [models] if isinstance(models, str | Backbone) else list(models)
        if name is not None and len(each) > 1:
            raise UsageError(
                f"--name {name} for {len(each)} models", fix="name one model at a time"
            )
        refs = tuple(model if isinstance(model, str) else model.facts.ref for model in each)
        in_memory = {model.facts.ref: model for model in each if isinstance(model, Backbone)}
        repeated = [ref for ref in in_memory if refs.count(ref) > 1]
        if repeated:
            raise UsageError(f"two models are called {repeated[0]}", fix="give each its own name")
        return cls(refs, arch, random_init, (name,) if name else (), in_memory)

    def load(self, index: int, device: str, report: Reporter) -> Backbone:
        """Return a backbone on a device, loaded unless it is in memory."""
        ref = self.refs[index]
        if ref in self.in_memory:
            return self.in_memory[ref].on(device)
        return backbones.load(
            ref, arch=self.arch, random_init=self.random_init, device=device, report=report
        )


PROBE_PREFIX = "probe"
PROBE_FIELDS: dict[Probe, tuple[str, ...]] = {
    "probe": ("augmentation", "views", "schedule", "select"),
    "knn": ("k", "metric", "weights", "temperature"),
}
"""What can be set of each probe: all that a column's name tells apart."""
HELD_OUT = 0.1
"""Part of the official train images on which a rate is tried that has seen no test image."""


@dataclass(frozen=True)
class ProbeSettings:
    """values: fields of probes, as text; each goes to the probe that has it.

    Raises UnknownName for another field, UsageError for a value that does not fit.
    """

    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [name for names in PROBE_FIELDS.values() for name in names]
        for name in self.values:
            if name not in known:
                raise UnknownName(f"setting of {PROBE_PREFIX}", name, known)
        for probe in PROBE_FIELDS:
            self.fields(probe)

    def refuse_unused(self, tasks: tuple[TaskId, ...]) -> None:
        """Raises UsageError for a setting of a probe that no task is."""
        for probe, names in PROBE_FIELDS.items():
            unused = [name for name in names if name in self.values]
            if unused and all(task.probe != probe for task in tasks):
                raise UsageError(
                    f"{PROBE_PREFIX}.{unused[0]} is set, and no task is a {probe}",
                    fix=f"add a task such as eurosat:{probe}",
                )

    def fields(self, probe: Probe) -> dict[str, Any]:
        """Those of one probe, as its spec holds them."""
        mine: dict[str, Any] = {n: v for n, v in self.values.items() if n in PROBE_FIELDS[probe]}
        if "views" in mine:
            mine = {"augmentation": "views", **mine}
        if mine.get("select") == "held_out":
            mine["held_out"] = HELD_OUT
        model: type[ProbeSpec | KnnSpec] = KnnSpec if probe == "knn" else ProbeSpec
        try:
            spec = model.model_validate(mine)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise UsageError(f"{PROBE_PREFIX}: {wrong}", fix="give another value") from error
        return {name: getattr(spec, name) for name in spec.model_fields_set}

    def spec(
        self, task: TaskId, image: ImageSpec, seed: int, limit: int | None
    ) -> ProbeSpec | KnnSpec:
        """The full spec; limit: epochs at most. An official split is used where there is one."""
        split = published_split(task)
        if task.probe == "knn":
            return KnnSpec.model_validate({**self.fields("knn"), "image": image, "split": split})
        fields = self.fields("probe")
        if split == "official":
            fields = {"held_out": HELD_OUT, **fields}
        epochs = min(ProbeSpec().epochs, limit or ProbeSpec().epochs)
        own = {"image": image, "epochs": epochs, "split": split, "seed": seed}
        return ProbeSpec.model_validate(fields | own)


def published_split(task: TaskId) -> Split:
    """Official where the publisher of the data set states one."""
    known = task.dataset in TARGETS.names() and TARGETS.load(task.dataset).FACTS.split
    return "official" if known else "derived_80_20"


NATIVE = "native"
MIN_SIDE, MAX_SIDE = 8, 1024
"""px, as in ImageSpec."""
DIGITS = 9
"""Of a number on the command line at most."""


def parse_tasks(tasks: Sequence[str | TaskId], options: Options) -> tuple[TaskId, ...]:
    """Return the tasks that ids and options name; the group `cdfsl` where there is no id."""
    chosen: dict[TaskId, None] = {}
    for task in tasks or ["cdfsl"]:
        named = (
            resolve([task], data.resolve, data.groups(), options)
            if isinstance(task, str)
            else [task]
        )
        chosen |= dict.fromkeys(named)
    return tuple(chosen)


def parse_input_size(text: str) -> int | None:
    """--input-size in px; None for native. Raises UsageError."""
    if text == NATIVE:
        return None
    if not (text.isdecimal() and len(text) <= DIGITS and MIN_SIDE <= int(text) <= MAX_SIDE):
        raise UsageError(
            f"input size '{text}'",
            fix=f"give a number of px in {MIN_SIDE}..{MAX_SIDE}, or native",
        )
    return int(text)


def parse_shard(text: str | None) -> tuple[int, int]:
    """i/n -> (i, n), (0, 1) where not given. Raises UsageError."""
    index, slash, parts = (text or "0/1").partition("/")
    whole = all(part.isdecimal() and len(part) <= DIGITS for part in (index, parts))
    if not (slash and whole and int(index) < int(parts)):
        raise UsageError(f"shard '{text}'", fix="give i/n with 0 <= i < n, e.g. 0/2 and 1/2")
    return int(index), int(parts)


@dataclass(frozen=True)
class EvaluationRequest:
    """What is wanted: the tasks and the fields of their specs.

    input_size: px, or None for the size that each backbone was trained at; limit: a smoke run of
    so many episodes (epochs of a probe); shard (i, n): only blocks i, i + n, ... of every cell;
    bn_mode: of affine tuning; settings: of fitted heads, by adaptation; probing: of probes. Raises
    UsageError for what no task uses.
    """

    tasks: tuple[TaskId, ...]
    input_size: int | None = 224
    episodes: int = 600
    limit: int | None = None
    seed: int = 0
    shard: tuple[int, int] = (0, 1)
    overwrite: bool = False
    bn_mode: str = "eval"
    settings: Mapping[str, FittedSpec] = field(default_factory=dict)
    probing: ProbeSettings = field(default_factory=ProbeSettings)

    def __post_init__(self) -> None:
        self.probing.refuse_unused(self.tasks)
        for name in self.settings.keys() - {task.head for task in self.tasks}:
            raise UsageError(f"settings of {name}, which no task uses", fix=f"add --adapt {name}")
        if self.bn_mode not in BN_MODES:
            raise UnknownName("bn mode", self.bn_mode, BN_MODES)
        if self.bn_mode != "eval" and all(task.head != "affine" for task in self.tasks):
            raise UsageError(
                f"--bn-mode {self.bn_mode} without affine tuning: frozen features know no other "
                "statistics than the source's",
                fix="add --adapt affine, or leave --bn-mode out",
            )

    @property
    def n_episodes(self) -> int:
        return min(self.episodes, self.limit or self.episodes)

    @property
    def limited(self) -> bool:
        return self.limit is not None

    def spec(self, task: TaskId, native: int) -> Spec:
        """The full spec of a task for a backbone trained at `native` px."""
        image = ImageSpec(input_size=self.input_size or native)
        if task.probe:
            return self.probing.spec(task, image, self.seed, self.limit)
        return EpisodicSpec.model_validate(
            {
                "adaptation": task.head,
                "episode": self.episode_spec(task),
                "image": image,
                "bn_mode": self.bn_mode if task.head == "affine" else "eval",
                "fitted": self.settings.get(task.head or ""),
            }
        )

    def episode_spec(self, task: TaskId) -> EpisodeSpec:
        return episode_spec(task, self.seed)

    def block_episodes(self, size: int) -> dict[int, range]:
        """Blocks of this shard -> the wanted episodes in them, for blocks of `size` episodes."""
        total, (index, parts) = self.n_episodes, self.shard
        blocks = range(index, -(-total // size), parts)
        return {b: range(b * size, min((b + 1) * size, total)) for b in blocks}


def pool_of(task: TaskId) -> Pool:
    """Which images a task draws from; probes use all of them."""
    return "full" if task.probe or task.protocol is None else SAMPLING[task.protocol].pool


def parse_head_settings(assignments: Iterable[str]) -> dict[str, FittedSpec]:
    """Adaptation -> all its settings. Raises UsageError, UnknownName."""
    given = parse_assignments(assignments)
    return {
        name: head_settings(name, values) for name, values in given.items() if name != PROBE_PREFIX
    }


def parse_probe_settings(assignments: Iterable[str]) -> ProbeSettings:
    """Settings of probes, `probe.views=8`. Raises UsageError, UnknownName."""
    return ProbeSettings(parse_assignments(assignments).get(PROBE_PREFIX, {}))


def parse_assignments(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """Adaptation, or `probe` -> setting -> value as text. Raises UsageError."""
    given: dict[str, dict[str, str]] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        adaptation, dot, setting = name.strip().partition(".")
        if not (equals and dot):
            raise UsageError(f"'{text}' sets nothing", fix="write ADAPTATION.SETTING=VALUE")
        values = given.setdefault(adaptation, {})
        if setting in values:
            raise UsageError(f"{name.strip()} is set twice", fix="set it once")
        values[setting] = value.strip()
    return given


def head_settings(adaptation: str, values: Mapping[str, str]) -> FittedSpec:
    """All settings of an adaptation, some of them given as text."""
    if adaptation in SGD:
        raise UsageError(
            f"{adaptation} is trained as published: it has nothing to set",
            fix=f"set one of {', '.join(name for name in FITTED.names() if name not in SGD)}",
        )
    spec = FITTED.load(adaptation)
    for name in values:
        if name not in spec.model_fields:
            raise UnknownName(f"setting of {adaptation}", name, spec.model_fields)
    try:
        return spec.model_validate(values)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UsageError(f"{adaptation}: {wrong}", fix="give another value") from error
