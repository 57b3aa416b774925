"""SEAL + Freeze: while the early layers ascend, the late ones do not change (ablation).

Simulated Annealing in Early Layers Leads to Better Generalization. A. M. Sarfi et al., CVPR 2023.
Paper: https://arxiv.org/abs/2304.04858, Table 7
Code:  https://github.com/amiiir-sarfi/SEAL

    round r > 0, epoch e < k:   theta_early <- theta_early + S eta_e m,   theta_late unchanged

| setting     | paper      | official code                   | here                              |
|-------------|------------|---------------------------------|-----------------------------------|
| freeze_norm | not stated | late batch-norm statistics move | false: they move; true: eval mode |

As in the official code, the optimizer does not hold the late layers during the ascent, so they get
neither an update nor decay. Other settings and the differences are those of seal.py.
"""

from typing import ClassVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from pretrain.methods.seal import Seal
from pretrain.recipes.recipe import seal_rows
from pretrain.training.context import Context, ParameterGroup
from pretrain.weights import surgery


class SealFreeze(Seal):
    """Settings of SEAL + Freeze; freeze_norm: also freeze the late running statistics."""

    freeze_norm: bool = False

    SOURCE: ClassVar = "SEAL Table 7, + Freeze; code amiiir-sarfi/SEAL"
    PAPER: ClassVar = seal_rows("seal_freeze", 0.5245, 0.5117, "Table 7")

    def param_groups(self, ctx: Context, groups: list[ParameterGroup]) -> list[ParameterGroup]:
        if not self.ascending(ctx):
            return groups
        return super().param_groups(ctx, groups)[len(groups) :]

    def epoch_start(self, ctx: Context) -> None:
        super().epoch_start(ctx)
        if self.freeze_norm:
            for module in self._late_norms(ctx):
                module.train(not self.ascending(ctx))

    def _late_norms(self, ctx: Context) -> list[nn.Module]:
        threshold = surgery.find_threshold(ctx.recipe, self.threshold)
        late = surgery.late_modules(ctx.model, threshold)
        return [module for module in late if isinstance(module, _BatchNorm)]
