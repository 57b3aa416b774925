"""Matched-compute controls, from recipes and costs.

A row and its control share everything but their methods (`Training.conditions`), have common seeds,
and took the same number of steps and images. No other rows are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leaderboard.methods.record import ControlKind
from leaderboard.methods.runs import SeedGroup

OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}


class ControlIndex(NamedTuple):
    """Possible controls: plain training by conditions, random initializations by shape."""

    plain: dict[str, SeedGroup]
    random: dict[str, SeedGroup]


def index_controls(groups: Sequence[SeedGroup]) -> ControlIndex:
    plain = {t.conditions(): group for group in groups if (t := group.training) and t.plain}
    return ControlIndex(plain, {g.runs[0].shape: g for g in groups if g.training is None})


class MatchedControl(NamedTuple):
    """A control with the common seeds, or the reason why there is none."""

    group: SeedGroup | None = None
    seeds: tuple[int, ...] = ()
    reason: str = ""


def match_controls(group: SeedGroup, among: ControlIndex) -> dict[ControlKind, MatchedControl]:
    """Return the controls of a row by kind; a random initialization has none."""
    training, first = group.training, group.runs[0]
    if training is None:
        return {}
    schedule = training.view.schedule
    if training.plain:
        normal = MatchedControl(reason="it is plain training itself")
    else:
        normal = match_conditions(group, training.conditions(), among)
    if schedule not in OTHER:
        other = MatchedControl(reason=f"schedule {schedule} has no counterpart")
    elif training.rounds < 2:
        other = MatchedControl(reason="one round: nothing restarts")
    else:
        other = match_conditions(group, training.conditions(OTHER[schedule]), among)
    if first.shape in among.random:
        random_init = MatchedControl(among.random[first.shape], group.seeds)
    else:
        random_init = MatchedControl(
            reason=f"no random init of {first.facts.architecture} on this board"
        )
    return {"normal": normal, "other_schedule": other, "random_init": random_init}


def match_conditions(group: SeedGroup, conditions: str, among: ControlIndex) -> MatchedControl:
    """Return plain training under these conditions, with the seeds of equal steps and images."""
    other = among.plain.get(conditions)
    if other is None:
        return MatchedControl(reason="no normal under the same plan and settings on this board")
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
