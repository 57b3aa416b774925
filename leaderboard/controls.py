"""Matched-compute controls of a row.

A row and its control share everything but their methods (`Training.conditions`), have common seeds,
and took the same number of steps and images. No other rows are compared. Controls are named by the
board (`controls` in board.json) or part of the entry itself: what other entries claim has no part.
The board also says which of them are tuned (`tuned`), as no recipe records a search.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from fsbench.core.schema import BackboneFacts, Training
from fsbench.core.specs import digest
from leaderboard.tables import Row, average_rows

ControlKind = Literal["normal", "tuned", "other_schedule", "random_init"]
"""Controls of a row. normal: plain training, all else equal; tuned: the same, but with searched
settings; other_schedule: as normal, but with a learning rate that restarts at every round if the
row's does not, and vice versa; random_init: the network before any training."""
SEARCHED = ("lr", "weight_decay", "label_smoothing")
"""Fields of a recipe in which a tuned control may differ from a row."""
OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}
SHAPE = ("feature_dim", "features", "input_size", "mean", "std", "n_parameters")
"""Facts, beside the architecture, that a network shares with its random initialization."""
IS_PLAIN = "it is plain training itself"
IS_TUNED = "it is tuned plain training itself"


class Match(NamedTuple):
    """A row and its control, with the seeds that count; is_paired: the seeds are the same."""

    row: Row
    control: Row
    is_paired: bool = True


Controls = Mapping[ControlKind, Match | str]
"""Kind -> the match, or the reason why there is none."""


def match_controls(row: Row, named: Sequence[Row], tuned: Collection[str] = ()) -> Controls:
    """Return the controls of a row by kind; a random initialization has none.

    Weights without a recorded run have random ones alone. named: the rows that the board names as
    controls; those of the entry itself come first. tuned: names of the tuned ones; without any the
    kind is missing.
    """
    if row.facts.random_init is not None:
        return {}
    candidates = [*list_inner_controls(row), *named]
    by_use = {find_use(control.facts): control for control in reversed(candidates)}
    none = f"the board names no random init of {row.facts.architecture} as a control"
    untrained = by_use.get(find_shape(row.facts))
    random_init = Match(row, untrained, is_paired=False) if untrained else none
    training = row.facts.training
    if training is None:
        return {"random_init": random_init}
    normal: Match | str = IS_PLAIN
    searched: Match | str = IS_PLAIN
    conditions = training.conditions(leave_out=SEARCHED)
    alike = [c for c in named if tuned and find_use(c.facts, SEARCHED) == conditions]
    untuned = [control for control in alike if control.name not in tuned]
    if not training.plain:
        normal = match_plain(row, by_use.get(training.conditions()))
        searched = match_only(row, [control for control in alike if control.name in tuned])
    elif row.name in tuned and untuned:
        normal, searched = match_only(row, untuned), IS_TUNED
    schedule = training.view.schedule
    if schedule not in OTHER:
        other: Match | str = f"schedule {schedule} has no counterpart"
    elif len(training.view.plan.stages) * training.view.plan.rounds < 2:
        other = "one round: nothing restarts"
    else:
        other = match_plain(row, by_use.get(training.conditions(OTHER[schedule])))
    tuned_kind: Controls = {"tuned": searched} if tuned else {}
    return {"normal": normal, **tuned_kind, "other_schedule": other, "random_init": random_init}


def match_only(row: Row, controls: Sequence[Row]) -> Match | str:
    """Return the match with the only one of these controls, whose searched fields may differ."""
    if len(controls) == 1:
        return match_plain(row, controls[0])
    names = ", ".join(control.name for control in controls) or "none"
    return f"one control equal but for {', '.join(SEARCHED)} is needed, the board names {names}"


def match_plain(row: Row, control: Row | None) -> Match | str:
    """Return the match with plain training, over the seeds of equal steps and images."""
    if control is None:
        return "the board names no normal under the same plan and settings as a control"
    ours, theirs = count_steps(row), count_steps(control)
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return f"{control.name} has other seeds only: {', '.join(map(str, theirs))}"
    equal = [seed for seed in both if ours[seed] == theirs[seed]]
    if not equal:
        (steps, images), (our_steps, our_images) = theirs[both[0]], ours[both[0]]
        return (
            f"{control.name} took {steps} steps over {images} images, not {our_steps} over "
            f"{our_images}"
        )
    return Match(select_seeds(row, equal), select_seeds(control, equal))


def count_steps(row: Row) -> dict[int, tuple[int, int]]:
    """Return steps and images of the run of each seed."""
    trainings = {network.seed: find_training(network.facts) for network in row.networks}
    return {seed: (run.steps, run.samples) for seed, run in trainings.items() if run}


def select_seeds(row: Row, seeds: Iterable[int]) -> Row:
    """Return the mean over these seeds of a row."""
    networks = {network.seed: network for network in row.networks}
    return replace(average_rows([networks[seed] for seed in seeds], True), name=row.name)


def list_inner_controls(row: Row) -> list[Row]:
    """Return the controls that an entry takes along, the mean over the seeds of each recipe."""
    by_recipe: dict[str, list[Row]] = {}
    for network in row.controls:
        training = find_training(network.facts)
        recipe = training.composition if training else find_shape(network.facts)
        by_recipe.setdefault(recipe, []).append(network)
    name = f"control of {row.name}"
    return [replace(average_rows(seeds, True), name=name) for seeds in by_recipe.values()]


def find_training(facts: BackboneFacts) -> Training | None:
    """Return the training of a network; None for random weights."""
    return None if facts.random_init is not None else facts.training


def find_use(facts: BackboneFacts, leave_out: Sequence[str] = ()) -> str:
    """Return what the rows share whose control a network may be; empty for a method.

    It is the conditions of plain training without some fields, or the shape of a random
    initialization.
    """
    if facts.random_init is not None:
        return find_shape(facts)
    run = facts.training
    return run.conditions(leave_out=leave_out) if run and run.plain else ""


def find_shape(facts: BackboneFacts) -> str:
    """Return the digest of what a network shares with its random initialization."""
    name = facts.architecture.partition("@")[0]  # the width is not always part of it
    return digest({"name": name, **facts.model_dump(mode="json", include=set(SHAPE))})
