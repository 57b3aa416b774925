"""Evaluation requests: models, tasks and all settings, parsed once into typed objects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter

from fsbench import backbones, data
from fsbench.api.options import EvaluationOptions, ModelOptions, TaskOptions
from fsbench.backbones.base import Backbone, feature_spec
from fsbench.backbones.loading import make_request
from fsbench.backbones.preprocessing import NEEDED
from fsbench.core import specs
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import read_json, refuse_invalid, split_assignments
from fsbench.core.options import split_values
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.registry import CODE
from fsbench.core.specs import FITTED, EpisodicSpec, ProbeSpec, Spec
from fsbench.core.tasks import PROBES, USER_DATA, Options, Probe, TaskId, resolve
from fsbench.data import TARGETS
from fsbench.data.episodes import episode_spec
from fsbench.results.verification import read_one_result

AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Model:
    """A model by its reference, or a backbone in memory; options: how references are loaded.

    features: as the options choose them.
    """

    ref: str
    options: ModelOptions
    features: specs.FeatureSpec
    in_memory: Backbone | None = None

    def load(
        self,
        device: str,
        report: Reporter = SILENT,
        needs: Iterable[str] = (),
        test_size: int | None = None,
    ) -> Backbone:
        """Return the backbone on a device; the rest as in `load_backbone`, with its errors."""
        if self.in_memory:
            return self.in_memory.on(device)
        return backbones.load_backbone(
            self.ref,
            arch=self.options.arch,
            random_init=self.options.random_init,
            device=device,
            report=report,
            features=self.features,
            needs=needs,
            test_size=test_size,
        )


def parse_models(options: ModelOptions) -> list[Model]:
    """Return the models, each once.

    Raise UsageError for two of one name, a name for several, one that cannot be loaded, and choices
    about features of a backbone in memory: `Backbone.from_module` takes them.
    """
    several = [options.model] if isinstance(options.model, str | Backbone) else options.model
    models: dict[str, Model] = {}
    names = ("pool", "layers", "features", "mean", "std", "dtype")
    features = feature_spec(**{name: getattr(options, name) for name in names})
    for source in several:
        ref, in_memory = (source, None) if isinstance(source, str) else (source.facts.ref, source)
        model = models.setdefault(ref, Model(ref, options, features, in_memory))
        if model.in_memory is not in_memory:
            raise UsageError(f"two models are called {ref}", fix="give each its own name")
        if in_memory is None:
            make_request(ref, options.arch, options.random_init).check()
        elif features != specs.NATIVE_FEATURES:
            raise UsageError(
                f"{' '.join(features.variant)} for {ref}, a backbone in memory",
                fix="pass them to Backbone.from_module",
            )
    if options.name is not None and len(models) > 1:
        raise UsageError(f"one name for {len(models)} models", fix="name one model at a time")
    return list(models.values())


FORM = "NAME.SETTING=VALUE, e.g. ridge.lam=10"
PROBE_PREFIX = "probe"
PROBE_FIELDS: dict[Probe, tuple[str, ...]] = {
    "probe": ("schedule", "select", "epoch", "score"),
    "knn": ("k", "metric", "score"),
}
"""Settings of each probe, all visible in the name of its column."""
HELD_OUT = 0.1
"""Part of the train images on which rate and epoch are chosen by default."""


class FixedSpec(NamedTuple):
    """A complete spec, its number of episodes, and whether the result is a quick test."""

    spec: Spec
    episodes: int = 1
    limited: bool = False


@dataclass(frozen=True)
class EvaluationRequest:
    """The tasks to evaluate and how to make their specs.

    options: apart from the tasks that they name; shard (i, n): only every nth block, from the ith
    on in the first task, and each task starts at the next shard; fixed: complete specs of tasks, in
    place of options.
    """

    tasks: tuple[TaskId, ...]
    options: TaskOptions = field(default_factory=TaskOptions)
    shard: tuple[int, int] = (0, 1)
    overwrite: bool = False
    fixed: Mapping[TaskId, FixedSpec] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Mapping[str, Mapping[str, str]]:
        """Head, or `probe` -> setting that differs from the default -> its value as text."""
        return group_settings(self.options.set)

    def check_settings(self) -> None:
        """Raise UsageError or UnknownName for settings that do not fit, or that no task uses."""
        heads, probes = ({getattr(t, kind) for t in self.tasks} for kind in ("head", "probe"))
        for name, values in self.settings.items():
            if name in specs.SGD:
                others = ", ".join(n for n in FITTED.names() if n not in specs.SGD)
                raise UsageError(f"{name} is trained as published", fix=f"set one of {others}")
            if name == PROBE_PREFIX:
                allowed = {field for fields in PROBE_FIELDS.values() for field in fields}
                for key in values.keys() - allowed:
                    raise UnknownName(f"setting of {name}", key, allowed)
                with refuse_invalid(UsageError, name, "choose another value"):
                    for probe in PROBES:
                        self.probe_spec(TaskId("", probe=probe), probe, specs.ImageSpec())
                used = {n for probe in PROBES if probe in probes for n in PROBE_FIELDS[probe]}
                fix = "add a task such as eurosat:probe or eurosat:knn"
            else:
                read_settings(FITTED.load(name), name, values)
                used = {*values} if name in heads else set()
                fix = f"add --heads {name}"
            for key in values.keys() - used:
                raise UsageError(f"{name}.{key} is set, and no task uses it", fix=fix)
        if self.options.bn_mode != "eval" and "affine" not in heads:
            raise UsageError(
                f"--bn-mode {self.options.bn_mode} without affine tuning: features are frozen",
                fix="add --heads affine, or leave --bn-mode out",
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """The facts about preprocessing that a backbone must state."""
        return tuple(name for name in NEEDED if name != "input_size" or not self.test_size)

    @property
    def test_size(self) -> int | None:
        """An input size (px) of the request, None where each backbone has its own."""
        sizes = [file.spec.image.input_size for file in self.fixed.values()]
        size = self.options.input_size
        return next(iter(sizes), size if isinstance(size, int) else None)

    @property
    def n_episodes(self) -> int:
        """Episodes of every task without a spec of its own."""
        return min(self.options.episodes, self.options.limit or self.options.episodes)

    def is_limited(self, task: TaskId) -> bool:
        """Return whether the result of a task is a quick test."""
        return self.fixed[task].limited if task in self.fixed else self.options.limit is not None

    def spec(self, task: TaskId, native: int | None, study: int | None = None) -> Spec:
        """Return the full spec of a task for a backbone trained at `native` px.

        study: resolution at which the study of its recipe evaluates it, if it says so. Raises
        UsageError where the size follows from `native`, and that is unknown.
        """
        if task in self.fixed:
            return self.fixed[task].spec
        crop = {"resize_factor": 1 / self.options.crop} if self.options.crop else {}
        size, interpolation = self.choose_size(native, study), self.options.interpolation
        image = specs.ImageSpec(input_size=size, interpolation=interpolation, **crop)
        if task.probe:
            return self.probe_spec(task, task.probe, image)
        return EpisodicSpec.model_validate(
            {
                "adaptation": task.head,
                "episode": self.episode_spec(task),
                "image": image,
                "bn_mode": self.options.bn_mode if task.head == "affine" else "eval",
                "fitted": self.settings.get(task.head or ""),
            }
        )

    def probe_spec(
        self, task: TaskId, probe: Probe, image: specs.ImageSpec
    ) -> ProbeSpec | specs.KnnSpec:
        """Return the spec of a probe, with the split and metric of the publisher of its images."""
        target = TARGETS.load(task.dataset).FACTS if task.dataset in TARGETS.names() else None
        is_official = bool(target and target.split)
        chosen = self.settings.get(PROBE_PREFIX, {}).items()
        fields: dict[str, Any] = {"score": target.metric} if target else {}
        fields |= {"image": image, "split": "official" if is_official else "derived_80_20"}
        fields |= {name: value for name, value in chosen if name in PROBE_FIELDS[probe]}
        if probe == "knn":
            return specs.KnnSpec.model_validate(fields)
        epochs = min(ProbeSpec().epochs, self.options.limit or ProbeSpec().epochs)
        fields = {"select": "held_out", "epochs": epochs, "seed": self.options.seed} | fields
        if fields["select"] == "held_out":
            fields.setdefault("epoch", "best")
        if is_official or fields["select"] == "held_out":
            fields["held_out"] = HELD_OUT
        return ProbeSpec.model_validate(fields)

    def choose_size(self, native: int | None, study: int | None) -> int:
        """Return the resolution (px) of images. Raise UsageError if nothing states it."""
        size = self.options.input_size
        if isinstance(size, int):
            return size
        if study and size == AUTO:
            return study
        if native is None:
            raise UsageError("the size of training is unknown", fix="add --input-size, e.g. 64")
        return specs.choose_resolution(native) if size == AUTO else native

    def episode_spec(self, task: TaskId) -> specs.EpisodeSpec:
        """Return what keys the episodes of an episodic task."""
        spec = self.fixed[task].spec if task in self.fixed else None
        if isinstance(spec, EpisodicSpec):
            return spec.episode
        return episode_spec(task, self.options.seed, self.options.n_query)

    def block_episodes(self, task: TaskId, size: int) -> dict[int, range]:
        """Return the episodes to compute in each block of `size` episodes of this shard."""
        total = self.fixed[task].episodes if task in self.fixed else self.n_episodes
        index, parts = self.shard
        first = (index - self.tasks.index(task)) % parts
        blocks = range(first, -(-total // size), parts)
        return {b: range(b * size, min((b + 1) * size, total)) for b in blocks}


def read_request(options: EvaluationOptions) -> EvaluationRequest:
    """Return the request of all options of an evaluation; heads may be code of the user.

    Raises UsageError, UnknownName, ValidationFailed.
    """
    heads = {h: FITTED.add(h) if h.startswith(CODE) else h for h in options.heads or ()}
    names = [*heads.values()]
    if len({*names}) < len(names):
        twice = max(names, key=names.count)
        raise UsageError(f"two heads are called {twice}", fix="give each function its own name")
    if options.spec:  # whose heads may be code that `heads` names
        suite = [head for head in heads if not head.startswith(CODE)]
        if replace(options, heads=suite or None).states_specs:
            raise UsageError(
                "options of specs beside --spec, which states them all",
                fix="leave out everything but the model, data sets, machine and output",
            )
        request = request_of_specs([*map(Path, options.spec)], options.task_names)
    else:
        request = build_request(replace(options, heads=names or None))
    return replace(request, shard=parse_shard(options.shard), overwrite=options.overwrite)


def build_request(options: TaskOptions) -> EvaluationRequest:
    """Return the request of all tasks that options name. Raise UsageError, UnknownName."""
    request = EvaluationRequest(parse_tasks(options), options)
    request.check_settings()
    return request


def parse_tasks(options: TaskOptions) -> tuple[TaskId, ...]:
    """Return the tasks that ids and options name; the group `cdfsl` where there is no id."""
    parts = Options.model_validate(options, from_attributes=True)
    named: list[TaskId] = []
    for task in split_values(options.tasks or "cdfsl"):
        is_whole = isinstance(task, TaskId)
        named += [task] if is_whole else resolve(task, data.catalog.find_datasets, parts)
    return tuple(dict.fromkeys(named))


def parse_shard(text: str | None) -> tuple[int, int]:
    """Return (i, n) of i/n, (0, 1) for None. Raise UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text or "0/1")
    if match is None or int(match[1]) >= int(match[2]):
        raise UsageError(f"shard '{text}'", fix="write i/n with 0 <= i < n, e.g. 0/2 and 1/2")
    return int(match[1]), int(match[2])


def pool_of(task: TaskId) -> specs.Pool:
    """Return which images a task draws from; probes use all of them."""
    return "full" if task.probe or task.protocol is None else specs.SAMPLING[task.protocol].pool


def group_settings(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return head, probe or analysis -> setting -> value as text. Raise UsageError."""
    values_by_name: dict[str, dict[str, str]] = {}
    for setting, value in split_assignments(assignments, FORM):
        name, dot, key = setting.partition(".")
        if not dot:
            raise UsageError(f"'{setting}={value}' sets nothing", fix=f"write {FORM}")
        if key in values_by_name.setdefault(name, {}):
            raise UsageError(f"{setting} is set twice", fix="set it once")
        values_by_name[name][key] = value
    return values_by_name


Settings = TypeVar("Settings", bound=specs.Frozen)


def read_settings(kind: type[Settings], name: str, values: Mapping[str, object]) -> Settings:
    """Return all settings of a head or analysis, some of them stated. Raise UsageError."""
    with refuse_invalid(UsageError, name, "choose another value", kind.model_fields):
        return kind.model_validate(values)


def request_of_specs(paths: Sequence[Path], datasets: Sequence[str] = ()) -> EvaluationRequest:
    """Return the request that evaluates specs exactly as results, or files of specs, state them.

    datasets: names or folder:DIR, needed for files and for folders of images. Raises UsageError for
    lost code, no data set, and two specs of one task; ValidationFailed.
    """
    fixed: dict[TaskId, FixedSpec] = {}
    for path in paths:
        names = [*datasets]
        if path.is_file():
            with refuse_invalid(ValidationFailed, f"{path} is no spec", "correct these fields"):
                spec: Spec = TypeAdapter(Spec).validate_python(read_json(path))
            one = FixedSpec(spec, getattr(spec, "n_episodes", 1))
        else:
            result = read_one_result(path).result
            one = FixedSpec(result.spec, result.score.n, "limited" in result.flags)
            names = names or [result.task.dataset]
        fitted = one.spec.fitted if isinstance(one.spec, EpisodicSpec) else None
        if isinstance(fitted, specs.UnreadSettings):
            raise UsageError(
                f"{path}: the head is code of a file with sha-256 {fitted.code[:12]}...",
                fix="pass the unchanged file: --heads py:FILE:FUNCTION",
            )
        if not names:
            raise UsageError(f"{path} names no data set", fix="add -t DATASET")
        for name in names:
            dataset = name if name.startswith(USER_DATA) else data.resolve_alias(name)
            task = TaskId.of(dataset, one.spec)
            if fixed.setdefault(task, one) != one:
                raise UsageError(f"two specs of {task}", fix="evaluate them one after the other")
    return EvaluationRequest(tuple(fixed), fixed=fixed)
