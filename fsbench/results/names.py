"""Names that follow from facts: the folder of a model, the file name of a result.

results/<model>/<identity12>/entry.json  and  outcomes-<sha-256, 12>.arrow.zst   (entry.py)
results/<model>/<identity12>/analyses/<what>-<digest8>.json
"""

import re
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from fsbench.core.schema import IN_MEMORY, USER, BackboneFacts, DatasetRecord, Flag
from fsbench.core.specs import EpisodicSpec, Spec

ANALYSES = "analyses"
"""Folder of findings beside the results of a model."""
BADGES = "badges"
"""Folder of a board's entry: what others found when they ran it again."""
ORDER: tuple[Flag, ...] = ("subset", "limited", "short", "custom", "derived", "shard")
FILE = re.compile(r"(.+?\.(?:safetensors|pth|pt|ckpt|bin|tar))(?:::[^@]*)?@")
"""The path in FILE[::PART]@ARCH."""


def safe_name(text: str) -> str:
    """Return text as one path component: other characters become '-', never empty or hidden."""
    return re.sub(r"[^\w.+@=-]+", "-", text).strip("-.")[:100] or "unnamed"


def model_name(facts: BackboneFacts) -> str:
    """Return the name: timm/resnet18 -> timm-resnet18; run:runs/toy-llf-s0 -> toy-llf-s0.

    The seed of random weights follows, and what was chosen in place of a source's features.
    """
    ref = facts.ref.removeprefix(f"{facts.source}:")
    path = PurePosixPath(ref.replace("\\", "/"))
    if facts.source == "run":
        ref = path.name
    elif facts.source == "file":
        with_architecture = FILE.match(str(path))
        ref = PurePosixPath(with_architecture[1] if with_architecture else path).stem
    seed = () if facts.random_init is None else (f"random{facts.random_init}",)
    words = () if facts.source == IN_MEMORY else facts.feature_spec.variant
    choices = [word for word in words if facts.stated_by.get(word.partition("=")[0]) != USER]
    return "-".join([safe_name(ref), *map(safe_name, (*seed, *choices))])


def result_flags(
    dataset: DatasetRecord, spec: Spec, index: NDArray[np.int64] | None, limited: bool
) -> tuple[Flag, ...]:
    """Return why a result is not official; `limited` (by --limit) while episodes are missing.

    index: sorted distinct episode numbers, None for a probe.
    """
    reasons: dict[Flag, bool] = {}
    if not isinstance(spec, EpisodicSpec):
        reasons = {"derived": spec.split == "derived_80_20", "limited": limited}
    elif index is not None:
        parted = index.size > 0 and bool(index[-1] != index.size - 1)
        missing = index.size < spec.n_episodes
        reasons = {"shard": parted, "limited": limited and missing}
        reasons["short"] = missing and not limited and not parted
    return tuple(flag for flag in ORDER if flag in dataset.flags or reasons.get(flag))
