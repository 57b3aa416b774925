"""Batches: order, stages and augmentation are right, random, and the same again."""

import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.pretrain import record, source, tiny, train

from fsbench.core.errors import DataError, UsageError
from fsbench.data import SourceDataset
from fsbench.data.augmentation import PAD, draw_crops, enlarge, gather_windows, pad
from pretrain.recipes.plan import TrainingClock
from pretrain.training.batches import Batch, BatchLoader, FullBatchLoader, InputNormalizer

CPU = torch.device("cpu")


def batches(*assignments: str) -> BatchLoader:
    return BatchLoader(tiny("normal", *assignments), source(), CPU)


def test_crop_and_flip_equal_the_same_done_image_by_image() -> None:
    generator = torch.Generator().manual_seed(3)
    images = torch.randint(0, 256, (6, 3, 5, 5), generator=generator, dtype=torch.uint8)
    offsets = torch.tensor([[0, 0], [8, 8], [4, 4], [1, 7], [4, 4], [3, 2]])
    flip = torch.tensor([False, True, False, True, True, False])
    result = gather_windows(pad(images), offsets, flip, 5)
    for i in range(6):
        padded = np.zeros((3, 5 + 2 * PAD, 5 + 2 * PAD), np.uint8)
        padded[:, PAD : PAD + 5, PAD : PAD + 5] = images[i].numpy()
        row, column = offsets[i].tolist()
        expected = padded[:, row : row + 5, column : column + 5]
        expected = expected[:, :, ::-1] if flip[i] else expected
        assert np.array_equal(result[i].numpy(), expected)
    assert torch.equal(result[2], images[2])


@pytest.mark.parametrize(("kind", "margin"), [("crop_flip", 2 * PAD), ("resize_crop_flip", 1)])
def test_draws_reach_every_offset_and_both_sides(kind: str, margin: int) -> None:
    draws = [draw_crops(kind, 16, margin, ("draws", i)) for i in range(50)]  # type: ignore[arg-type]
    offsets, flips = torch.cat([d[0] for d in draws]), torch.cat([d[1] for d in draws])
    assert set(offsets.flatten().tolist()) == set(range(margin + 1))
    assert 0.4 < flips.float().mean() < 0.6


def test_an_enlarged_image_is_cropped_and_flipped_as_pillow_would() -> None:
    assert [enlarge(torch.zeros(1, 3, s, s)).shape[-1] for s in (224, 56, 8)] == [248, 62, 9]
    ramp = np.linspace(0, 255, 56 * 56).reshape(56, 56).astype(np.uint8)
    images = torch.from_numpy(np.stack([ramp, ramp, ramp.T])).expand(2, 3, 56, 56)
    offsets, flip = torch.tensor([[0, 6], [3, 1]]), torch.tensor([False, True])
    result = gather_windows(enlarge(images), offsets, flip, 56)
    large = [
        np.array(Image.fromarray(c).resize((62, 62), Image.Resampling.BILINEAR))
        for c in (ramp, ramp, ramp.T)
    ]
    first, second = np.stack(large)[:, :56, 6:62], np.stack(large)[:, 3:59, 1:57][:, :, ::-1]
    assert np.abs(result.numpy() - np.stack([first, second])).max() <= 1
    assert result.shape == (2, 3, 56, 56)


def test_a_source_in_a_file_is_trained_on_without_a_copy_or_a_warning() -> None:
    pixels = source().train.images.copy()
    pixels.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = replace(source(), train=replace(source().train, images=pixels))
        loader = BatchLoader(tiny("normal"), data, CPU)
    assert loader.images.data_ptr() == pixels.ctypes.data


def draw_order(loader: BatchLoader, **position: int) -> list[int]:
    return loader._epoch_order(TrainingClock(loader.recipe.plan, **position)).tolist()


def test_an_epoch_shows_every_image_once_or_a_part_and_every_epoch_another() -> None:
    for n, loader in ((40, batches("plan.epoch_images=null")), (16, batches())):
        first, second = (draw_order(loader, epoch=epoch) for epoch in (0, 1))
        assert first != second
        assert len(set(first)) == len(set(second)) == n
        assert loader.steps(0) == n // 8


def test_epochs_of_a_stage_show_its_images_alone() -> None:
    loader = batches('plan.stages=[{"stop": 0.5}, {"start": 0.5}, {}]', "plan.epoch_images=null")
    stages = [set(stage.tolist()) for stage in loader.stages]
    assert [len(stage) for stage in stages] == [20, 20, 40]
    assert stages[0] | stages[1] == stages[2]
    assert [set(draw_order(loader, round=round_)) for round_ in (0, 2, 4)] == stages
    with pytest.raises(DataError, match="fewer than 2 images of tiny"):
        batches('plan.stages=[{"stop": 0.01}]')


@pytest.mark.parametrize("kind", ["crop_flip", "resize_crop_flip"])
def test_a_batch_depends_on_seed_position_and_augmentation_alone(kind: str) -> None:
    clock = TrainingClock(tiny("normal").plan, epoch=2, batch=1)
    first, second = batches(f"augmentation={kind}"), batches(f"augmentation={kind}")
    second.batch(TrainingClock(clock.plan))
    ours, theirs = first.batch(clock), second.batch(clock)
    assert torch.equal(ours.images, theirs.images)
    assert torch.equal(ours.labels, theirs.labels)
    for other in (batches(f"augmentation={kind}", "seed=1"), batches("augmentation=none")):
        images = other.batch(clock).images
        assert images.shape == ours.images.shape
        assert not torch.equal(images, ours.images)


def test_normalise_is_pixels_over_255_minus_mean_over_std() -> None:
    images = torch.from_numpy(source().train.images[:4])
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (source().mean, source().std))
    normalise = InputNormalizer(source(), CPU)
    assert normalise(images).is_contiguous()
    normalise.layout = torch.channels_last
    result = normalise(images)
    torch.testing.assert_close(result, (images / 255 - mean) / std)
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert images.dtype == torch.uint8


def full_batches(*assignments: str) -> tuple[FullBatchLoader, list[Batch]]:
    """A loader of full batches of the 40 images, and two of its batches."""
    recipe = tiny("normal", "loader=full_batch", "batch_size=40", *assignments)
    loader = FullBatchLoader(recipe, source(), CPU)
    return loader, [loader.batch(TrainingClock(recipe.plan, batch=b)) for b in (0, 7)]


def test_full_batches_show_every_image_in_every_step() -> None:
    loader, (first, later) = full_batches("augmentation=none", "plan.epoch_images=400")
    assert loader.steps(0) == 10
    assert torch.equal(first.images, later.images)
    order = loader.stages[0]
    assert sorted(order) == list(range(40))
    pixels = torch.from_numpy(source().train.images)[order]
    assert torch.equal(first.images, loader.normalise(pixels))
    assert torch.equal(first.labels, torch.from_numpy(source().train.labels)[order])
    loader, (first, later) = full_batches("augmentation=flip", "plan.epoch_images=null")
    assert loader.steps(0) == 1
    assert not torch.equal(first.images, later.images)
    with pytest.raises(UsageError, match="40 here; batch_size is 32"):
        full_batches("batch_size=32")


def enlarged_source(side: int) -> SourceDataset:
    """The tiny source with a frame of other pixels around every image."""
    margin = (side - 8) // 2
    frame = ((0, 0), (0, 0), (margin, margin), (margin, margin))
    parts = {
        name: replace(split, images=np.pad(split.images, frame, mode="reflect"))
        for name, split in (("train", source().train), ("val", source().val))
    }
    return replace(source(), **parts)


@pytest.mark.parametrize("kind", ["crop_flip", "flip", "none"])
def test_windows_of_larger_images(kind: str) -> None:
    recipe = tiny("normal", "source_size=12", f"augmentation={kind}", "batch_size=16")
    loader = BatchLoader(recipe, enlarged_source(12), CPU)
    windows = set()
    for epoch in range(6):
        clock = TrainingClock(recipe.plan, epoch=epoch % 4, round=epoch // 4)
        batch = loader.batch(clock)
        assert batch.images.shape == (16, 3, 8, 8)
        for index, image in zip(loader._epoch_order(clock), batch.images, strict=True):
            whole = loader.normalise(loader.images[index : index + 1])[0]
            for row, column, flipped in product(range(5), range(5), (False, True)):
                window = whole[:, row : row + 8, column : column + 8].flip(2 if flipped else ())
                windows |= {(row, column, flipped)} if image.equal(window) else set()
    rows, columns, flips = (set(values) for values in zip(*windows, strict=True))
    assert rows == columns == (set(range(5)) if kind == "crop_flip" else {2})
    assert flips == ({False} if kind == "none" else {False, True})


def test_validation_and_training_accuracy_are_those_of_the_centres(tmp_path: Path) -> None:
    fields = ("source_size=12", "augmentation=none")
    large = record(train(tmp_path / "large", "seal", *fields, data=enlarged_source(12)))
    small = record(train(tmp_path / "small", "seal", *fields[1:]))
    for name in ("rounds", "measured", "weights_hash"):
        assert large[name] == small[name], name
