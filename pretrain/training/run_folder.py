"""The folder of a run: its identity, its logs and the record of the finished run.

recipe.json is written first and names the recipe and the data. log.jsonl has a line per epoch,
rewrites.jsonl a line per rewrite of weights. checkpoint.* contain the state. run.json is written
last, so its presence means that the run is complete; `run:DIR` loads it as a backbone.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fsbench.backbones import architectures
from fsbench.backbones.base import weights_hash
from fsbench.core import __version__, process, registry
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.io import lock_exclusively, write_atomic
from fsbench.core.progress import Reporter
from fsbench.data.augmentation import crop_centre
from fsbench.data.source import SourceDataset, Split
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import evaluation_size
from pretrain.training.batches import load_split
from pretrain.training.checkpoint import write_tensors
from pretrain.training.context import Context
from pretrain.training.cost import TrainingCost
from pretrain.training.distributed import describe_rank_effects
from pretrain.training.episodes import describe_episodes
from pretrain.training.validation import count_classified

TEST_BLOCK = 1000
"""Test images after which a batch ends, whatever its size."""
LOG_FILES = ("log.jsonl", "rewrites.jsonl")


def is_finished(folder: Path) -> bool:
    """Return whether the folder contains a complete run."""
    return (folder / "run.json").is_file()


@contextmanager
def claim_folder(
    folder: Path, recipe: Recipe, source: SourceDataset, ranks: Ranks = ALONE
) -> Iterator[None]:
    """Reserve the folder for this recipe and data during the block; rank 0 does it for all ranks.

    Raises UsageError if it contains another run, FsbenchError if another process trains in it.
    """
    with ExitStack() as stack:
        if ranks.first:
            stack.enter_context(lock_exclusively(folder, "training"))
            check_identity(folder, recipe, source)
        ranks.wait()
        yield
        ranks.wait()


def check_identity(folder: Path, recipe: Recipe, source: SourceDataset) -> None:
    """Write the recipe and data of the folder, or compare them with those written before."""
    path = folder / "recipe.json"
    identity = {"recipe": recipe.model_dump(mode="json"), "recipe_digest": recipe.digest()}
    identity |= {"source": source.name, "source_fingerprint": source.fingerprint}
    if not path.exists():
        write_atomic(path, json.dumps(identity, indent=1).encode())
        return
    try:
        existing = _flatten(json.loads(path.read_text(encoding="utf8")))
    except ValueError as error:
        raise CheckpointError(f"{path} is corrupt: {error}", fix=f"delete {folder}") from error
    expected = _flatten(identity)
    differing = [
        key
        for key in sorted(expected.keys() | existing.keys())
        if key != "recipe_digest" and expected.get(key) != existing.get(key)
    ]
    if differing:
        changes = ", ".join(f"{k} {existing.get(k)} -> {expected.get(k)}" for k in differing)
        raise UsageError(
            f"{folder} holds another run; differing: {changes}",
            fix="use another -o, or delete the folder to start over",
        )


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested JSON as dotted name -> leaf; a method's settings are under its name."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
        value = {item["name"]: item for item in value}
    if not isinstance(value, dict):
        return {prefix: value}
    leaves: dict[str, Any] = {}
    for key, item in value.items():
        leaves |= _flatten(item, f"{prefix}.{key}" if prefix else key)
    return leaves


class RunLogs:
    """The run's line logs; resuming cuts them back to the checkpoint, so no line is repeated.

    writes: whether this process writes them.
    """

    def __init__(self, folder: Path, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes

    def append(self, name: str, line: dict[str, Any]) -> None:
        if self.writes:
            with (self.folder / name).open("a", encoding="utf8") as file:
                file.write(json.dumps(line) + "\n")

    def positions(self) -> dict[str, int]:
        """Return the size of every log in bytes."""
        paths = {name: self.folder / name for name in LOG_FILES}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}

    def read(self, name: str) -> list[dict[str, Any]]:
        lines = (self.folder / name).read_text(encoding="utf8").splitlines()
        return [json.loads(line) for line in lines]

    def rewind(self, positions: dict[str, int]) -> None:
        """Cut every log to its size in `positions`."""
        for name in LOG_FILES if self.writes else ():
            with (self.folder / name).open("ab") as file:
                file.truncate(positions.get(name, 0))


def write_finished_run(folder: Path, weights: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write the finished run: weights first, run.json last; it names the packages of plug-ins."""
    write_tensors(folder / "model.safetensors", weights)
    methods = [(registry.METHODS, method["name"]) for method in facts["recipe_fields"]["methods"]]
    plugins = registry.plugin_packages(*methods, (registry.PRETRAINING_DATASETS, facts["source"]))
    whole = facts | ({"plugins": plugins} if plugins else {})
    write_atomic(folder / "run.json", json.dumps(whole, indent=1).encode())


VALIDATION_COLUMNS = ("val_accuracy", "episodic_accuracy")
"""The columns of validation, fractions; only meta-learners have the second, and null as first."""


def summarize_rounds(log: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return steps, epochs and accuracies (fractions) of every round from the lines of log.jsonl.

    Accuracies are those of the round's last epoch. steps_to_fit: steps of the round until the end
    of its first epoch with 100 % training accuracy (on the augmented batches); null if none had it.
    """
    rounds: list[dict[str, Any]] = []
    start = 0
    for number, lines in groupby(log, key=lambda row: row["round"]):
        epochs = list(lines)
        last = epochs[-1]
        fitting = (row["step"] - start for row in epochs if row["train_accuracy"] == 1)
        rounds.append(
            {
                "stage": last["stage"],
                "round": number,
                "epochs": len(epochs),
                "steps": last["step"] - start,
                "steps_to_fit": next(fitting, None),
                "train_accuracy": last["train_accuracy"],
                **{name: last[name] for name in VALIDATION_COLUMNS if name in last},
            }
        )
        start = last["step"]
    return rounds


def run_record(
    ctx: Context, source: SourceDataset, rounds: list[dict[str, Any]], cost: TrainingCost
) -> dict[str, Any]:
    """Return the record of a finished run; rounds: see `summarize_rounds`."""
    recipe, episodic = ctx.recipe, {}
    accuracies = list({r["stage"]: r["val_accuracy"] for r in rounds}.values())
    measured = {
        f"{m.name}.{what}": value
        for m in recipe.methods
        for what, value in m.measured(ctx.memories[m.name]).items()
    }
    if recipe.loader == "episodes":  # of a meta-learner, whose `source_accuracy` is null
        episodic["episodic_accuracy"] = rounds[-1]["episodic_accuracy"]
        episodic["episodic_tasks"] = describe_episodes(recipe)
    return {
        "format": "fsbench-run-1",
        "recipe": recipe.name,
        "recipe_fields": recipe.model_dump(mode="json"),
        "recipe_digest": recipe.digest(),
        "resolved": {
            f"{m.name}.{field}": value
            for m in recipe.methods
            for field, value in m.resolved(recipe).items()
        },
        **({"measured": measured} if measured else {}),
        "architecture": recipe.architecture,
        "width": recipe.width or ctx.architecture.default_width,
        "normalizers": architectures.normalizer_shapes(ctx.model),
        "n_classes": ctx.classes,
        "input_size": recipe.input_size,
        "evaluation_size": evaluation_size(recipe.name),
        "mean": list(source.mean),
        "std": list(source.std),
        "source": source.name,
        "source_fingerprint": source.fingerprint,
        "source_accuracy": accuracies[-1],
        **({} if source.test is None else score_test(ctx, source.test)),
        "stage_accuracies": accuracies,
        **episodic,
        "rounds": rounds,
        "steps": ctx.clock.step,
        **cost.facts(),
        "flags": sorted(source.flags),
        "weights_hash": weights_hash(dict(ctx.model.state_dict()), (ctx.roles.head,)),
        **machine_facts(ctx.device, cost.ranks),
        **describe_rank_effects(recipe, ctx.model, cost.ranks),
        "fsbench": __version__,
    }


def score_test(ctx: Context, test: Split) -> dict[str, Any]:
    """Return accuracy (fraction) and number of the source's test images; {} for a meta-learner."""
    if ctx.recipe.loader == "episodes":
        return {}
    images, labels = load_split(test, torch.device("cpu"))
    images, labels = crop_centre(images, ctx.recipe.input_size), labels.to(ctx.device)
    correct = 0
    for start in range(0, len(labels), TEST_BLOCK):
        block = slice(start, start + TEST_BLOCK)
        args = images[block], labels[block], ctx.loader.normalise, ctx.recipe
        correct += count_classified(ctx.model, *args)
    return {"test_accuracy": correct / len(labels), "test_images": len(labels)}


def machine_facts(device: torch.device, ranks: Ranks = ALONE) -> dict[str, Any]:
    """Return versions, hardware and torch's `fp32_precision`, on which equal bits depend."""
    backends: Any = torch.backends
    products = backends.cuda.matmul if device.type == "cuda" else backends.mkldnn.matmul
    return {
        "torch": str(torch.__version__),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "device": process.device_model(str(device)),
        "precision": products.fp32_precision,
        **ranks.facts(),
    }


def warn_if_bits_may_differ(then: dict[str, Any], now: dict[str, Any], report: Reporter) -> None:
    """Log a warning if a resumed run may differ from an uninterrupted one in the last bits."""
    then, now = ({"processes": 1, "backend": None} | facts for facts in (then, now))
    changed = [f"{key} {then.get(key)} -> {now[key]}" for key in now if then.get(key) != now[key]]
    if changed:
        report.log(f"resumed elsewhere ({', '.join(changed)}): the last digits may differ")
