"""The training loop; methods differ from plain training only by their hooks.

    setup                                    model built, before any weight is restored
    for round in plan:                       stages x rounds; a kill anywhere resumes to the bit
        round_start                          round 0 included
        stage_start                          first round of a stage
        param_groups -> new optimizer        buffers dropped by `opt_reset`, schedule restarts
        for epoch in round:
            epoch_start                      may ask for a new optimizer
            lr_changed                       drops of the `step` and `plateau` schedules only
            for batch in epoch:
                training_step | forward, task loss
                loss_term                    added
                backward
                after_backward               edit gradients; then they are clipped
                before_step
                optimizer step
                after_step                   edit weights
            validate, log, checkpoint        a round may end early: plan.stop_accuracy
        round_end                            after the last validation of the round
    finalize                                 back to the plain architecture, export

A round is what the papers call a generation. Random streams (fsbench/core/seeding.py): `init`,
`order`, `augmentation`, `stages` and `step` (dropout) are keyed by the recipe's seed and the
position alone, `method` also by the method's name. Several processes can share the steps of one run
(pretrain/training/distributed.py).
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.parametrize import cached

from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks, open_ranks
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, StopRequest, hold_signals
from fsbench.core.progress import SILENT, Advance, Reporter
from fsbench.data.source import SourceDataset
from pretrain.recipes import schedules
from pretrain.recipes.recipe import Recipe, fit_round_steps
from pretrain.recipes.schedules import PlateauSchedule
from pretrain.training import checkpoint, run_folder
from pretrain.training.batches import Batch
from pretrain.training.checkpoint import pack_state, unpack_state
from pretrain.training.context import Context
from pretrain.training.cost import TrainingCost
from pretrain.training.distributed import backward, check_ranks_agree, copy_buffers, copy_first_rank
from pretrain.training.episodes import EpisodicValidation
from pretrain.training.factory import build_context, deterministic_kernels, use_precision
from pretrain.training.run_folder import (
    machine_facts,
    run_record,
    summarize_rounds,
    warn_if_bits_may_differ,
)
from pretrain.training.validation import EpochSums, Validation, autocast

CHECKPOINT_SECONDS = 60.0
"""A checkpoint inside a round is written when the last one is older than this."""
GPU_CHECK_STEPS = 25
"""Steps between checks of the loss on a GPU, where every check waits for the device."""

Observer = Callable[[Context], object]


def train_recipe(
    recipe: Recipe,
    source: SourceDataset,
    out: Path,
    *,
    device: str = "cpu",
    report: Reporter = SILENT,
    watch: Observer = lambda ctx: None,
) -> Path:
    """Train a recipe in the folder `out`, or resume there, and return the folder.

    A finished run returns at once; its folder loads as `run:DIR`. watch is called with the context
    after setup and after every epoch and must not change it. Raises UsageError if the folder holds
    another run or a package is missing, CheckpointError if its checkpoint is unusable, FsbenchError
    if the loss is not finite or memory is too small, and Stopped after a checkpoint on a signal
    that the command line handles.
    """
    recipe = fit_round_steps(recipe, source)
    if not run_folder.is_finished(out):
        recipe.require_installed()
    with open_ranks(device) as (ranks, local), run_folder.claim_folder(out, recipe, source, ranks):
        if not run_folder.is_finished(out):
            with use_precision(recipe, local), deterministic_kernels(recipe.deterministic):
                Trainer(recipe, source, out, local, report, watch, ranks).run()
    return out


class Trainer:
    """The training of one run: its context, logs, cost and the sums of the current epoch."""

    def __init__(
        self,
        recipe: Recipe,
        source: SourceDataset,
        out: Path,
        device: torch.device,
        report: Reporter,
        watch: Observer = lambda ctx: None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.recipe, self.source, self.out, self.ranks = recipe, source, out, ranks
        self.watch: Observer = watch if ranks.first else lambda ctx: None
        self.report = report if ranks.first else SILENT
        self.journal = run_folder.RunLogs(out, writes=ranks.first)
        log = partial(self.journal.append, "rewrites.jsonl")
        self.ctx = build_context(recipe, source, device, log, ranks)
        self.ctx.report = self.report
        kind = EpisodicValidation if recipe.loader == "episodes" else Validation
        self.validation = kind(self.ctx.loader, source, ranks)
        self.sums, self.plateau = EpochSums(ranks), PlateauSchedule()
        self.cost = TrainingCost(device, ranks)
        self.lr, self.accuracy, self.saves, self.stop = recipe.lr, 0.0, 0, StopRequest()

    def run(self) -> None:
        """Train from the folder's checkpoint, or from the start, to a finished run."""
        self._start()
        clock, size, what = self.ctx.clock, self.recipe.batch_size, f"pretrain {self.recipe.name}"
        images = self.ctx.loader.total_steps * size
        with (
            self.report.task(what, images, "images", clock.step * size) as advance,
            hold_signals() as self.stop,
        ):
            while not clock.done:
                self._epoch(advance)
        self._finish()

    def _start(self) -> None:
        """Set up the methods and restore the checkpoint, if there is one."""
        ctx, saved = self.ctx, checkpoint.load_checkpoint(self.out)
        ctx.resumed = saved is not None
        ctx.model.train()
        if saved is None:
            self.journal.rewind({})
        with self.cost.event():
            ctx.call("setup")
        if self.recipe.compile:
            replays = ctx.device.type == "cuda" and all(m.GRAPHS for m in self.recipe.methods)
            mode = "reduce-overhead" if replays else None  # CUDA graphs
            ctx.forward = torch.compile(ctx.model, dynamic=False, mode=mode)
        if saved is None:
            copy_first_rank(ctx, self.ranks)
            self.watch(ctx)
        else:
            self._restore(*saved)
        check_ranks_agree(ctx, self.ranks)

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        ctx = self.ctx
        self.report.log(f"resuming {self.out} at step {state['clock']['step']}")
        now = machine_facts(ctx.device, self.ranks)
        warn_if_bits_may_differ(state["machine"], now, self.report)
        self.sums.load(tensors.pop("seen"))
        unpack_state(ctx, tensors, state)
        self.saves, self.accuracy, self.lr = state["saves"], state["accuracy"], state["lr"]
        self.plateau = PlateauSchedule(**state["plateau"])
        self.cost.resume(state["cost"])
        self.journal.rewind(state["logs"])
        if (ctx.clock.epoch or ctx.clock.batch) and not ctx.clock.done:
            ctx.rebuild_optimizer("none")

    def _epoch(self, advance: Advance) -> None:
        """Run the rest of the current epoch. Raises FsbenchError if the loss is not finite."""
        clock = self.ctx.clock
        steps = self.ctx.loader.steps(clock.stage)
        check_steps = 1 if self.ctx.device.type == "cpu" else GPU_CHECK_STEPS
        if clock.batch == 0:
            with self.cost.event():
                self._open_epoch(steps)
            copy_first_rank(self.ctx, self.ranks)
        while clock.batch < steps:
            self._step(steps)
            advance(self.recipe.batch_size)
            if clock.step % check_steps:
                continue
            if not self.sums.finite:
                self._fail("the loss is not finite")
            signal = max(self.ranks.collect(self.stop.number, self.ctx.device))
            if signal or self.cost.unsaved >= CHECKPOINT_SECONDS:
                self._save()
            if signal:
                raise Stopped(signal)
        self._close_epoch()

    def _open_epoch(self, steps: int) -> None:
        """Run the hooks before an epoch; at a round start also its events and a new optimizer."""
        ctx, clock = self.ctx, self.ctx.clock
        self.sums.reset()
        if clock.epoch == 0:
            self.plateau = PlateauSchedule()
            ctx.call("round_start")
            if clock.starts_stage:
                ctx.call("stage_start")
            ctx.rebuild_optimizer(self.recipe.opt_reset)
        ctx.call("epoch_start")
        dropped = schedules.lr_drop(self.recipe, clock, steps, self.plateau)
        if dropped:
            ctx.call("lr_changed", *dropped)

    def _step(self, steps: int) -> None:
        """Take one optimizer step."""
        ctx, recipe = self.ctx, self.recipe
        self.lr = recipe.lr * schedules.lr_factor(recipe, ctx.clock, steps, self.plateau)
        ctx.set_learning_rate(self.lr)
        batch = ctx.loader.batch(ctx.clock, self.ranks)
        names = (*recipe.stream("step"), *ctx.clock.names, *self.ranks.names)
        with self.cost.step(ctx.clock.epoch == ctx.clock.batch == 0):
            with cached():  # a reparametrized weight is computed once a step
                with seeding.stream(*names, device=str(ctx.device)):
                    for parameter in ctx.parameters.values():
                        parameter.grad = None
                    loss, correct = self._task_loss(batch)
                    backward(ctx, self.ranks, sum(ctx.call("loss_term"), loss), batch.share)
                copy_buffers(ctx, self.ranks, of_norms=False)
                ctx.call("after_backward")
                if recipe.clip_norm is not None:
                    clip_grad_norm_(ctx.parameters.values(), recipe.clip_norm)
                ctx.call("before_step")
            ctx.optimizer.step()
            ctx.call("after_step")
        step_images = round(len(batch.labels) / batch.share)
        self.sums.add(loss.detach(), correct, len(batch.labels), step_images)
        self.cost.samples += step_images
        ctx.clock.tick()

    def _task_loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return loss and correct predictions of the batch (nan if a method replaces the step)."""
        ctx = self.ctx
        with autocast(self.recipe, ctx.device):
            losses = ctx.call("training_step", batch)
            if losses:
                return losses[0], torch.full_like(losses[0], math.nan)
            logits = ctx.forward(batch.images)
            smoothing = self.recipe.label_smoothing
            loss = functional.cross_entropy(logits, batch.labels, label_smoothing=smoothing)
        return loss, (logits.detach().argmax(dim=1) == batch.labels).count_nonzero()

    def _fail(self, what: str) -> None:
        clock = self.ctx.clock
        raise FsbenchError(
            f"{what} at step {clock.step} (round {clock.round}, epoch {clock.epoch}) of"
            f" {self.recipe.name}; the last good checkpoint stays in {self.out}",
            fix=f"lower the learning rate: --set lr={self.recipe.lr / 10:g} with another -o",
        )

    def _close_epoch(self) -> None:
        """Validate if due, log, move to the next epoch; write a checkpoint after a round."""
        ctx, clock = self.ctx, self.ctx.clock
        copy_buffers(ctx, self.ranks, of_norms=True)
        loss, train_accuracy = self.sums.means()
        clock.record_accuracy(train_accuracy)
        due = clock.last_epoch or (clock.epoch + 1) % self.recipe.validate_every == 0
        if due:
            self.accuracy = self.validation.measure(ctx)
        accuracy = self.accuracy if due else None
        self.plateau.update(clock.epoch, accuracy, self.recipe.plateau_epochs)
        line = {"lr": self.lr, "train_loss": loss, "train_accuracy": train_accuracy}
        line |= {"val_accuracy": None, self.validation.column: accuracy}
        self.journal.append("log.jsonl", clock.position() | line)
        if clock.last_epoch:
            with self.cost.event():
                ctx.call("round_end")
            what = self.validation.column.replace("_", " ")
            self.report.log(f"{self.recipe.name} round {clock.round}: {what} {self.accuracy:.1%}")
        check_ranks_agree(ctx, self.ranks)
        self.watch(ctx)
        ends_round = clock.last_epoch
        clock.next_epoch()
        if ends_round or self.cost.unsaved >= CHECKPOINT_SECONDS:
            self._save()

    def _save(self) -> None:
        """Write a checkpoint. Raises FsbenchError instead if a weight is not finite."""
        if not self.ranks.first:
            return
        tensors, state = pack_state(self.ctx)
        floats = [value for value in tensors.values() if value.is_floating_point()]
        if not all(torch.isfinite(value).all() for value in floats):
            self._fail("a weight is not finite")
        state |= {"saves": self.saves, "accuracy": self.accuracy, "lr": self.lr}
        state |= {"plateau": asdict(self.plateau), "cost": self.cost.state()}
        state["logs"] = self.journal.positions()
        state["machine"] = machine_facts(self.ctx.device, self.ranks)
        checkpoint.save_checkpoint(self.out, tensors | {"seen": self.sums.sums()}, state)
        self.saves = state["saves"]

    def _finish(self) -> None:
        """Return to the plain architecture and export the run."""
        with self.cost.event():
            self.ctx.call("finalize")
        if self.ranks.first:
            rounds = summarize_rounds(self.journal.read("log.jsonl"))
            record = run_record(self.ctx, self.source, rounds, self.cost)
            run_folder.write_finished_run(self.out, dict(self.ctx.model.state_dict()), record)
