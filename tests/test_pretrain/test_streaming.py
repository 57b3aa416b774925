"""Streaming: the batches, runs and resumed runs of a source that lies on the device."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support.pretrain import assert_same_run, killed_at, source, tiny, train

from fsbench.core.distributed import ALONE, Ranks
from pretrain.recipes.plan import TrainingClock
from pretrain.training import batches, cost, streaming
from pretrain.training.batches import BatchLoader
from pretrain.training.factory import LOADERS
from pretrain.training.streaming import RowReader, RowStream


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stream every source by one worker. Returns the sizes of reads that were not ahead."""
    monkeypatch.setattr(batches, "is_streamed", lambda source, device: True)
    monkeypatch.setattr(streaming, "WORKERS", 1)
    direct, take = list[int](), RowReader.__getitem__

    def record(self: RowReader, rows: Any) -> Any:
        direct.append(len(rows))  # a worker appends to a copy of the list
        return take(self, rows)

    monkeypatch.setattr(RowReader, "__getitem__", record)
    return direct


def make_loader(device: str, *fields: str) -> BatchLoader:
    recipe = tiny(*fields, "plan.epoch_images=null")
    return LOADERS[recipe.loader](recipe, source(), torch.device(device))


@pytest.mark.parametrize("ranks", [ALONE, Ranks(1, 2)])
@pytest.mark.parametrize(
    "fields",
    [("normal",), ("normal", "augmentation=resize_crop_flip"), ("protonet", "batch_size=12")],
)
def test_both_loaders_give_the_same_batches(
    fields: tuple[str, ...],
    ranks: Ranks,
    device: str,
    reads: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streamed = make_loader(device, *fields)
    monkeypatch.setattr(batches, "is_streamed", lambda source, device: False)
    resident = make_loader(device, *fields)
    assert isinstance(streamed.stream, RowStream)
    assert resident.stream is None
    for epoch, first in ((0, 1), (1, 0)):  # resumed within an epoch, and the next one
        clock = TrainingClock(streamed.recipe.plan, epoch=epoch)
        for clock.batch in (first, *range(first, 3)):  # a hook asks for the first one, too
            clock.step = 3 * epoch + clock.batch
            ours, theirs = (loader.batch(clock, ranks) for loader in (streamed, resident))
            assert torch.equal(ours.images, theirs.images)
            assert torch.equal(ours.labels, theirs.labels)
            assert ours.share == theirs.share
    assert len(reads) == 2, "the repeated batches alone were not read ahead"
    rows = torch.from_numpy(resident.stages[0][:5])
    taken = streamed.take(rows), resident.take(rows.to(device))
    for ours, theirs in zip(*taken, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("method", ["nio", "seal"])
def test_a_streamed_run_resumes_to_the_bits_of_one_that_lies_on_the_device(
    method: str, tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at(5, tiny(method), tmp_path / "streamed", monkeypatch)
    train(tmp_path / "streamed", method)
    assert set(reads) == {40}, "searches and measurements alone are not read ahead"
    monkeypatch.undo()
    assert_same_run(train(tmp_path / "resident", method), tmp_path / "streamed")


def test_a_source_above_a_third_of_a_gpu_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    data, gpu = source(), torch.device("cuda", 0)
    size = 52 * 3 * 8 * 8
    memory = SimpleNamespace(total_memory=3 * size)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    assert not streaming.is_streamed(data, gpu)
    assert streaming.describe_memory(data, gpu).endswith("on the GPU")
    memory.total_memory -= 1
    assert streaming.is_streamed(data, gpu)
    assert streaming.describe_memory(data, gpu) == "0.0 GB of images streamed to the GPU"
    assert not streaming.is_streamed(data, torch.device("cpu"))
    monkeypatch.setattr(cost, "describe_memory", lambda source, device: "1.0 GB of images")
    text = str(cost.estimate_training(tiny("normal"), data, "cpu"))
    assert text.startswith("1.0 GB of images: 16 steps, about ")
