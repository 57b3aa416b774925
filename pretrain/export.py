"""What run.json says about a finished run: enough to build its network and judge its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from fsbench import __version__
from fsbench.backbones.weights import weights_hash

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.context import Context


def facts(ctx: Context, source: SourceDataset, accuracy: float, seconds: float) -> dict[str, Any]:
    """source_accuracy: validation accuracy after the last step (fraction); seconds: all parts."""
    recipe = ctx.recipe
    return {
        "format": "fsbench-run-1",
        "recipe": recipe.model_dump(mode="json"),
        "recipe_digest": recipe.digest(),
        "architecture": recipe.architecture,
        "width": recipe.width or ctx.architecture.default_width,
        "n_classes": source.n_classes,
        "input_size": recipe.input_size,
        "mean": list(source.mean),
        "std": list(source.std),
        "source": source.name,
        "source_fingerprint": source.fingerprint,
        "source_accuracy": accuracy,
        "steps": ctx.clock.step,
        "samples": ctx.clock.step * recipe.batch_size,
        "flags": sorted(source.flags),
        "weights_hash": weights_hash(dict(ctx.model.state_dict()), (ctx.roles.head,)),
        "seconds": round(seconds, 3),
        "device": str(ctx.device),
        "threads": torch.get_num_threads(),
        "versions": {"fsbench": __version__, "torch": torch.__version__},
    }
