"""Sharing of round 0: it is trained once for all runs in which it is plain training.

A recipe whose methods do not act in round 0 (`Method.PLAIN_ROUND_0`) has the round 0 of its
control, to the bit: same network, source, seed, plan and schedule. That round is trained in a
separate folder, which belongs to the control, and its checkpoint is copied into the folder of every
run that starts from it. Such a run belongs to its recipe from the start; shared.jsonl and, at the
end, `shared_rounds` of run.json name the run of the copied round. Costs are those of the whole run.
"""

import json
import shutil
from pathlib import Path

import torch

from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic
from fsbench.core.progress import SILENT, Reporter
from fsbench.data.source import SourceDataset
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe, fit_round_steps
from pretrain.training import checkpoint, run_folder
from pretrain.training.loop import Trainer


def can_share_first_round(recipe: Recipe) -> bool:
    """Return whether a run of the recipe may start from round 0 of its control."""
    plain = all(method.PLAIN_ROUND_0 for method in recipe.methods)
    return plain and recipe.plan.total_rounds > 1 and recipe.loader != "episodes"


def shared_recipe(recipe: Recipe) -> Recipe:
    """Return the control, whose round 0 a run may start from. Raises UsageError if it may not."""
    if not can_share_first_round(recipe):
        names = "+".join(method.name for method in recipe.methods)
        raise UsageError(
            f"{recipe.name} cannot share round 0: {names} acts in it, or it is the only round",
            fix="train the run as a whole",
        )
    return registry.control_recipe(recipe)


def train_first_round(
    recipe: Recipe,
    source: SourceDataset,
    out: Path,
    *,
    device: str = "cpu",
    report: Reporter = SILENT,
) -> Path:
    """Train or resume round 0 of the recipe in `out`. Raises the errors of `train_recipe`."""
    recipe = fit_round_steps(recipe, source)
    with run_folder.claim_folder(out, recipe, source):
        if not has_ended(out):
            trainer = Trainer(recipe, source, out, torch.device(device), report)
            trainer.train(1, f"round 0 of {recipe.name}")
    return out


def has_ended(folder: Path) -> bool:
    """Return whether round 0 is over in the folder. Raises CheckpointError if unreadable."""
    saved = checkpoint.load_checkpoint(folder)
    return saved is not None and saved[1]["clock"]["round"] > 0


def has_started(folder: Path) -> bool:
    """Return whether the folder contains a checkpoint or a finished run."""
    return run_folder.is_finished(folder) or (folder / checkpoint.SIDECAR).is_file()


def start_from_first_round(recipe: Recipe, source: SourceDataset, shared: Path, out: Path) -> None:
    """Copy round 0 from the folder `shared` to the run of `recipe` in `out`.

    Runs that already started are left unchanged. Raises UsageError if `shared` is not round 0 of
    the recipe's control on this source or has not ended, CheckpointError if it is damaged.
    """
    recipe = fit_round_steps(recipe, source)
    with run_folder.claim_folder(out, recipe, source):
        if has_started(out):
            return
        run_folder.check_identity(shared, shared_recipe(recipe), source)
        if not has_ended(shared):
            raise UsageError(f"round 0 has not ended in {shared}", fix="train it first")
        _copy(shared, out)


def _copy(shared: Path, out: Path) -> None:
    """Copy the checkpoint and logs of round 0; the sidecar that makes them valid comes last."""
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
