"""Matched-compute controls, from recipes and costs.

A row and its control share everything but their methods (`Training.conditions`), have common seeds,
and took the same number of steps and images. No other rows are compared.
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
    """Possible controls: plain training by conditions, random initializations by shape."""

    plain: dict[str, SeedGroup]
    random: dict[str, SeedGroup]


def index_controls(groups: Sequence[SeedGroup]) -> ControlIndex:
    trained = [(group, group.training) for group in groups]
    return ControlIndex(
        {
            training.conditions(): group
            for group, training in trained
            if training and training.plain
        },
        {group.runs[0].shape: group for group, training in trained if training is None},
    )


class MatchedControl(NamedTuple):
    """A control with the common seeds, or the reason why there is none."""

    group: SeedGroup | None = None
    seeds: tuple[int, ...] = ()
    reason: str = ""


def match_controls(group: SeedGroup, among: ControlIndex) -> dict[ControlKind, MatchedControl]:
    """Return the controls of a row by kind; a random initialization has none."""
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
    """Return plain training under these conditions, with the seeds of equal steps and images."""
    other = among.plain.get(conditions)
    if other is not None:
        return match_seeds(group, other)
    return MatchedControl(reason="no normal under the same plan and settings on this board")


def match_seeds(group: SeedGroup, other: SeedGroup) -> MatchedControl:
    both = sorted(set(group.seeds) & set(other.seeds))
    if not both:
        seeds = ", ".join(map(str, other.seeds))
        return MatchedControl(reason=f"{other.name} has other seeds only: {seeds}")
    equal = [seed for seed in both if count_steps(group, seed) == count_steps(other, seed)]
    if not equal:
        (steps, images), (ours, mine) = count_steps(other, both[0]), count_steps(group, both[0])
        return MatchedControl(
            reason=f"{other.name} took {steps} steps over {images} images, not {ours} over {mine}"
        )
    return MatchedControl(other, tuple(equal))


def count_steps(group: SeedGroup, seed: int) -> tuple[int, int]:
    """Return steps and images of the run with this seed."""
    trainings = [run.training for run in group.of([seed]) if run.training]
    return trainings[0].steps, trainings[0].samples
