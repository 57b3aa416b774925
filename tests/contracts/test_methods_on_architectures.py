"""Every method on every architecture of our own: it trains, or is refused before it does.

Of presets with the same modules, which differ in size or initial weights alone, one is trained.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from support.pretrain import SIDE, source, tiny, weights

from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT
from fsbench.data import SourceDataset, Split
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.training import loop

SETTINGS = {"gradinit": ("gradinit.iterations=1",), "nio": ("nio.iterations=1", "nio.batch_size=8")}
"""What keeps a method short."""


@cache
def least_side(name: str) -> int:
    """The smallest side (px), of a few, for which the architecture builds."""
    for side in (SIDE, 10, 16):
        with suppress(UsageError):
            load_architecture(name).at(side).build(2, 2)
            return side
    return 32


@cache
def zoomed(side: int) -> SourceDataset:
    """The tiny source on images of another side."""
    original = source()
    index = np.arange(side) * SIDE // side
    train, val = (
        Split(np.ascontiguousarray(s.images[:, :, index[:, None], index]), s.labels)
        for s in (original.train, original.val)
    )
    return replace(original, train=train, val=val)


@cache
def settings(method: str) -> tuple[str, ...]:
    """Two rounds of one step, or of two where a round has phases."""
    toy = registry.load_recipe(f"toy/{method}")
    ascends = "ascent_share" in METHODS.load(method).model_fields
    return (
        f"plan.rounds={2 // len(toy.plan.stages)}",
        f"plan.epochs={2 if ascends or toy.schedule == 'step' else 1}",
        "plan.epoch_images=8",
        *([f"{method}.ascent_share=0.5"] if ascends else []),
        *SETTINGS.get(method, ()),
    )


def list_different() -> list[str]:
    """One preset of each architecture."""
    names: dict[str, str] = {}
    for name in sorted(PRESETS):
        with torch.device("meta"):
            names.setdefault(str(load_architecture(name).at(32).build(2, 2)), name)
    return list(names.values())


@pytest.mark.parametrize("architecture", list_different())
@pytest.mark.parametrize("method", METHODS.names())
def test_it_trains_or_is_refused_before_training(
    method: str, architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop.Trainer, "_save", lambda self: None)  # half of the time
    side = least_side(architecture)
    assignments = (f"architecture={architecture}", f"input_size={side}")
    try:
        recipe = tiny(method, *assignments, *settings(method))
    except UsageError:
        return
    run = loop.Trainer(recipe, zoomed(side), tmp_path, torch.device("cpu"), SILENT)
    run.run()
    assert run.ctx.clock.step == 2 * recipe.plan.epochs
    assert all(torch.isfinite(tensor).all() for tensor in weights(tmp_path).values())
