"""Which row is the matched-compute control of which: a fact of their recipes and costs.

Matched runs share everything but their methods (fsbench/core/training.py: `conditions`), the seed,
and
the steps and images that they really took; a row is never compared with any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from fsbench.core.training import Training
from leaderboard.methods.record import Kind
from leaderboard.methods.runs import Group

KINDS: tuple[Kind, ...] = get_args(Kind)
OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}


class Candidates(NamedTuple):
    """Rows that may be controls: plain ones by their conditions, random inits by their shape."""

    plain: dict[str, Group]
    random: dict[str, Group]


def candidates(groups: Sequence[Group]) -> Candidates:
    known = [(group, group.training) for group in groups]
    return Candidates(
        {training.conditions(): group for group, training in known if training and training.plain},
        {group.runs[0].shape: group for group, training in known if training is None},
    )


class Found(NamedTuple):
    """A control with the seeds that both sides have, or the reason why there is none."""

    group: Group | None = None
    seeds: tuple[int, ...] = ()
    reason: str = ""


def controls(group: Group, among: Candidates) -> dict[Kind, Found]:
    """Of a row, by kind; a random init has none."""
    training = group.training
    if training is None:
        return {}
    return {
        "normal": normal(group, training, among),
        "other_schedule": other_schedule(group, training, among),
        "random_init": random_init(group, among),
    }


def normal(group: Group, training: Training, among: Candidates) -> Found:
    if training.plain:
        return Found(reason="it is plain training itself")
    return matched(group, training.conditions(), among)


def other_schedule(group: Group, training: Training, among: Candidates) -> Found:
    other = OTHER.get(training.view.schedule)
    if other is None:
        return Found(reason=f"schedule {training.view.schedule} has no counterpart")
    if training.rounds < 2:
        return Found(reason="one round: nothing restarts")
    return matched(group, training.conditions(other), among)


def random_init(group: Group, among: Candidates) -> Found:
    other = among.random.get(group.runs[0].shape)
    if other is not None:
        return Found(other, group.seeds)
    return Found(reason=f"no random init of {group.runs[0].facts.architecture} on this board")


def matched(group: Group, conditions: str, among: Candidates) -> Found:
    """The plain row under these conditions, with the seeds on which both took as many steps."""
    other = among.plain.get(conditions)
    if other is not None:
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
