"""The quick part of `make stress`: two seeded kills of every command, and each other fault once."""

from collections.abc import Callable

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


FAULTS: list[tuple[Callable[..., Row], tuple[str, ...]]] = [
    (interruptions.signals, ("pretrain",)),
    (interruptions.full_disks, ("pretrain",)),
    (interruptions.full_disks, ("features",)),
    (damage.caches, ("features",)),
    (damage.caches, ("decode",)),
    (damage.unfinished, ("episodes",)),
    (surroundings.together, ("episodes",)),
    (surroundings.unwritable, ("episodes",)),
    (surroundings.changed_images, ()),
    (surroundings.diverging, ()),
]


@pytest.mark.parametrize(
    ("fault", "job"), FAULTS, ids=[" ".join([f.__name__, *job]) for f, job in FAULTS]
)
def test_every_other_fault(fault: Callable[..., Row], job: tuple[str, ...], trials: Trials) -> None:
    require_whole(fault(trials, *job, range(1)))


@pytest.mark.parametrize("job", surroundings.SMALL)
def test_a_file_system_without_room_is_an_error(job: str, trials: Trials) -> None:
    """A mapped file on a full disk would end the process with SIGBUS."""
    row = surroundings.full_file_system(trials, job, range(1))
    if not row.injected:
        pytest.skip("this process may not mount a file system")
    require_whole(row)
