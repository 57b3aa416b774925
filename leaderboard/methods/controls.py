"""Which row is the matched-compute control of which: a fact of their recipes and costs.

Matched runs share everything but their methods (fsbench/core/training.py: `conditions`), the seed,
and
the steps and images that they really took; a row is never compared with any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

from fsbench.core.training import Training
from leaderboard.methods.record import ControlKind
from leaderboard.methods.runs import SeedGroup

KINDS: tuple[ControlKind, ...] = get_args(ControlKind)
OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}


class ControlIndex(NamedTuple):
    """Rows that may be controls: plain ones by their conditions, random inits by their shape."""

    plain: dict[str, SeedGroup]
    random: dict[str, SeedGroup]


def index_controls(groups: Sequence[SeedGroup]) -> ControlIndex:
    known = [(group, group.training) for group in groups]
    return ControlIndex(
        {training.conditions(): group for group, training in known if training and training.plain},
        {group.runs[0].shape: group for group, training in known if training is None},
    )


class MatchedControl(NamedTuple):
    """A control with the seeds that both sides have, or the reason why there is none."""

    group: SeedGroup | None = None
    seeds: tuple[int, ...] = ()
    reason: str = ""


def match_controls(group: SeedGroup, among: ControlIndex) -> dict[ControlKind, MatchedControl]:
    """Of a row, by kind; a random init has none."""
    training = group.training
    if training is None:
        return {}
    return {
        "normal": match_normal(group, training, among),
        "other_schedule": match_other_schedule(group, training, among),
        "random_init": match_random_init(group, among),
    }


def match_normal(group: SeedGroup, training: Training, among: ControlIndex) -> MatchedControl:
    if training.plain:
        return MatchedControl(reason="it is plain training itself")
    return match_conditions(group, training.conditions(), among)


def match_other_schedule(
    group: SeedGroup, training: Training, among: ControlIndex
) -> MatchedControl:
    other = OTHER.get(training.view.schedule)
    if other is None:
        return MatchedControl(reason=f"schedule {training.view.schedule} has no counterpart")
    if training.rounds < 2:
        return MatchedControl(reason="one round: nothing restarts")
    return match_conditions(group, training.conditions(other), among)


def match_random_init(group: SeedGroup, among: ControlIndex) -> MatchedControl:
    other = among.random.get(group.runs[0].shape)
    if other is not None:
        return MatchedControl(other, group.seeds)
    return MatchedControl(
        reason=f"no random init of {group.runs[0].facts.architecture} on this board"
    )


def match_conditions(group: SeedGroup, conditions: str, among: ControlIndex) -> MatchedControl:
    """The plain row under these conditions, with the seeds on which both took as many steps."""
    other = among.plain.get(conditions)
    if other is not None:
        return match_seeds(group, other)
    return MatchedControl(reason="no normal under the same plan and settings on this board")


def match_seeds(group: SeedGroup, other: SeedGroup) -> MatchedControl:
    both = sorted(set(group.seeds) & set(other.seeds))
    if not both:
        held = ", ".join(map(str, other.seeds))
        return MatchedControl(reason=f"{other.name} is there with other seeds only: {held}")
    equal = [seed for seed in both if count_steps(group, seed) == count_steps(other, seed)]
    if not equal:
        (steps, images), (ours, mine) = count_steps(other, both[0]), count_steps(group, both[0])
        return MatchedControl(
            reason=f"{other.name} took {steps} steps over {images} images, not {ours} over {mine}"
        )
    return MatchedControl(other, tuple(equal))


def count_steps(group: SeedGroup, seed: int) -> tuple[int, int]:
    """Steps and images of the run with this seed."""
    found = [run.training for run in group.of([seed]) if run.training]
    return found[0].steps, found[0].samples
