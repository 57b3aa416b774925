"""Plans and clocks count stages, rounds, epochs and steps."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pretrain.recipes.plan import Plan, Stage, TrainingClock


def test_a_clock_visits_every_position_once() -> None:
    plan = Plan(stages=(Stage(stop=0.5), Stage()), rounds=2, epochs=3)
    clock, seen, starts = TrainingClock(plan), [], []
    while not clock.done:
        if clock.epoch == 0 and clock.starts_stage:
            starts.append(clock.round)
        for _ in range(2):
            seen.append(clock.names)
            clock.tick()
        clock.next_epoch()
    assert len(seen) == len(set(seen)) == clock.step == 2 * plan.total_epochs == 24
    assert seen[0] == (0, 0, 0, 0)
    assert seen[-1] == (1, 3, 2, 1)
    assert starts == [0, 2]


def test_a_clock_comes_back_from_its_state() -> None:
    plan = Plan(rounds=2, epochs=3)
    clock = TrainingClock(plan, round=1, epoch=2, batch=5, step=77)
    assert TrainingClock(plan, **clock.state()) == clock
    assert clock.last_epoch


def test_a_stage_must_hold_images() -> None:
    with pytest.raises(ValidationError, match="holds no image"):
        Stage(start=0.5, stop=0.5)
