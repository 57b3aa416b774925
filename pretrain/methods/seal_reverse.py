"""SEAL's ablation "+ Reverse": the late layers ascend and the early ones descend.

SEAL Table 7; `head_descends=true` is the official code's fc_never_ascend (methods.md D5).
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from fsbench.backbones.architectures import RoleMap
from pretrain import surgery
from pretrain.methods.seal import Seal, paper_row


class SealReverse(Seal):
    """head_descends: the head descends although it is late."""

    head_descends: bool = False

    SOURCE: ClassVar = "SEAL Table 7, + Reverse; code amiiir-sarfi/SEAL"
    PAPER: ClassVar = paper_row("seal_reverse", 0.5025, 0.4105, "Table 7")

    def ascent_set(self, model: nn.Module, roles: RoleMap, threshold: str) -> tuple[str, ...]:
        late = surgery.split(model, threshold)[1]
        spared = f"{roles.head}." if self.head_descends else "\0"
        return tuple(name for name in late if not name.startswith(spared))
