"""SEAL's ablation "+ Freeze": while the early layers ascend, the late ones do not move.

SEAL Table 7; official code leaves the late layers out of the optimizer, so they see no update and
no decay, while their batch-norm statistics still move (methods.md D5). `freeze_norm=true` keeps
those too: the late norm layers then run in eval mode during the ascent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from pretrain import thresholds
from pretrain.method import Group
from pretrain.methods.seal import Seal, paper_row

if TYPE_CHECKING:
    from pretrain.context import Context


class SealFreeze(Seal):
    """freeze_norm: also hold the statistics of the late batch-norm layers."""

    freeze_norm: bool = False

    SOURCE: ClassVar = "SEAL Table 7, + Freeze; code amiiir-sarfi/SEAL"
    PAPER: ClassVar = paper_row("seal_freeze", 0.5245, 0.5117, "Table 7")

    def param_groups(self, ctx: Context, groups: list[Group]) -> list[Group]:
        if not self.ascending(ctx):
            return groups
        return super().param_groups(ctx, groups)[len(groups) :]

    def epoch_start(self, ctx: Context) -> None:
        super().epoch_start(ctx)
        if self.freeze_norm:
            for module in self._late_norms(ctx):
                module.train(not self.ascending(ctx))

    def _late_norms(self, ctx: Context) -> list[nn.Module]:
        threshold = thresholds.find(ctx.recipe, self.threshold)
        late = thresholds.late_modules(ctx.model, threshold)
        return [module for module in late if isinstance(module, _BatchNorm)]
