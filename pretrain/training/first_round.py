"""Round 0 trained once for all runs in which it is plain training: they branch off after it.

A recipe whose methods all leave round 0 alone (`Method.PLAIN_ROUND_0`) has the round 0 of its
control, to the bit: same network, source, seed, plan and schedule. That round is trained in a
folder of its own, which belongs to the control, and its checkpoint is copied into the folder of
every branch. A branch belongs to its own recipe from the start; shared.jsonl and, at the end,
`shared_rounds` of run.json say which run the round came from. Cost is that of the whole run.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic
from fsbench.core.process import postponed
from fsbench.core.progress import SILENT, Reporter
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe, fit_round_steps
from pretrain.training import checkpoint, run_folder
from pretrain.training.factory import deterministic_kernels
from pretrain.training.loop import Trainer

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset


def can_share_first_round(recipe: Recipe) -> bool:
    """Whether a run of the recipe may start from the round 0 of its control."""
    plain = all(method.PLAIN_ROUND_0 for method in recipe.methods)
    return plain and recipe.plan.total_rounds > 1 and recipe.loader != "episodes"


def shared_recipe(recipe: Recipe) -> Recipe:
    """The recipe whose round 0 a run of this one may start from. Raises UsageError for no such."""
    if not can_share_first_round(recipe):
        names = "+".join(method.name for method in recipe.methods)
        raise UsageError(
            f"round 0 of {recipe.name} is its own: {names} acts in it, or it is the only one",
            fix="train the run as a whole",
        )
    return registry.control_recipe(recipe)


class FirstRoundTrainer(Trainer):
    """A run that ends after round 0, with a checkpoint instead of an export."""

    def run(self) -> None:
        self._start()
        clock, size = self.ctx.clock, self.recipe.batch_size
        plan = self.recipe.plan
        total = self.ctx.loader.steps(0) * plan.epochs * size
        what = f"round 0 of {self.recipe.name}"
        with (
            deterministic_kernels(self.recipe.deterministic),
            self.report.task(what, total, "images", clock.step * size) as advance,
            postponed() as self.stop,
        ):
            while clock.round == 0:
                self._epoch(advance)


def train_first_round(
    recipe: Recipe,
    source: SourceDataset,
    out: Path,
    *,
    device: str = "cpu",
    report: Reporter = SILENT,
) -> Path:
    """Train round 0 of the recipe in `out`, or go on there. Raises as `pretrain` does."""
    recipe = fit_round_steps(recipe, source)
    with run_folder.claim_folder(out, recipe, source):
        if not has_ended(out):
            FirstRoundTrainer(recipe, source, out, torch.device(device), report).run()
    return out


def has_ended(folder: Path) -> bool:
    """Whether round 0 is over in the folder. Raises CheckpointError for one that is no good."""
    found = checkpoint.load_checkpoint(folder)
    return found is not None and found[1]["clock"]["round"] > 0


def has_started(folder: Path) -> bool:
    """Whether a run in the folder has a state of its own to go on from."""
    return run_folder.is_finished(folder) or (folder / checkpoint.SIDECAR).is_file()


def start_from_first_round(recipe: Recipe, source: SourceDataset, shared: Path, out: Path) -> None:
    """Give the run of `recipe` in `out` the round 0 in `shared`; one that has started is let be.

    Raises UsageError when `shared` is not the round 0 of the recipe's control on this source, or
    has not ended, and CheckpointError when it is damaged.
    """
    recipe = fit_round_steps(recipe, source)
    with run_folder.claim_folder(out, recipe, source):
        if has_started(out):
            return
        run_folder.check_identity(shared, shared_recipe(recipe), source)
        if not has_ended(shared):
            raise UsageError(f"round 0 has not ended in {shared}", fix="train it first")
        copy_first_round(shared, out)


def copy_first_round(shared: Path, out: Path) -> None:
    """The checkpoint and logs of a round 0, the file that makes them count last."""
    sidecar = json.loads((shared / checkpoint.SIDECAR).read_text(encoding="utf8"))
    identity = json.loads((shared / "recipe.json").read_text(encoding="utf8"))
    for name in (sidecar["tensors"], "log.jsonl", "rewrites.jsonl"):
        shutil.copyfile(shared / name, out / name)
    journal = run_folder.RunLogs(out)
    journal.rewind(sidecar["state"]["logs"])
    origin = {"round": 0, "recipe": identity["recipe"]["name"]}
    origin |= {name: identity[name] for name in ("recipe_digest", "source_fingerprint")}
    journal.append("shared.jsonl", {**origin, "checkpoint_sha256": sidecar["sha256"]})
    sidecar["state"]["logs"] = journal.positions()
    write_atomic(out / checkpoint.SIDECAR, json.dumps(sidecar, indent=1).encode())
