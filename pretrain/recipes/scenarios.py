"""How the source's images arrive: all at once, half first, or in ten parts.

"Soft Weight Rescaling", section 4 and appendix E (methods.md B). The parts are cut from one random
order of the training images. With more than one stage the optimizer's state and the learning rate
carry over, as in the paper's code: nothing is reset and no schedule runs.

A scenario is a set of recipe fields and fits every recipe (`--scenario`). The control of a run is
`normal` of the same scale with the same scenario and as many images an epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

from fsbench.core.errors import UnknownName
from pretrain.recipes.plan import Stage

CHUNKS = 10
SCENARIOS: Mapping[str, tuple[Stage, ...]] = {
    "stationary": (Stage(),),
    "warm-start": (Stage(stop=0.5), Stage()),
    "continual-full": tuple(Stage(stop=k / CHUNKS) for k in range(1, CHUNKS + 1)),
    "continual-limited": tuple(
        Stage(start=(k - 1) / CHUNKS, stop=k / CHUNKS) for k in range(1, CHUNKS + 1)
    ),
}


def fields(name: str) -> dict[str, object]:
    """What the scenario sets in a recipe. Raises UnknownName."""
    if name not in SCENARIOS:
        raise UnknownName("scenario", name, SCENARIOS)
    stages = SCENARIOS[name]
    carried = {"opt_reset": "none", "schedule": "constant", "warmup": 0.0}
    return {"plan.stages": stages, **(carried if len(stages) > 1 else {})}
