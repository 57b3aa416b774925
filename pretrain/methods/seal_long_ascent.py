"""SEAL + Long ascent: ascend by a large S, with little descent after it (ablation).

Not in the paper (SEAL, https://arxiv.org/abs/2304.04858, of which it varies section 3.2).

    S * sum of eta_e over the ascent steps of a round = 9.4 to 9.6 (9.43 in the paper)

The descent after it is not the paper's: descent / ascent (seal.py) is 168 there, here 4.6 in
`pilot/` (S = 0.24) and 1.1 in `regime/` (3.0). `toy/` reaches chance with less (0.1; 11). The sum
of `full/seal` is the paper's already, so the default is another S of a low ratio (0.2; 8.4).
Other settings and the differences are those of seal.py; no run warns of its ratio.
"""

from typing import ClassVar

from pydantic import Field

from pretrain.methods.seal import Seal


class SealLongAscent(Seal):
    """SEAL with an ascent that is long beside the descent after it."""

    ascent_factor: float = Field(0.2, ge=0)

    SOURCE: ClassVar = "an ablation of SEAL of this package; SEAL, section 3.2"
    PILOT: ClassVar = {"seal_long_ascent.ascent_factor": 0.24}
    REGIME: ClassVar = {"seal_long_ascent.ascent_factor": 3.0}
    TOY: ClassVar = {"seal_long_ascent.ascent_factor": 0.1}
    PAPER: ClassVar = ()
    LEAST_RATIO: ClassVar = 0
