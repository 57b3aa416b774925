"""The sums of an epoch, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from pretrain.training.validation import EpochSums


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


def test_right_answers_that_nobody_measured_have_no_mean() -> None:
    assert filled(EpochSums(), (1.0, 3, 4), (1.0, math.nan, 4)).means() == (1.0, None)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stays_so(loss: float) -> None:
    assert not filled(EpochSums(), (1.0, 1, 2), (loss, 1, 2), (1.0, 1, 2)).finite


def test_sums_go_on_where_they_were() -> None:
    batches = [(0.1 * i, float(i % 3), 3) for i in range(1, 9)]
    whole, first = filled(EpochSums(), *batches), filled(EpochSums(), *batches[:5])
    second = filled(EpochSums(), (9.0, 9, 9))
    second.load(first.sums())
    assert filled(second, *batches[5:]).sums().equal(whole.sums())
    assert whole.sums().dtype == torch.float64
