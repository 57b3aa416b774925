"""Two processes train what one does: every method, with uneven shares, to the rounding of float64.

One torchrun trains everything that the tests look at.
"""

from pathlib import Path

import pytest
import torch
from support.pretrain import equal, lines, record, tiny, weights
from support.ranks import NETWORK, RANKS, Job, alone, of_rank, together
from torch import Tensor

from pretrain import METHODS
from pretrain.training.distributed import PER_RANK

ROUNDING = 1e-12
"""Largest difference of a weight (of order 1) after 16 steps in float64."""
SHORT = {"gradinit": ("gradinit.iterations=2",), "nio": ("nio.iterations=2", "nio.batch_size=8")}


def job(name: str) -> Job:
    """Shares of 3 and 4 images, or of one and two tasks."""
    tasks = "way" in METHODS.load(name).model_fields
    size = "batch_size=12" if tasks else "batch_size=7"
    return Job(tiny(name, *NETWORK, size, *SHORT.get(name, ())))


def jobs() -> dict[str, Job]:
    """One for every method that can run here."""
    made = {}
    for name in METHODS.names():
        try:
            made[name] = job(name)
        except pytest.skip.Exception:
            continue
    return made


def apart(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """The largest difference of two states."""
    assert a.keys() == b.keys()
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)


RESUMED = ("imp", "lw", "seal", "swr")
SETTINGS = {
    "dropout": ("dropout=0.5",),
    "converging": ("plan.stop_accuracy=0.3", "plan.epochs=6", "schedule=constant"),
    "plateau": ("schedule=plateau", "plateau_epochs=1", "lr=0.003", "warmup=0"),
    "full_batch": ("loader=full_batch", "batch_size=40", "augmentation=none"),
}
OTHERS = {
    "batch_norm": Job(tiny("normal")),
    **{name: Job(tiny("normal", *NETWORK, *fields)) for name, fields in SETTINGS.items()},
    **{f"killed {name}": Job(tiny(name), kill_at=9) for name in RESUMED},
    **{f"whole {name}": Job(tiny(name)) for name in RESUMED},
}


SYNC_BN = Job(tiny("normal", "sync_bn=true"))
"""What ranks on GPUs alone can train."""


@pytest.fixture(scope="module", params=["gloo", pytest.param("nccl", marks=pytest.mark.gpu(2))])
def backend(request: pytest.FixtureRequest) -> str:
    """Ranks on the CPU, and under `-m gpu` on two GPUs."""
    return str(request.param)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, backend: str) -> Path:
    """The runs of two ranks: one a method, and the others."""
    out = tmp_path_factory.mktemp("both")
    together(jobs() | OTHERS, out, backend)
    return out


@pytest.mark.parametrize("name", METHODS.names())
def test_two_processes_do_what_one_does(
    name: str, both: Path, tmp_path: Path, backend: str
) -> None:
    one = alone(job(name), tmp_path, backend)  # skips where learn2learn is missing
    a, b = (of_rank(both / name, rank) for rank in range(RANKS))
    assert equal(a, b)
    assert equal(a, weights(both / name))
    assert apart(weights(both / name), weights(one)) < ROUNDING
    for ours, theirs in zip(lines(both / name), lines(one), strict=True):
        assert ours.pop("train_loss") == pytest.approx(theirs.pop("train_loss"), rel=1e-6)
        assert ours == theirs
    assert len(lines(both / name, "rewrites.jsonl")) == len(lines(one, "rewrites.jsonl"))
    ours, theirs = record(both / name), record(one)
    for field in ("recipe_digest", "steps", "samples", "flops", "event_flops", "rounds"):
        assert ours[field] == theirs[field], field
    assert (ours["processes"], ours["backend"]) == (RANKS, backend)
    assert ours["unlike_one_process"] == {}
    assert "processes" not in theirs


@pytest.mark.parametrize("name", OTHERS)
def test_ranks_agree_under_every_setting(name: str, both: Path) -> None:
    assert equal(*(of_rank(both / name, rank) for rank in range(RANKS)))
    assert {t.dtype for t in weights(both / "normal").values()} == {torch.float64}


@pytest.mark.parametrize("name", ["converging", "plateau", "full_batch"])
def test_branches_on_what_was_learned_are_those_of_one_process(
    name: str, both: Path, tmp_path: Path, backend: str
) -> None:
    one = alone(OTHERS[name], tmp_path, backend)
    assert apart(weights(both / name), weights(one)) < ROUNDING
    assert [r["lr"] for r in lines(both / name)] == [r["lr"] for r in lines(one)]
    assert record(both / name)["rounds"] == record(one)["rounds"]


@pytest.mark.parametrize(("name", "reason"), [("batch_norm", "batch norm"), ("dropout", "dropout")])
def test_what_differs_from_one_process_is_recorded(
    name: str, reason: str, both: Path, tmp_path: Path, backend: str
) -> None:
    assert record(both / name)["unlike_one_process"] == {reason: PER_RANK[reason]}
    one = alone(OTHERS[name], tmp_path, backend)
    assert apart(weights(both / name), weights(one)) > 1e-6


@pytest.mark.gpu(2)
def test_batch_norm_over_all_gpus_is_that_of_one_process(tmp_path: Path) -> None:
    together({"pair": SYNC_BN}, tmp_path, "nccl")
    one = alone(SYNC_BN, tmp_path / "alone", "nccl")
    assert apart(weights(tmp_path / "pair"), weights(one)) < ROUNDING
    assert record(tmp_path / "pair")["unlike_one_process"] == {}


@pytest.mark.parametrize("name", RESUMED)
def test_a_killed_run_goes_on_to_the_same_bits(name: str, both: Path) -> None:
    assert equal(of_rank(both / f"killed {name}", 1), of_rank(both / f"whole {name}", 1))
    assert lines(both / f"killed {name}") == lines(both / f"whole {name}")
