"""The jobs of a sweep and what each needs, in the order in which backbones become complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from fsbench import backbones, data
from fsbench.api.evaluate import TargetSets
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetRecord
from fsbench.core.tasks import TaskId
from fsbench.results.names import model_name
from fsbench.sweep import runs
from fsbench.sweep.analyzing import analyzing
from fsbench.sweep.entry import Submitting, entry_name
from fsbench.sweep.evaluating import AnyBackbone, Evaluating, Present, Trained, request
from fsbench.sweep.file import Evaluation, Given, SweepFile
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place
from fsbench.sweep.training import RoundZero, Training
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.steps import fitted
from pretrain.training import branching


@dataclass(frozen=True)
class Graph:
    """jobs by key, what is needed always before what needs it; needs: key -> keys."""

    jobs: dict[str, Job] = field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, job: Job, needs: Iterable[Job] = ()) -> None:
        """A job that is there already stays as it is."""
        if job.key not in self.jobs:
            self.jobs[job.key] = job
            self.needs[job.key] = tuple(need.key for need in needs)

    def needed_by(self, key: str) -> list[str]:
        return [other for other, needs in self.needs.items() if key in needs]


def build(file: SweepFile, place: Place, report: Reporter = SILENT) -> Graph:
    """All jobs of the sweep. Data sets and given backbones are read and checked on the way.

    Raises UsageError, UnknownName, DataError, CheckpointError.
    """
    graph, named = Graph(), trained(file, place)
    found: list[AnyBackbone] = [*map(present, file.backbones), *named]
    require_distinct(found)
    blocks = [(asked, cells(asked, place, report)) for asked in file.evaluate]
    looks = [
        analyzing(asked, [each for each in found if named_by(asked.only, each)], place, report)
        for asked in file.analyze
    ]
    for backbone in found:
        parents = add_training(graph, backbone)
        entry = entry_name(file.submit, backbone) if file.submit else None
        evaluations = [
            Evaluating(
                backbone=backbone,
                tasks=tuple(images),
                images=tuple(images.values()),
                asked=a,
                entry=entry,
            )
            for a, parts in blocks
            if named_by(a.only, backbone)
            for images in parts
        ]
        analyses = [look[backbone.label] for look in looks if backbone.label in look]
        for job in (*evaluations, *analyses):
            graph.add(job, parents)
        if file.submit and evaluations:
            unique = {job.key: job for job in evaluations}
            submitting = Submitting(evaluations=tuple(unique.values()), entries=file.submit)
            graph.add(submitting, unique.values())
    return graph


def named_by(patterns: tuple[str, ...], backbone: AnyBackbone) -> bool:
    return any(fnmatchcase(backbone.label, pattern) for pattern in patterns)


def add_training(graph: Graph, backbone: AnyBackbone) -> list[Job]:
    """The job that makes the backbone, if any, after the round 0 that it shares."""
    if not isinstance(backbone, Trained):
        return []
    trunk = backbone.training.trunk
    if trunk:
        graph.add(trunk)
    graph.add(backbone.training, [trunk] if trunk else [])
    return [backbone.training]


def trained(file: SweepFile, place: Place) -> list[Trained]:
    """The runs of the file, each once, a round 0 shared where two or more have the same."""
    chosen: dict[str, tuple[Recipe, str]] = {}
    for block in file.pretrain:
        for recipe in runs.expand(block):
            source = place.source(recipe)
            whole = fitted(recipe, source)
            chosen[f"{whole.digest()} {source.fingerprint}"] = whole, source.fingerprint
    trunks = {key: trunk_of(*made) for key, made in chosen.items()}
    shared = Counter(trunk.key for trunk in trunks.values() if trunk)
    return [
        Trained(
            training=Training(
                recipe=recipe,
                source_fingerprint=fingerprint,
                trunk=trunk if trunk and shared[trunk.key] > 1 else None,
            )
        )
        for (recipe, fingerprint), trunk in zip(chosen.values(), trunks.values(), strict=True)
    ]


def trunk_of(recipe: Recipe, fingerprint: str) -> RoundZero | None:
    """The round 0 that a run of the recipe may start from."""
    if not branching.branches(recipe):
        return None
    return RoundZero(recipe=branching.trunk(recipe), source_fingerprint=fingerprint)


def present(given: Given) -> Present:
    """A given backbone, loaded once to know what it is."""
    facts = backbones.load(given.model, arch=given.arch, random_init=given.random_init).facts
    label = given.name or model_name(facts)
    return Present(given=given, label=label, weights=facts.weights_hash, native=facts.input_size)


def require_distinct(found: Iterable[AnyBackbone]) -> None:
    """Raises UsageError for two backbones of one name: their results would mix."""
    twice = [name for name, n in Counter(each.label for each in found).items() if n > 1]
    if twice:
        raise UsageError(
            f"two backbones of the sweep are called {', '.join(twice)}",
            fix="give each of `backbones` a name of its own, and leave no two equal recipes",
        )


def cells(asked: Evaluation, place: Place, report: Reporter) -> list[dict[str, DatasetRecord]]:
    """The tasks of a block in parts, by data set and adaptation: complete id -> its images."""
    wanted = request(asked)
    targets = TargetSets(wanted, data.DataRoots.parse(place.roots), place.cache, report)
    parts: dict[tuple[str, str | None], dict[str, DatasetRecord]] = {}
    for task in wanted.tasks:
        parts.setdefault(part_of(task), {})[str(task)] = targets.record(task)
    return list(parts.values())


def part_of(task: TaskId) -> tuple[str, str | None]:
    return task.dataset, task.head
