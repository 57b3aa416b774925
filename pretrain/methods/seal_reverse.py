"""SEAL + Reverse: the late layers ascend and the early ones descend (ablation).

Simulated Annealing in Early Layers Leads to Better Generalization. A. M. Sarfi et al., CVPR 2023.
Paper: https://arxiv.org/abs/2304.04858, Table 7
Code:  https://github.com/amiiir-sarfi/SEAL, flag fc_never_ascend

    round r > 0, epoch e < k:   theta_late <- theta_late + S eta_e m,   theta_early descends

| setting       | paper      | official code         | here                               |
|---------------|------------|-----------------------|------------------------------------|
| head_descends | not stated | false; an option      | false; true: the head descends     |

Other settings and the differences are those of seal.py.
"""

from typing import ClassVar

from torch import nn

from fsbench.backbones.architectures import RoleMap
from pretrain.methods.seal import Seal
from pretrain.recipes.recipe import seal_rows
from pretrain.weights import surgery


class SealReverse(Seal):
    """Settings of SEAL + Reverse. head_descends: the head descends although it is a late layer."""

    head_descends: bool = False

    SOURCE: ClassVar = "SEAL Table 7, + Reverse; code amiiir-sarfi/SEAL"
    PAPER: ClassVar = seal_rows("seal_reverse", 0.5025, 0.4105, "Table 7")

    def ascent_set(self, model: nn.Module, roles: RoleMap, threshold: str) -> tuple[str, ...]:
        late = surgery.split_parameters(model, threshold)[1]
        head = f"{roles.head}."
        return tuple(n for n in late if not (self.head_descends and n.startswith(head)))
