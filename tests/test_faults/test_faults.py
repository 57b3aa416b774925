"""The quick part of `make stress`: two seeded kills of every command, and each other fault once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stress import damage, interruptions, surroundings
from stress.jobs import JOBS
from stress.tally import Row
from stress.trial import Trials


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("trials"))


def require_whole(row: Row) -> None:
    assert row.whole, "\n".join(row.said)
    assert (row.lost, row.wrong, row.torn) == (0, 0, 0)


@pytest.mark.parametrize("job", JOBS)
def test_kill_9(job: str, trials: Trials) -> None:
    require_whole(interruptions.kills(trials, job, range(2)))


FAULTS: list[tuple[Callable[..., Row], tuple[Any, ...], int]] = [
    (interruptions.signals, ("pretrain",), 2),
    (interruptions.signals, ("features",), 1),
    (interruptions.full_disks, ("pretrain",), 1),
    (interruptions.full_disks, ("features",), 1),
    (interruptions.full_disks, ("submit",), 1),
    (damage.caches, ("features",), 1),
    (damage.caches, ("own images",), 1),
    (damage.unfinished, ("pretrain",), 1),
    (damage.unfinished, ("features",), 1),
    (damage.unfinished, ("episodes",), 1),
    (surroundings.together, ("pretrain",), 1),
    (surroundings.together, ("episodes",), 1),
    (surroundings.unwritable, ("episodes",), 1),
    (surroundings.changed_images, (), 1),
    (surroundings.diverging, (), 1),
]


@pytest.mark.parametrize(
    ("fault", "job", "n"), FAULTS, ids=[f"{f.__name__} {' '.join(j)}" for f, j, _ in FAULTS]
)
def test_faults(fault: Callable[..., Row], job: tuple[Any, ...], n: int, trials: Trials) -> None:
    require_whole(fault(trials, *job, range(n)))


def test_a_file_system_without_room_for_the_features_is_an_error(trials: Trials) -> None:
    """A mapped file on a full disk would end the process with SIGBUS."""
    row = surroundings.full_file_system(trials, range(1))
    if not row.injected:
        pytest.skip("this process may not mount a file system")
    require_whole(row)
