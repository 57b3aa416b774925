"""What an evaluation is asked for: tasks, and the fields of their specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsbench import data
from fsbench.api.probes import Probing
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.specs import (
    BN_MODES,
    POOLS,
    EpisodeSpec,
    EpisodicSpec,
    FittedSpec,
    ImageSpec,
    Pool,
    Spec,
)
from fsbench.core.tasks import Options, Task, resolve
from fsbench.data.manifest import episode_spec

NATIVE = "native"
MIN_SIDE, MAX_SIDE = 8, 1024
"""px, as in ImageSpec."""
DIGITS = 9
"""Of a number on the command line at most."""


def parse_tasks(tasks: Sequence[str | Task], options: Options) -> tuple[Task, ...]:
    """Return the tasks that ids and options name; the group `cdfsl` where there is no id."""
    chosen: dict[Task, None] = {}
    for task in tasks or ["cdfsl"]:
        named = (
            resolve([task], data.resolve, data.groups(), options)
            if isinstance(task, str)
            else [task]
        )
        chosen |= dict.fromkeys(named)
    return tuple(chosen)


def parse_size(text: str) -> int | None:
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
class Request:
    """What is wanted: the tasks and the fields of their specs.

    input_size: px, or None for the size that each backbone was trained at; limit: a smoke run of
    so many episodes (epochs of a probe); shard (i, n): only blocks i, i + n, ... of every cell;
    bn_mode: of affine tuning; settings: of fitted heads, by adaptation; probing: of probes. Raises
    UsageError for what no task uses.
    """

    tasks: tuple[Task, ...]
    input_size: int | None = 224
    episodes: int = 600
    limit: int | None = None
    seed: int = 0
    shard: tuple[int, int] = (0, 1)
    overwrite: bool = False
    bn_mode: str = "eval"
    settings: Mapping[str, FittedSpec] = field(default_factory=dict)
    probing: Probing = field(default_factory=Probing)

    def __post_init__(self) -> None:
        self.probing.refuse_unused(self.tasks)
        for name in self.settings.keys() - {task.adaptation for task in self.tasks}:
            raise UsageError(f"settings of {name}, which no task uses", fix=f"add --adapt {name}")
        if self.bn_mode not in BN_MODES:
            raise UnknownName("bn mode", self.bn_mode, BN_MODES)
        if self.bn_mode != "eval" and all(task.adaptation != "affine" for task in self.tasks):
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

    def spec(self, task: Task, native: int) -> Spec:
        """The full spec of a task for a backbone trained at `native` px."""
        image = ImageSpec(input_size=self.input_size or native)
        if task.probe:
            return self.probing.spec(task, image, self.seed, self.limit)
        return EpisodicSpec.model_validate(
            {
                "protocol": task.protocol,
                "adaptation": task.adaptation,
                "episode": self.episode_spec(task),
                "image": image,
                "bn_mode": self.bn_mode if task.adaptation == "affine" else "eval",
                "fitted": self.settings.get(task.adaptation or ""),
            }
        )

    def episode_spec(self, task: Task) -> EpisodeSpec:
        return episode_spec(task, self.seed)

    def block_episodes(self, size: int) -> dict[int, range]:
        """Blocks of this shard -> the wanted episodes in them, for blocks of `size` episodes."""
        total, (index, parts) = self.n_episodes, self.shard
        blocks = range(index, -(-total // size), parts)
        return {b: range(b * size, min((b + 1) * size, total)) for b in blocks}


def pool_of(task: Task) -> Pool:
    """Which images a task draws from; probes use all of them."""
    return "full" if task.probe or task.protocol is None else POOLS[task.protocol]
