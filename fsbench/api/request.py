"""Evaluation requests: models, tasks and all settings, parsed once into typed objects."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fsbench import backbones, data
from fsbench.api.options import ModelOptions, TaskOptions
from fsbench.backbones.base import Backbone, feature_spec
from fsbench.backbones.loading import make_request
from fsbench.backbones.preprocessing import NEEDED
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.io import parse_record, read_json, refuse_invalid, split_assignments
from fsbench.core.options import split_values
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import (
    FITTED,
    NATIVE_FEATURES,
    SAMPLING,
    SGD,
    EpisodeSpec,
    EpisodicSpec,
    FeatureSpec,
    FittedSpec,
    Frozen,
    ImageSpec,
    KnnSpec,
    Pool,
    ProbeSpec,
    Spec,
    Split,
    UnreadSettings,
    choose_resolution,
)
from fsbench.core.tasks import USER_DATA, Options, Probe, TaskId, resolve
from fsbench.data import TARGETS
from fsbench.data.episodes import episode_spec
from fsbench.results.verification import read_cell

AUTO = "auto"


def name_backbones(options: ModelOptions) -> dict[str, Backbone | None]:
    """Return the reference of each model, with its backbone if that is in memory already.

    Raises UsageError for two backbones of one name.
    """
    models = options.model
    backbones: dict[str, Backbone | None] = {}
    for model in [models] if isinstance(models, str | Backbone) else models:
        ref, backbone = (model, None) if isinstance(model, str) else (model.facts.ref, model)
        if backbones.setdefault(ref, backbone) is not backbone:
            raise UsageError(f"two models are called {ref}", fix="give each its own name")
    return backbones


def check_models(options: ModelOptions) -> None:
    """Raise UsageError for models that cannot be loaded, before anything else is read.

    The choices about features are those of references: `Backbone.from_module` takes its own.
    """
    backbones, name, features = name_backbones(options), options.name, make_feature_spec(options)
    if name is not None and len(backbones) > 1:
        raise UsageError(
            f"--name {name} for {len(backbones)} models", fix="name one model at a time"
        )
    for ref, in_memory in backbones.items():
        if in_memory is None:
            make_request(ref, options.arch, options.random_init).check()
        elif features != NATIVE_FEATURES:
            raise UsageError(
                f"{' '.join(features.words)} for {ref}, a backbone in memory",
                fix="pass pool, layers, mean, std and features to Backbone.from_module",
            )


def make_feature_spec(options: ModelOptions) -> FeatureSpec:
    """Return how features are taken. Raises UnknownName, UsageError."""
    return feature_spec(options.pool, options.layers, options.features, options.mean, options.std)


def load_named_backbone(
    options: ModelOptions,
    ref: str,
    device: str,
    report: Reporter = SILENT,
    needs: Iterable[str] = (),
    test_size: int | None = None,
    features: FeatureSpec | None = None,
) -> Backbone:
    """Return one of the models on a device, loaded unless it is in memory.

    needs, test_size: as in `load_backbone`; features: in place of those that the options choose.
    Raises UsageError, CheckpointError.
    """
    if in_memory := name_backbones(options)[ref]:
        return in_memory.on(device)
    return backbones.load_backbone(
        ref,
        arch=options.arch,
        random_init=options.random_init,
        device=device,
        report=report,
        features=features or make_feature_spec(options),
        needs=needs,
        test_size=test_size,
    )


PROBE_PREFIX = "probe"
PROBE_FIELDS: dict[Probe, tuple[str, ...]] = {
    "probe": ("augmentation", "views", "schedule", "select", "epoch", "score"),
    "knn": ("k", "metric", "weights", "temperature", "score"),
}
"""Settings of each probe, all visible in the name of its column."""
HELD_OUT = 0.1
"""Part of the train images on which rate and epoch are chosen by default."""


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of probes that differ from the defaults.

    values: fields of probe specs, as text; each goes to the probe that has it. Raises UnknownName
    for another field, UsageError for a value that does not fit.
    """

    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names_of_all = [name for names in PROBE_FIELDS.values() for name in names]
        for name in self.values:
            if name not in names_of_all:
                raise UnknownName(f"setting of {PROBE_PREFIX}", name, names_of_all)
        for probe in PROBE_FIELDS:
            self.fields(probe)

    def fields(self, probe: Probe) -> dict[str, Any]:
        """Return the settings of one probe as its spec holds them."""
        values: dict[str, Any] = {n: v for n, v in self.values.items() if n in PROBE_FIELDS[probe]}
        if "views" in values:
            values = {"augmentation": "views", **values}
        if probe == "probe" and values.setdefault("select", "held_out") == "held_out":
            values = {"held_out": HELD_OUT, "epoch": "best", **values}
        model: type[ProbeSpec | KnnSpec] = KnnSpec if probe == "knn" else ProbeSpec
        spec = read_settings(model, PROBE_PREFIX, values)
        return {name: getattr(spec, name) for name in spec.model_fields_set}

    def spec(
        self, task: TaskId, image: ImageSpec, seed: int, limit: int | None
    ) -> ProbeSpec | KnnSpec:
        """Return the full spec, with the split and metric of the publisher; limit: most epochs."""
        facts = TARGETS.load(task.dataset).FACTS if task.dataset in TARGETS.names() else None
        split: Split = "official" if facts and facts.split else "derived_80_20"
        default = {"score": facts.metric} if facts else {}
        if task.probe == "knn":
            fields = default | self.fields("knn")
            return KnnSpec.model_validate({**fields, "image": image, "split": split})
        fields = default | self.fields("probe")
        if split == "official":
            fields = {"held_out": HELD_OUT, **fields}
        epochs = min(ProbeSpec().epochs, limit or ProbeSpec().epochs)
        fixed = {"image": image, "epochs": epochs, "split": split, "seed": seed}
        return ProbeSpec.model_validate(fields | fixed)


@dataclass(frozen=True)
class EvaluationRequest:
    """The tasks to evaluate and how to make their specs.

    options: as given, apart from the tasks that they name; settings: of fitted heads, by head;
    probing: of probes; shard (i, n): only blocks i, i + n, ... of every task; specs: complete specs
    of tasks, in place of options and settings.
    """

    tasks: tuple[TaskId, ...]
    options: TaskOptions = field(default_factory=TaskOptions)
    settings: Mapping[str, FittedSpec] = field(default_factory=dict)
    probing: ProbeSettings = field(default_factory=ProbeSettings)
    shard: tuple[int, int] = (0, 1)
    overwrite: bool = False
    specs: Mapping[TaskId, Spec] = field(default_factory=dict)

    def require_use(self) -> None:
        """Raise UsageError for settings that no task uses."""
        probes = {task.probe for task in self.tasks if task.probe}
        used = {name for probe in probes for name in PROBE_FIELDS[probe]}
        for unused in self.probing.values.keys() - used:
            probe = next(probe for probe, names in PROBE_FIELDS.items() if unused in names)
            raise UsageError(
                f"{PROBE_PREFIX}.{unused} is set, and no task is a {probe}",
                fix=f"add a task such as eurosat:{probe}",
            )
        for name in self.settings.keys() - {task.head for task in self.tasks}:
            raise UsageError(f"settings of {name}, which no task uses", fix=f"add --heads {name}")
        bn_mode = self.options.bn_mode
        if bn_mode != "eval" and all(task.head != "affine" for task in self.tasks):
            raise UsageError(
                f"--bn-mode {bn_mode} without affine tuning: frozen features always use the "
                "source's batch-norm statistics",
                fix="add --heads affine, or leave --bn-mode out",
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """The facts about preprocessing that a backbone must state."""
        return tuple(name for name in NEEDED if name != "input_size" or not self.test_size)

    @property
    def test_size(self) -> int | None:
        """An input size (px) of the request, None where each backbone has its own."""
        sizes = [spec.image.input_size for spec in self.specs.values()]
        size = self.options.input_size
        return next(iter(sizes), size if isinstance(size, int) else None)

    @property
    def n_episodes(self) -> int:
        """Episodes per task."""
        return min(self.options.episodes, self.options.limit or self.options.episodes)

    def spec(self, task: TaskId, native: int | None, stated: int | None = None) -> Spec:
        """Return the full spec of a task for a backbone trained at `native` px.

        stated: the resolution at which the study of its recipe evaluates it, if it says so. Raises
        UsageError where the size follows from `native`, and that is unknown.
        """
        if task in self.specs:
            return self.specs[task]
        crop = {"resize_factor": 1 / self.options.crop} if self.options.crop else {}
        size, interpolation = self.choose_size(native, stated), self.options.interpolation
        image = ImageSpec(input_size=size, interpolation=interpolation, **crop)
        if task.probe:
            return self.probing.spec(task, image, self.options.seed, self.options.limit)
        return EpisodicSpec.model_validate(
            {
                "adaptation": task.head,
                "episode": self.episode_spec(task),
                "image": image,
                "bn_mode": self.options.bn_mode if task.head == "affine" else "eval",
                "fitted": self.settings.get(task.head or ""),
            }
        )

    def choose_size(self, native: int | None, stated: int | None) -> int:
        """Return the resolution (px) of images. Raise UsageError if nothing states it."""
        size = self.options.input_size
        if isinstance(size, int):
            return size
        if stated and size == AUTO:
            return stated
        if native is None:
            raise UsageError(
                "the size that the model was trained at is unknown",
                fix="add it, e.g. --input-size 64",
            )
        return choose_resolution(native) if size == AUTO else native

    def episode_spec(self, task: TaskId) -> EpisodeSpec:
        """Return what keys the episodes of an episodic task."""
        spec = self.specs.get(task)
        if isinstance(spec, EpisodicSpec):
            return spec.episode
        return episode_spec(task, self.options.seed, self.options.n_query)

    def block_episodes(self, size: int) -> dict[int, range]:
        """Return the episodes to compute in each block of `size` episodes of this shard."""
        total, (index, parts) = self.n_episodes, self.shard
        blocks = range(index, -(-total // size), parts)
        return {b: range(b * size, min((b + 1) * size, total)) for b in blocks}


def build_request(options: TaskOptions) -> EvaluationRequest:
    """Return the request of all tasks that options name. Raise UsageError, UnknownName."""
    settings = group_settings(options.set)
    probing = ProbeSettings(settings.pop(PROBE_PREFIX, {}))
    heads = parse_head_settings(settings)
    request = EvaluationRequest(parse_tasks(options), options, heads, probing)
    request.require_use()
    return request


def parse_tasks(options: TaskOptions) -> tuple[TaskId, ...]:
    """Return the tasks that ids and options name; the group `cdfsl` where there is no id."""
    parts = Options.model_validate(options, from_attributes=True)
    chosen: dict[TaskId, None] = {}
    for task in split_values(options.tasks or "cdfsl"):
        if isinstance(task, TaskId):
            chosen[task] = None
        else:
            named = resolve(task, data.resolve_alias, data.dataset_groups(), parts)
            chosen |= dict.fromkeys(named)
    return tuple(chosen)


def parse_shard(text: str | None) -> tuple[int, int]:
    """Return (i, n) of i/n, (0, 1) for None. Raise UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text or "0/1")
    if match is None or int(match[1]) >= int(match[2]):
        raise UsageError(f"shard '{text}'", fix="write i/n with 0 <= i < n, e.g. 0/2 and 1/2")
    return int(match[1]), int(match[2])


def pool_of(task: TaskId) -> Pool:
    """Return which images a task draws from; probes use all of them."""
    return "full" if task.probe or task.protocol is None else SAMPLING[task.protocol].pool


def parse_head_settings(values_by_head: Mapping[str, Mapping[str, str]]) -> dict[str, FittedSpec]:
    """Return head -> all its settings, some of them stated. Raise UsageError, UnknownName."""
    for head in values_by_head.keys() & set(SGD):
        raise UsageError(
            f"{head} is trained as published: it has nothing to set",
            fix=f"set one of {', '.join(name for name in FITTED.names() if name not in SGD)}",
        )
    return {n: read_settings(FITTED.load(n), n, values) for n, values in values_by_head.items()}


def group_settings(
    assignments: Iterable[str], form: str = "HEAD.SETTING=VALUE"
) -> dict[str, dict[str, str]]:
    """Return head, `probe` or analysis -> setting -> value as text. Raise UsageError."""
    values_by_name: dict[str, dict[str, str]] = {}
    for setting, value in split_assignments(assignments, form):
        name, dot, key = setting.partition(".")
        if not dot:
            raise UsageError(f"'{setting}={value}' sets nothing", fix=f"write {form}")
        if key in values_by_name.setdefault(name, {}):
            raise UsageError(f"{setting} is set twice", fix="set it once")
        values_by_name[name][key] = value
    return values_by_name


Settings = TypeVar("Settings", bound=Frozen)


def read_settings(kind: type[Settings], name: str, values: Mapping[str, object]) -> Settings:
    """Return all settings of a head, probe or analysis, some of them stated.

    Raise UnknownName for a field that it lacks, UsageError for a value that does not fit.
    """
    for key in values:
        if key not in kind.model_fields:
            raise UnknownName(f"setting of {name}", key, kind.model_fields)
    with refuse_invalid(UsageError, name, "choose another value"):
        return kind.model_validate(values)


class SpecFile(Frozen):
    """What `--spec` names: the spec of a result, DIR:TASK, or a spec alone in a file.

    task: of the result, None for a spec alone; episodes: that the result holds, else of the spec;
    limited: whether the result was a quick test.
    """

    spec: Spec
    task: TaskId | None = None
    episodes: int = 1
    limited: bool = False

    @classmethod
    def read(cls, path: Path) -> "SpecFile":
        """Read a file or a result. Raise ValidationFailed, UsageError if it is neither."""
        if path.is_file():
            file = parse_record({"spec": read_json(path)}, cls, path)
            n_episodes = getattr(file.spec, "n_episodes", 1)
            return file.model_copy(update={"episodes": n_episodes})
        result = read_cell(path).result
        limited = "limited" in result.flags
        return cls(spec=result.spec, task=result.task, episodes=result.score.n, limited=limited)

    def tasks(self, path: Path, datasets: Sequence[str]) -> Iterator[TaskId]:
        """Yield the task on each data set. Raise UsageError if there is none, or for lost code."""
        fitted = self.spec.fitted if isinstance(self.spec, EpisodicSpec) else None
        if isinstance(fitted, UnreadSettings):
            raise UsageError(
                f"{path}: the head is custom code of a file with sha-256 {fitted.code[:12]}..., "
                "which is not loaded",
                fix="pass the unchanged file: --heads py:FILE:FUNCTION",
            )
        names = datasets or ([self.task.dataset] if self.task else [])
        if not names:
            raise UsageError(f"{path} names no data set", fix="add -t DATASET")
        for name in names:
            dataset = name if name.startswith(USER_DATA) else data.resolve_alias(name)
            yield TaskId.of(dataset, self.spec)


def request_of_specs(paths: Sequence[Path], datasets: Sequence[str] = ()) -> EvaluationRequest:
    """Return the request that evaluates specs exactly as files state them.

    datasets: names or folder:DIR, needed for specs without a result and for folders of images.
    Raises UsageError for files that differ in the number of episodes.
    """
    files, specs = {path: SpecFile.read(path) for path in paths}, dict[TaskId, Spec]()
    for path, file in files.items():
        for task in file.tasks(path, datasets):
            if specs.setdefault(task, file.spec) != file.spec:
                raise UsageError(f"two specs of {task}", fix="evaluate them one after the other")
    episodic = [file for file in files.values() if isinstance(file.spec, EpisodicSpec)]
    counts = {(file.episodes, file.limited) for file in episodic}
    if len(counts) > 1:
        listed = ", ".join(str(n) for n, _ in sorted(counts))
        raise UsageError(f"specs with {listed} episodes", fix="evaluate them one after the other")
    episodes, limited = next(iter(counts), (600, any(file.limited for file in files.values())))
    options = TaskOptions(episodes=episodes, limit=episodes if limited else None)
    return EvaluationRequest(tuple(specs), options, specs=specs)
