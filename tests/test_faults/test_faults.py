"""The quick part of `make stress`: two seeded kills of every command, and each other fault once."""

import pytest
from stress.damage import change_image, damage_cache, damage_unfinished
from stress.interruptions import fill_disk, kill, stop
from stress.jobs import EVERY
from stress.surroundings import SMALL, diverge, fill_file_system, forbid_output, run_twice
from stress.trials import Kind, Trials

FAULTS: list[tuple[Kind, str]] = [
    *((kill, job) for job in EVERY),
    (stop, "pretrain"),
    (fill_disk, "pretrain"),
    (fill_disk, "submit"),
    (damage_cache, "features"),
    (damage_cache, "decode"),
    (damage_unfinished, "episodes"),
    (run_twice, "episodes"),
    (run_twice, "submit"),
    (forbid_output, "episodes"),
    (change_image, "own images"),
    (diverge, "pretrain"),
    *((fill_file_system, job) for job in SMALL),
]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("trials"))


@pytest.mark.parametrize(("kind", "job"), FAULTS, ids=[f"{k.title} {job}" for k, job in FAULTS])
def test_a_job_survives_a_fault(kind: Kind, job: str, trials: Trials) -> None:
    row = kind.inject(trials, job, range(2 if kind is kill else 1))
    if not row.injected:
        pytest.skip("this process may not mount a file system")
    assert row.is_whole, "\n".join(row.said)
    assert (row.lost, row.wrong, row.torn) == (0, 0, 0)
