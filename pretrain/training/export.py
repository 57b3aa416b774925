"""What run.json says about a finished run: enough to build its network and judge its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from fsbench import __version__
from fsbench.backbones import devices, normalizers
from fsbench.backbones.weights import weights_hash
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.progress import Reporter
from pretrain.meta.validation import measured_on
from pretrain.training.distributed import unlike_one_process
from pretrain.training.rounds import stage_accuracies

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.training.context import Context
    from pretrain.training.cost import Cost


def facts(
    ctx: Context, source: SourceDataset, rounds: list[dict[str, Any]], cost: Cost
) -> dict[str, Any]:
    """rounds: as pretrain/training/rounds.py gives them; cost: of all parts of the run."""
    recipe, accuracies = ctx.recipe, stage_accuracies(rounds)
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
        "architecture": recipe.architecture,
        "width": recipe.width or ctx.architecture.default_width,
        "normalizers": normalizers.shapes(ctx.model),
        "n_classes": ctx.classes,
        "input_size": recipe.input_size,
        "mean": list(source.mean),
        "std": list(source.std),
        "source": source.name,
        "source_fingerprint": source.fingerprint,
        "source_accuracy": accuracies[-1],
        "stage_accuracies": accuracies,
        **episodic(ctx, rounds),
        "rounds": rounds,
        "steps": ctx.clock.step,
        **cost.facts(),
        "flags": sorted(source.flags),
        "weights_hash": weights_hash(dict(ctx.model.state_dict()), (ctx.roles.head,)),
        **machine(ctx.device, cost.ranks),
        **unlike_one_process(recipe, ctx.model, cost.ranks),
        "fsbench": __version__,
    }


def episodic(ctx: Context, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """A meta-learner's own accuracy, on which tasks; its `source_accuracy` is null."""
    if ctx.recipe.loader != "episodes":
        return {}
    accuracy = rounds[-1]["episodic_accuracy"]
    return {"episodic_accuracy": accuracy, "episodic_tasks": measured_on(ctx.recipe)}


def machine(device: torch.device, ranks: Ranks = ALONE) -> dict[str, Any]:
    """What equal bits depend on (design.md 5)."""
    return {
        "torch": str(torch.__version__),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "device": devices.model_name(str(device)),
        **ranks.facts(),
    }


def warn_of_other_bits(then: dict[str, Any], now: dict[str, Any], report: Reporter) -> None:
    """Say so when a resumed run cannot repeat the bits of an uninterrupted one."""
    then, now = ({"processes": 1, "backend": None} | facts for facts in (then, now))
    changed = [
        f"{name} {then.get(name)} -> {now[name]}" for name in now if then.get(name) != now[name]
    ]
    if changed:
        report.log(f"resumed elsewhere ({', '.join(changed)}): the last digits may differ")
