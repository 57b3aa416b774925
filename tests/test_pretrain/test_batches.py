"""Batches: order, stages and augmentation are right, random, and the same again."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.pretrain import source, tiny

from fsbench.claims import _synthetic
from fsbench.core.errors import DataError, UsageError
from fsbench.data import SourceDataset
from fsbench.data.augmentation import (
    PAD,
    crop_windows,
    draw_crops,
    enlarge,
    gather_windows,
    pad,
)
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import BatchLoader, FullBatchLoader, InputNormalizer
from pretrain.training.loop import train_recipe

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


def test_draws_reach_every_offset_and_both_sides() -> None:
    draws = [draw_crops("crop_flip", 16, 8, ("draws", i)) for i in range(50)]
    offsets, flips = torch.cat([d[0] for d in draws]), torch.cat([d[1] for d in draws])
    assert set(offsets.flatten().tolist()) == set(range(2 * PAD + 1))
    assert 0.4 < flips.float().mean() < 0.6


def test_an_enlarged_image_is_cropped_and_flipped_as_pillow_would() -> None:
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


def test_an_enlarged_image_is_248_px_for_224_and_every_offset_is_drawn() -> None:
    assert [enlarge(torch.zeros(1, 3, s, s)).shape[-1] for s in (224, 56, 8)] == [248, 62, 9]
    kind = "resize_crop_flip"
    offsets = torch.cat([draw_crops(kind, 16, 9 - 8, ("draws", i))[0] for i in range(20)])
    assert set(offsets.flatten().tolist()) == {0, 1}, "8 px become 9"
    loader, plain = (batches("batch_size=16", f"augmentation={k}") for k in (kind, "none"))
    clock = TrainingClock(loader.recipe.plan)
    assert loader.batch(clock).images.shape == plain.batch(clock).images.shape
    assert not torch.equal(loader.batch(clock).images, plain.batch(clock).images)
    assert torch.equal(loader.batch(clock).images, loader.batch(clock).images)


def draw_order(loader: BatchLoader, **position: int) -> list[int]:
    return loader._epoch_order(TrainingClock(loader.recipe.plan, **position)).tolist()


def test_an_epoch_shows_every_image_once_or_a_part_and_every_epoch_another() -> None:
    whole, short = batches("plan.epoch_images=null", "augmentation=none"), batches()
    orders = [draw_order(whole, epoch=epoch) for epoch in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(40))
    assert orders[0] != orders[1]
    assert whole.steps(0) == 5
    parts = [set(draw_order(short, epoch=epoch)) for epoch in (0, 1)]
    assert [len(part) for part in parts] == [16, 16]
    assert parts[0] != parts[1]


def test_stages_are_parts_of_one_order() -> None:
    loader = batches('plan.stages=[{"stop": 0.5}, {"start": 0.5}, {}]', "plan.epoch_images=null")
    first, second, whole = (set(stage.tolist()) for stage in loader.stages)
    assert len(first) == len(second) == 20
    assert first | second == whole == set(range(40))
    assert set(draw_order(loader, round=2)) == second
    with pytest.raises(DataError, match="fewer than 2 images of tiny"):
        batches('plan.stages=[{"stop": 0.01}]')


def test_a_batch_depends_on_seed_and_position_alone() -> None:
    clock = TrainingClock(tiny("normal").plan, epoch=2, batch=1)
    again = batches()
    again.batch(TrainingClock(clock.plan))
    first, second = batches().batch(clock), again.batch(clock)
    assert torch.equal(first.images, second.images)
    assert torch.equal(first.labels, second.labels)
    assert not torch.equal(first.images, batches("seed=1").batch(clock).images)


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


SOURCE = _synthetic.draw_source(1.0, 0)


def recipe(**values: object) -> Recipe:
    return _synthetic.build_column_recipe("BL", 0).replace(values)


def test_full_batches_show_every_image_in_every_step() -> None:
    loader = FullBatchLoader(recipe(), SOURCE, CPU)
    assert loader.steps(0) == _synthetic.STEPS
    assert FullBatchLoader(recipe(**{"plan.epoch_images": None}), SOURCE, CPU).steps(0) == 1
    first, later = (loader.batch(TrainingClock(loader.recipe.plan, batch=b)) for b in (0, 7))
    assert torch.equal(first.images, later.images)
    order = loader.stages[0]
    assert sorted(order) == list(range(256))
    assert torch.equal(first.images, torch.from_numpy(SOURCE.train.images)[order])
    assert torch.equal(first.labels, torch.from_numpy(SOURCE.train.labels)[order])
    flipped = FullBatchLoader(recipe(augmentation="flip"), SOURCE, CPU)
    first, later = (flipped.batch(TrainingClock(loader.recipe.plan, batch=b)) for b in (0, 7))
    assert not torch.equal(first.images, later.images)
    with pytest.raises(UsageError, match="256 here; batch_size is 32"):
        FullBatchLoader(recipe(batch_size=32), SOURCE, CPU)


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
    places = set()
    for epoch in range(6):
        clock = TrainingClock(recipe.plan, epoch=epoch % 4, round=epoch // 4)
        batch = loader.batch(clock)
        assert batch.images.shape == (16, 3, 8, 8)
        for index, image in zip(loader._epoch_order(clock), batch.images, strict=True):
            whole = loader.normalise(loader.images[index : index + 1])[0]
            places |= {
                (row, column, flipped)
                for row, column, flipped in product(range(5), range(5), (False, True))
                if image.equal(
                    whole[:, row : row + 8, column : column + 8].flip(2 if flipped else ())
                )
            }
    rows, columns, flips = (set(values) for values in zip(*places, strict=True))
    assert rows == columns == (set(range(5)) if kind == "crop_flip" else {2})
    assert flips == ({False} if kind == "none" else {False, True})


def test_windows_belong_to_the_rows_of_a_batch() -> None:
    """So that processes that share a batch see the same windows."""
    images = torch.arange(6 * 3 * 144).view(6, 3, 12, 12)
    whole = crop_windows(images, 8, "crop_flip", ("rows",))
    part = crop_windows(images[2:4], 8, "crop_flip", ("rows",), first=2, of=6)
    assert torch.equal(part, whole[2:4])


def test_validation_and_training_accuracy_are_those_of_the_centres(tmp_path: Path) -> None:
    fields = ("source_size=12", "augmentation=none")
    for name, of, settings in (
        ("large", enlarged_source(12), fields),
        ("small", source(), fields[1:]),
    ):
        train_recipe(tiny("seal", *settings), of, tmp_path / name)
    large, small = (json.loads((tmp_path / n / "run.json").read_text()) for n in ("large", "small"))
    assert large["rounds"] == small["rounds"]
    assert large["measured"] == small["measured"]
    assert large["weights_hash"] == small["weights_hash"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (("source_size=8", "input_size=12"), "source_size=8 is below input_size=12"),
        (("source_size=12", "augmentation=resize_crop_flip"), "crops windows of input_size"),
    ],
)
def test_windows_that_do_not_fit_are_refused(fields: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        tiny("normal", *fields)
