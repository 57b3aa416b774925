"""The accuracy of a run, and the blocks in which its images are seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.pretrain import CLASSES, source, tiny
from torch import Tensor, nn

from fsbench.data import Split
from pretrain.training.batches import BatchLoader
from pretrain.training.validation import EpochSums, Validation


class Brightness(nn.Module):
    """Answers with the class whose brightness is nearest, and notes the sizes of its blocks."""

    def __init__(self, levels: Tensor) -> None:
        super().__init__()
        self.levels, self.seen = levels, list[int]()

    def forward(self, images: Tensor) -> Tensor:
        self.seen.append(len(images))
        assert not self.training
        return -(images.mean(dim=(1, 2, 3))[:, None] - self.levels).abs()


def bright(n: int, side: int) -> Split:
    """Images of one brightness each (0, 60, 120, 180), every fifth with a wrong label."""
    classes = np.arange(n, dtype=np.int64) % CLASSES
    images = np.repeat(classes * 60, 3 * side * side).reshape(n, 3, side, side).astype(np.uint8)
    return Split(images, np.where(np.arange(n) % 5 == 0, (classes + 1) % CLASSES, classes))


@pytest.mark.parametrize(
    ("side", "n", "blocks"),
    [(32, 1010, [500, 500, 10]), (64, 270, [125, 125, 20]), (256, 40, [32, 8])],
)
def test_larger_images_come_in_smaller_blocks_and_all_count(
    side: int, n: int, blocks: list[int]
) -> None:
    data = replace(source(), val=bright(n, side), mean=(0.0,) * 3, std=(1.0,) * 3)
    recipe = tiny("normal", f"input_size={side}")
    validation = Validation(BatchLoader(recipe, data, torch.device("cpu")), data)
    model = Brightness(torch.arange(CLASSES) * 60 / 255).train()
    assert validation.accuracy(model) == (n - n / 5) / n
    assert model.seen == blocks
    assert model.training


def filled(tally: EpochSums, *batches: tuple[float, float, int]) -> EpochSums:
    for loss, right, images in batches:
        tally.add(torch.tensor(loss), torch.tensor(right), images, images)
    return tally


def test_means_weigh_batches_by_their_images() -> None:
    tally = filled(EpochSums(), (2.0, 1, 4), (0.5, 2, 2))
    assert tally.finite
    assert tally.means() == ((2.0 * 4 + 0.5 * 2) / 6, 3 / 6)
    assert tally.means() == tally.means()  # looking changes nothing
    tally.reset()
    assert filled(tally, (0.25, 1, 2)).means() == (0.25, 0.5)


def test_right_answers_that_nobody_measured_have_no_mean_and_broken_losses_stay() -> None:
    assert filled(EpochSums(), (1.0, 3, 4), (1.0, math.nan, 4)).means() == (1.0, None)
    for loss in (math.nan, math.inf):
        assert not filled(EpochSums(), (1.0, 1, 2), (loss, 1, 2), (1.0, 1, 2)).finite
