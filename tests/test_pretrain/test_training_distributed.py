"""Ranks: shares of a batch, refusals and records."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.pretrain import equal, source, tiny
from support.reporters import Recorder
from torch import Tensor, distributed, nn

from fsbench.core import distributed as ranks
from fsbench.core import process, seeding
from fsbench.core.distributed import ALONE, Ranks, open_ranks
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.progress import SILENT
from pretrain.recipes.plan import TrainingClock
from pretrain.training import factory
from pretrain.training.batches import BatchLoader
from pretrain.training.distributed import backward, require_enough_images
from pretrain.training.episodes import EpisodeLoader
from pretrain.training.loop import Trainer
from pretrain.training.run_folder import machine_facts, warn_if_bits_may_differ

CPU = torch.device("cpu")


@given(st.integers(1, 7), st.integers(0, 60), st.integers(1, 5))
def test_shares_part_a_batch_in_whole_units_as_evenly_as_can_be(
    size: int, units: int, unit: int
) -> None:
    parts = [Ranks(rank, size).rows(units * unit, unit) for rank in range(size)]
    rows = [row for part in parts for row in range(units * unit)[part]]
    assert rows == list(range(units * unit))
    lengths = [(part.stop - part.start) / unit for part in parts]
    assert max(lengths) - min(lengths) <= 1
    assert all(length.is_integer() for length in lengths)


@pytest.mark.parametrize(
    ("loader", "fields", "lengths"),
    [
        *(
            (BatchLoader, ("normal", f"augmentation={kind}", "batch_size=7"), [2, 2, 3])
            for kind in ("crop_flip", "resize_crop_flip", "flip", "none")
        ),
        (EpisodeLoader, ("protonet", "batch_size=12"), [4, 4, 4]),
        (EpisodeLoader, ("protonet", "batch_size=16"), [4, 4, 8]),
    ],
)
def test_rows_of_ranks_are_the_batch_of_one_process(
    loader: Any, fields: tuple[str, ...], lengths: list[int]
) -> None:
    """Of a meta-learner, whole tasks of four images."""
    recipe = tiny(*fields)
    made, clock = loader(recipe, source(), CPU), TrainingClock(recipe.plan)
    whole, parts = made.batch(clock), [made.batch(clock, Ranks(r, 3)) for r in range(3)]
    assert torch.equal(whole.images, torch.cat([part.images for part in parts]))
    assert torch.equal(whole.labels, torch.cat([part.labels for part in parts]))
    assert [len(part.labels) for part in parts] == lengths
    assert [part.share for part in parts] == [n / sum(lengths) for n in lengths]
    assert whole.share == 1


class Deaf(Ranks):
    """A rank that hears nothing of the others."""

    def sum(self, tensors: Sequence[Tensor]) -> None:
        return None

    def lead(self, tensors: Sequence[Tensor]) -> None:
        return None

    def collect(self, number: int, device: torch.device | str = "cpu") -> list[int]:
        return [number]


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """No gradient of another rank arrives."""
    sent = SimpleNamespace(wait=lambda: None)
    monkeypatch.setattr(distributed, "all_reduce", lambda flat, async_op: sent)


@pytest.mark.usefixtures("deaf")
def test_a_loss_term_counts_once_however_uneven_the_shares() -> None:
    inputs = torch.arange(7.0)

    def gradient(rows: slice, share: float, rank: Ranks) -> Tensor:
        model = nn.Linear(1, 1, bias=False).double()
        nn.init.constant_(model.weight, 3.0)
        ctx = SimpleNamespace(parameters=dict(model.named_parameters()))
        loss = model(inputs[rows, None].double()).square().mean() + 5 * model.weight.square().sum()
        backward(ctx, rank, loss, share)  # type: ignore[arg-type]
        assert model.weight.grad is not None
        return model.weight.grad

    whole = gradient(slice(0, 7), 1.0, ALONE)
    assert float(whole) == 2 * 3 * float(inputs.square().mean()) + 2 * 5 * 3
    parts = (gradient(slice(0, 3), 3 / 7, Deaf(0, 2)), gradient(slice(3, 7), 4 / 7, Deaf(1, 2)))
    assert torch.allclose(sum(parts), whole, rtol=1e-14)  # type: ignore[arg-type]


@pytest.mark.usefixtures("deaf")
def test_ranks_draw_dropout_alone_and_everything_else_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[set[tuple[seeding.Name, ...]]] = []
    stream = seeding.stream

    def noting(*names: seeding.Name, device: str = "cpu") -> AbstractContextManager[None]:
        drawn[-1].add(names)
        return stream(*names, device=device)

    monkeypatch.setattr(seeding, "stream", noting)
    for rank in range(2):
        drawn.append(set())
        (tmp_path / str(rank)).mkdir()
        recipe = tiny("llf", "dropout=0.5")
        made = Trainer(recipe, source(), tmp_path / str(rank), CPU, SILENT, ranks=Deaf(rank, 2))
        made.run()
    steps = [{names for names in names_of_rank if "step" in names} for names_of_rank in drawn]
    assert len(steps[0]) == len(steps[1]) == 16
    assert not steps[0] & steps[1]
    assert drawn[0] - steps[0] == drawn[1] - steps[1] != set()
    assert list((tmp_path / "1").iterdir()) == []


@pytest.mark.parametrize(
    ("loader", "fields", "n_ranks", "says"),
    [
        (BatchLoader, ("normal", "batch_size=3"), 2, "3 images is too small for 2 processes: each"),
        (BatchLoader, ("normal", "plan.epoch_images=3"), 2, "a step of 3.*--nproc-per-node 1"),
        (BatchLoader, ("normal", "sync_bn=true"), 2, "on GPUs only.*sync_bn=false"),
        (EpisodeLoader, ("protonet",), 3, "each needs 4"),
    ],
)
def test_what_ranks_cannot_train_is_refused(
    loader: Any, fields: tuple[str, ...], n_ranks: int, says: str
) -> None:
    recipe = tiny(*fields)
    made = loader(recipe, source(), CPU)
    require_enough_images(recipe, made, ALONE, CPU)
    with pytest.raises(UsageError) as error:
        require_enough_images(recipe, made, Ranks(0, n_ranks, "gloo"), CPU)
    assert re.search(says, str(error.value), re.DOTALL)


def test_sync_bn_keeps_the_names_of_the_plain_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "require_enough_images", lambda *args: None)  # no GPU is needed
    recipe = tiny("lw", "sync_bn=true")
    one, two = (
        factory.build_context(recipe, source(), CPU, lambda rewrite: None, here).model
        for here in (ALONE, Ranks(0, 2, "gloo"))
    )
    assert not any(isinstance(module, nn.SyncBatchNorm) for module in one.modules())
    assert any(isinstance(module, nn.SyncBatchNorm) for module in two.modules())
    assert equal(one.state_dict(), two.state_dict())


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        (ALONE, ALONE, ""),
        (ALONE, Ranks(0, 2, "gloo"), "processes 1 -> 2"),
        (Ranks(0, 4, "gloo"), Ranks(0, 2, "gloo"), "processes 4 -> 2"),
    ],
)
def test_resuming_with_another_number_of_processes_is_said(
    then: Ranks, now: Ranks, says: str
) -> None:
    notes = Recorder()
    warn_if_bits_may_differ(machine_facts(CPU, then), machine_facts(CPU, now), notes)
    assert (says in notes.text) if says else notes.text == ""


def test_a_rank_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(UsageError, match="a GPU for local rank 1; 1 are here"):
        ranks.device_of_rank(torch.device("cuda:0"))
    assert ranks.device_of_rank(CPU) == CPU


def test_the_environment_of_torchrun_makes_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, rank, expected in (("1", "0", (False, True)), ("2", "0", (True, True))):
        monkeypatch.setenv("WORLD_SIZE", size)
        monkeypatch.setenv("RANK", rank)
        assert (process.is_one_of_several(), process.is_first_process()) == expected
    monkeypatch.setenv("RANK", "1")
    assert not process.is_first_process()
    monkeypatch.delenv("WORLD_SIZE")
    assert process.is_first_process()
    with open_ranks("cpu") as (here, device):
        assert here is ALONE
        assert device == CPU


def test_a_lost_rank_is_an_error_that_says_so() -> None:
    gone = pytest.raises(FsbenchError, match="another process of this run has ended")
    with gone as error, ranks.watched_peers():
        raise RuntimeError("Connection closed by peer")
    assert "goes on from the checkpoint" in str(error.value)
