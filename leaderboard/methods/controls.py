"""Which row is the matched-compute control of which: a fact of their recipes and costs.

Matched runs share everything but their methods (fsbench/training.py: `conditions`), the seed, and
the steps and images that they really took; a row is never compared with any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from fsbench.training import Training
from leaderboard.methods.grouping import RANDOM, Group
from leaderboard.methods.record import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}


class Found(NamedTuple):
    """A control with the seeds that both sides have, or the reason why there is none."""

    group: Group | None = None
    seeds: tuple[int, ...] = ()
    reason: str = ""


def controls(group: Group, groups: Sequence[Group]) -> dict[Kind, Found]:
    """Of a row, by kind; a random init has none."""
    training = group.training
    if training is None:
        return {}
    return {
        "normal": normal(group, training, groups),
        "other_schedule": other_schedule(group, training, groups),
        "random_init": random_init(group, groups),
    }


def normal(group: Group, training: Training, groups: Sequence[Group]) -> Found:
    if training.plain:
        return Found(reason="it is plain training itself")
    return matched(group, training.conditions(), groups)


def other_schedule(group: Group, training: Training, groups: Sequence[Group]) -> Found:
    other = OTHER.get(training.view.schedule)
    if other is None:
        return Found(reason=f"schedule {training.view.schedule} has no counterpart")
    if training.rounds < 2:
        return Found(reason="one round: nothing restarts")
    return matched(group, training.conditions(other), groups)


def random_init(group: Group, groups: Sequence[Group]) -> Found:
    shape = group.runs[0].shape
    for other in groups:
        if other.method == RANDOM and other.runs[0].shape == shape:
            return Found(other, group.seeds)
    return Found(reason=f"no random init of {group.runs[0].facts.architecture} on this board")


def matched(group: Group, conditions: str, groups: Sequence[Group]) -> Found:
    """The plain row under these conditions, with the seeds on which both took as many steps."""
    for other in groups:
        if other.training and other.training.plain and other.training.conditions() == conditions:
            return on_shared_seeds(group, other)
    return Found(reason="no normal under the same plan and settings on this board")


def on_shared_seeds(group: Group, other: Group) -> Found:
    both = sorted(set(group.seeds) & set(other.seeds))
    if not both:
        held = ", ".join(map(str, other.seeds))
        return Found(reason=f"{other.name} is there with other seeds only: {held}")
    equal = [seed for seed in both if taken(group, seed) == taken(other, seed)]
    if not equal:
        (steps, images), (ours, mine) = taken(other, both[0]), taken(group, both[0])
        return Found(
            reason=f"{other.name} took {steps} steps over {images} images, not {ours} over {mine}"
        )
    return Found(other, tuple(equal))


def taken(group: Group, seed: int) -> tuple[int, int]:
    """Steps and images of the run with this seed."""
    found = [run.training for run in group.of([seed]) if run.training]
    return found[0].steps, found[0].samples
