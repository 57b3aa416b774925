"""Options of an evaluation: one model for Python, the command line, --config and sweep files."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from annotated_types import Interval

from fsbench.core.options import OptionModel, option, split_values

if TYPE_CHECKING:
    from fsbench.api.results import Results
    from fsbench.backbones.base import Backbone
    from fsbench.core.progress import Reporter
    from fsbench.core.tasks import TaskId
    from fsbench.data import DataRoots

    Models = str | Backbone | Sequence[str | Backbone]
    Tasks = str | TaskId | Sequence[str | TaskId] | None
    Folders = str | Path | Sequence[str | Path]
    Statistics = str | float | Sequence[float] | None
    Progress = bool | Reporter
    Stored = str | Path | Results
else:  # how they are read
    Models = Tasks = Folders = Sequence[Any]
    Stored = Any
    Statistics = str | float | tuple[float, ...] | None
    Progress = Any

Natural = Annotated[int, Interval(ge=0)]
Positive = Annotated[int, Interval(ge=1)]
Count = Annotated[int, Interval(ge=1, le=1024)]
Size = Annotated[int, Interval(ge=1, le=1000)]
SETTINGS: dict[str, Any] = {"metavar": "NAME=VALUE", "is_split": False}
"""Details of options whose values are assignments."""
YES = "Start work that is estimated to take over an hour."
PROGRESS = "Whether to write progress to stderr."

IS_NAME = re.compile(r"(timm|torchvision|fsbench)/")
IS_REFERENCE = re.compile(
    rf"{IS_NAME.pattern}|(control|folder|hf-hub|open_clip|py|run|transformers):"
)
IS_PATH = re.compile(r"(folder|hf-hub|py|run):|[^:]*/")


class ReferenceOptions(OptionModel):
    """Options whose texts may be references to models, data and code, with commas in paths."""

    @staticmethod
    def separates(before: str, after: str) -> bool:
        """Return whether a comma ends a model, task, head or folder.

        Within a path it does so only before another of them that exists.
        """
        from fsbench.core.errors import UnknownName
        from fsbench.core.tasks import head_names
        from fsbench.data import dataset_groups, resolve_alias

        if IS_NAME.match(before) or not IS_PATH.match(before) or IS_REFERENCE.match(after):
            return True
        name = re.split("[:/@=]", after)[0]
        try:
            return name in (*head_names(), *dataset_groups()) or bool(resolve_alias(name))
        except UnknownName:
            return Path(after.split("@")[0]).exists()


@dataclass(frozen=True)
class ModelOptions(ReferenceOptions):
    """Which backbones, and how images become their features."""

    model: Models = option(
        MISSING,
        "Model",
        "Backbone: timm/NAME, hf-hub:ORG/NAME@REV, transformers:ORG/NAME, torchvision/NAME, "
        "open_clip:ARCH/TAG, run:DIR, FILE@ARCH or py:PKG.MOD:FUNCTION; repeatable.",
        "-m",
    )
    _: KW_ONLY
    name: str | None = option(None, "Model", "Name of one model in results (default: from -m).")
    arch: str | None = option(
        None, "Model", "Architecture of weights: a timm name, fsbench/NAME, py:MODULE:FUNCTION."
    )
    random_init: int | None = option(None, "Model", "Seed of random weights (a control).")
    pool: Literal["native", "cls", "avg", "cls+avg", "max"] = option(
        "native", "Model", "Pooling: native (the model's), cls, avg, cls+avg, max."
    )
    layers: str = option("last", "Model", "Layer of features: last, or the name of a module.")
    features: Literal["trunk", "head"] = option(
        "trunk", "Model", "trunk, or head: the class scores of a model that keeps its classifier."
    )
    mean: Statistics = option(
        None,
        "Images",
        "Mean of images (0 to 1), needed where nothing states the model's: imagenet, half, none, "
        "a number or R,G,B.",
    )
    std: Statistics = option(None, "Images", "Standard deviation of images, as --mean.")
    dtype: Literal["fp32", "bf16"] = option(
        "fp32", "Model", "Arithmetic of features: fp32, or bf16 (autocast), a model of its own."
    )


@dataclass(frozen=True)
class TaskOptions(ReferenceOptions):
    """Which tasks, and the choices of their specs; the defaults are official."""

    tasks: Tasks = option(
        None,
        "Task",
        "A data set (eurosat), a full id (eurosat:5w1s/linear@ibm or eurosat:probe), a group "
        "(cdfsl, cdfsl-small, transfer) or own images (folder:DIR, hf-hub:ORG/NAME); repeatable "
        "(default: cdfsl).",
        *("-t", "--task"),
    )
    _: KW_ONLY
    kinds: Sequence[Literal["probe", "episodic"]] = option(
        ("probe", "episodic"), "", "What a data set without a part after it stands for."
    )
    shots: Sequence[Size] | None = option(
        None, "Task", "Shots, e.g. 1,5 (default: 1,5,20,50).", "--n-shot"
    )
    way: Annotated[int, Interval(ge=2, le=1000)] | None = option(
        None, "Task", "Classes per episode (default: 5).", "--n-way"
    )
    n_query: Size = option(15, "Task", "Queries per class; official boards require 15.")
    protocol: str | None = option(
        None, "Task", "ibm (all images), startup (labeled_80), or either with -disjoint."
    )
    episodes: Annotated[int, Interval(ge=1, le=100_000)] = option(
        600, "Task", "Episodes per task; official boards require 600.", "--n-tasks"
    )
    seed: Natural = option(0, "Task", "Seed for sampling episodes; 0 is official.")
    limit: Positive | None = option(
        None, "Task", "Quick test: at most N episodes or epochs; results are 'limited'.", "-L"
    )
    heads: Sequence[str] | None = option(
        None,
        "Head",
        "Per-episode classifier: linear (default), affine (also tunes norm layers; slow), one of "
        "`fsbench ls heads`, or your own as py:FILE:FUNCTION, whose sha-256 results record.",
        "--adapt",
    )
    set: Sequence[str] = option(
        (),
        "Head",
        "Setting of a head (ridge.lam=10) or of probes (probe.schedule=cosine); repeatable.",
        **SETTINGS,
    )
    bn_mode: Literal["eval", "train"] = option(
        "eval", "Head", "BatchNorm while `affine` is tuned: statistics of the source or the batch."
    )
    input_size: Literal["auto", "native"] | Annotated[int, Interval(ge=8, le=1024)] = option(
        "auto",
        "Images",
        "Side in pixels, needed where nothing states the model's. auto: what the recipe of a run "
        "states, 224 for models of 128 px or more, else native, the side of training.",
        fix="write pixels in 8..1024, auto or native",
    )
    interpolation: Literal["bilinear", "bicubic", "lanczos"] = option(
        "bilinear", "Images", "How images are resized."
    )
    crop: Annotated[float, Interval(ge=0.5, le=1)] | None = option(
        None, "Images", "Part of the resized side that the centre crop takes (default: 1/1.15)."
    )

    @property
    def task_names(self) -> list[str]:
        return [str(task) for task in split_values(self.tasks or ())]

    @property
    def states_specs(self) -> bool:
        """Return whether anything but tasks and kinds is stated, as spec files do."""
        stated = [f for f in fields(TaskOptions) if f.name not in {"tasks", "kinds"}]
        return any(getattr(self, f.name) != f.default for f in stated)


@dataclass(frozen=True, kw_only=True)
class Machine(ReferenceOptions):
    """Where data are and how work runs; recorded in results, never part of what is computed."""

    data: Folders = option(
        (),
        "Machine",
        "Folder with the data sets, or NAME=DIR for one; repeatable. FSBENCH_DATA sets more, "
        "separated like PATH.",
    )
    cache: str | Path | None = option(
        None, "Machine", "Folder for cached features and images (default: FSBENCH_CACHE)."
    )
    cache_size: Annotated[float, Interval(gt=0)] | None = option(
        None,
        "Machine",
        "GB of cached features and target images, beyond which those used longest ago are deleted "
        "(default: a tenth of the disk).",
    )
    device: str = option("auto", "Machine", "auto, cpu, cuda, cuda:N or mps.")
    features_device: Literal["cpu", "cuda", "mps"] | None = option(
        None, "Machine", "Device that extracts features, where heads run on another one."
    )
    threads: Count | None = option(None, "Machine", "CPU threads of torch; results state them.")
    batch_size: Annotated[int, Interval(ge=2, le=4096)] | None = option(
        None, "Machine", "Images of a forward pass.", "-b"
    )
    workers: Natural | None = option(
        None, "Machine", "Threads that decode images ahead (default: one a core, at most 32)."
    )

    @property
    def roots(self) -> "DataRoots":
        """Raises DataError for a folder that is not there."""
        from fsbench.data import DataRoots

        return DataRoots.parse([*map(str, split_values(self.data))])

    @property
    def cache_folder(self) -> Path:
        """Return a folder that can be written: a temporary one where the chosen one cannot."""
        from fsbench.core.io import cache_folder, open_cache

        return open_cache(cache_folder(self.cache))


@dataclass(frozen=True, kw_only=True)
class ResultOptions(OptionModel):
    """Options for the place of results, and for what is computed again."""

    output: str | Path | None = option(
        None,
        "Output",
        "Results folder: complete results in it are read, not computed. Default: `results` for "
        "commands; in Python a temporary folder until `Results.save`.",
        "-o",
    )
    overwrite: bool = option(False, "Output", "Recompute and replace existing results.")
    yes: bool = option(False, "Output", YES)


@dataclass(frozen=True)
class EvaluationOptions(ResultOptions, Machine, TaskOptions, ModelOptions):
    """Everything that `fsbench.evaluate` takes."""

    _: KW_ONLY
    spec: Sequence[str | Path] = option(
        (),
        "Advanced",
        "Result (DIR:TASK) or file of a spec (JSON): evaluate exactly its spec; -t then names "
        "data sets, and other options of the task are left out; repeatable.",
        is_split=False,
    )
    shard: str | None = option(
        None, "Advanced", "i/n: evaluate this part of the episodes alone; merge the parts later."
    )
    progress: Progress = option(True, "", PROGRESS)


@dataclass(frozen=True)
class AnalysisSelection(OptionModel):
    """Options that choose analyses and their settings."""

    what: Sequence[str] = option(MISSING, "Task", "Analyses (`fsbench ls analyses`), or all.")
    _: KW_ONLY
    set: Sequence[str] = option(
        (), "Task", "Setting of an analysis (hessian.top=10); repeatable.", **SETTINGS
    )
    images: Positive | None = option(
        None, "Images", "Use at most N images; the number is recorded."
    )


@dataclass(frozen=True)
class AnalysisOptions(ResultOptions, Machine, AnalysisSelection, ModelOptions):
    """Everything that `fsbench analyze` takes."""

    _: KW_ONLY
    source: str | None = option(
        None, "Images", "Source images (default: those that a run was trained on)."
    )


@dataclass(frozen=True)
class PretrainOptions(Machine):
    """Everything that `fsbench.pretrain` takes."""

    recipe: Any = option(
        MISSING,
        "Argument",
        "Recipe of `fsbench ls recipes` (toy/seal), or a recipe file (.json), as every run has it.",
    )
    _: KW_ONLY
    source: str | None = option(
        None, "Task", "Source: tinyimagenet, pets, caltech101, folder:DIR, hf-hub:ORG/NAME ..."
    )
    set: Sequence[str] = option((), "Task", "Recipe field (plan.rounds=3); repeatable.", **SETTINGS)
    scenario: str | None = option(
        None, "Task", "Order of data: stationary, warm-start, continual-full, continual-limited."
    )
    method: str | None = option(
        None, "Model", "Methods in place of the recipe's: swr+weight_compander, or py:FILE:CLASS."
    )
    seed: Natural | None = option(None, "Task", "Seed of the recipe.")
    output: Path = option(Path("runs"), "Output", "Folder of the runs.", "-o")
    name: str | None = option(
        None, "Output", "Name of the run's folder (default: SCALE-METHODS-sSEED, then a scenario)."
    )
    yes: bool = option(False, "Output", YES)
    progress: Progress = option(True, "", PROGRESS)
    overrides: Any = option(
        None,
        "",
        "Fields of the recipe: as a mapping, or as further keywords, e.g. lr=0.05, "
        'plan={"rounds": 3} or **{"plan.rounds": 3}.',
    )


@dataclass(frozen=True)
class VerifyOptions(Machine, ModelOptions):
    """Everything that `fsbench leaderboard verify` takes; threads are by default the entry's."""

    _: KW_ONLY
    entry: str = option(MISSING, "Argument", "Name of the entry.")
    board: Path = option(MISSING, "Task", "Folder of the leaderboard.")
    tasks: Tasks = option(None, "Task", "Columns of the entry (default: all).", "-t", "--task")
    episodes: Literal["all"] | Annotated[int, Interval(ge=30)] = option(
        30, "Task", "Episodes to draw in each column: 30 or more, or all.", fix="give 30 or more"
    )
    seed: Natural | None = option(None, "Task", "Seed of the draws (default: a random one).")
    sign_with: Path | None = option(
        None, "Output", "SSH key that signs the badge; it counts if board.json has it in 'signers'."
    )


@dataclass(frozen=True)
class CompareOptions(ReferenceOptions):
    """Everything that `fsbench.compare` takes."""

    a: Stored = option(
        MISSING, "Argument", "Results folder of one model, or name on --board; in Python `Results`."
    )
    b: Stored = option(MISSING, "Argument", "What to compare with, as A.")
    _: KW_ONLY
    tasks: Tasks = option(
        None, "Task", "Compare on these only, e.g. eurosat, isic:5w1s; repeatable.", "-t", "--task"
    )
    board: str | Path | None = option(None, "Task", "Folder of the board that A or B names.")


@dataclass(frozen=True)
class SubmitOptions(ReferenceOptions):
    """Everything that `fsbench.submit` takes."""

    results: Stored = option(Path("results"), "Argument", "Results folder; in Python `Results`.")
    board: str | Path | None = option(None, "Output", "Folder of the board, made if missing.")
    declaration: Any = option(
        None,
        "Output",
        "What an entry declares: a YAML, JSON or TOML file (default: RESULTS/declaration.yaml); in "
        "Python also a mapping or a `fsbench.core.schema.Declaration`.",
    )
    _: KW_ONLY
    name: str | None = option(None, "Output", "Name of the entry, in place of the declared one.")
    models: Sequence[str] = option(
        (), "Model", "Submit only this model of the folder; repeatable.", "-m", "--model"
    )
    controls: Sequence[str] = option(
        (), "Model", "Model that each entry takes along as its control; repeatable.", "--control"
    )
    dry_run: bool = option(False, "Output", "Check only; write nothing.")
    replace: bool = option(False, "Output", "Replace an entry of the same name.")
    sign_with: str | Path | None = option(
        None, "Output", "SSH key that signs the entry; then no other key replaces it."
    )
    progress: Progress = option(False, "", PROGRESS)


@dataclass(frozen=True, kw_only=True)
class SweepOptions(Machine):
    """Folders and machine of a sweep; runs/ and results/ lie in `output`."""

    output: Path = option(Path("sweep"), "Output", "Folder of runs and results.", "-o")
    board: Path | None = option(
        None, "Output", "Folder of the board to `submit` to; what the entry there holds is done."
    )
    method: Sequence[str] = option(
        (), "Model", "Methods beside those of the file: names, or py:FILE:CLASS; repeatable."
    )
    progress: Progress = option(False, "", PROGRESS)
    jobs: Count = option(1, "Machine", "Jobs that run at once.", "-j")
    engine: Literal["processes", "ray", "slurm"] = option(
        "processes", "Machine", "What runs the jobs: processes here, or a cluster's Ray or SLURM."
    )
    slurm: Sequence[str] = option(
        (), "Machine", "Parameter of sbatch (partition=gpu, time=1440); repeatable.", **SETTINGS
    )
    gpus: float = option(0, "", "GPUs of a job, which the sweep sets.")
    visible: str | None = option(None, "", "Names of the GPUs that a job sees; None for all.")
    yes: bool = option(False, "Output", YES)

    @property
    def results(self) -> Path:
        return self.output / "results"

    def resolve(self, threads: int) -> Self:
        """Return the options with absolute paths, so that jobs may run anywhere that sees them.

        threads: of torch where the options state none. Raises as `DataRoots.parse`.
        """
        roots, paths = self.roots, ((f.name, getattr(self, f.name)) for f in fields(self))
        changes: dict[str, Any] = {n: p.absolute() for n, p in paths if isinstance(p, Path)}
        named = (f"{name}={folder.absolute()}" for name, folder in roots.named.items())
        changes["data"] = (*(str(root.absolute()) for root in roots.roots), *named)
        changes["cache"] = self.cache_folder.absolute()
        return replace(self, **changes, threads=self.threads or threads)
