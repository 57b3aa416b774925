"""The linear probe against separate torch.optim.SGD runs."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.protocols import noise, separable, target
from torch import nn

from fsbench.core.errors import CheckpointError
from fsbench.core.seeding import permutations
from fsbench.core.specs import ProbeSpec
from fsbench.data.splits import hold_out
from protocols.base import Inputs, SplitFeatures
from protocols.heads.gram import draw_linear_init
from protocols.probes.linear import ProbeHeads, evaluate_linear_probe, learning_rate_factor

DATASET = target()
TRAIN = np.flatnonzero(np.arange(len(DATASET)) % 4 != 0)
TEST = np.flatnonzero(np.arange(len(DATASET)) % 4 == 0)


def inputs(features: NDArray[np.float32]) -> Inputs:
    return Inputs(None, DATASET, features)


def mixed() -> NDArray[np.float32]:
    return noise(DATASET) + 0.1 * separable(DATASET)


def reference(
    spec: ProbeSpec,
    lr: float,
    x: torch.Tensor,
    y: torch.Tensor,
    train: NDArray[np.int64] = TRAIN,
    order: str = "probe-order",
) -> list[nn.Linear]:
    """The head after each epoch of a plain run on x[train]."""
    start = torch.from_numpy(draw_linear_init(x.shape[1], 7, "probe-init", spec.seed, DATASET.name))
    head = nn.Linear(x.shape[1], 7).double()
    with torch.no_grad():
        head.weight.copy_(start[:-1].T)
        head.bias.copy_(start[-1])
    sgd = torch.optim.SGD(
        head.parameters(), lr=lr, momentum=spec.momentum, weight_decay=spec.weight_decay
    )
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=spec.epochs)
    loss = nn.CrossEntropyLoss(label_smoothing=spec.label_smoothing)
    rates = []
    for epoch in range(spec.epochs):
        rows = permutations(1, len(train), order, spec.seed, DATASET.name, epoch)[0]
        for batch in torch.from_numpy(train[rows]).split(spec.batch_size):
            sgd.zero_grad()
            loss(head(x[batch]), y[batch]).backward()
            sgd.step()
        if spec.schedule == "cosine":
            cosine.step()
        copy = nn.Linear(x.shape[1], 7).double()
        copy.load_state_dict(head.state_dict())
        rates.append(copy.requires_grad_(False))
    return rates


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"label_smoothing": 0.1},
        {"momentum": 0.0, "weight_decay": 0.05},
        {"batch_size": 7},
        {"schedule": "cosine"},
    ],
    ids=str,
)
def test_float64_equals_three_separate_runs(fields: dict[str, Any]) -> None:
    spec = ProbeSpec.model_validate({"epochs": 8, **fields})
    x, y = torch.from_numpy(mixed()).double(), torch.from_numpy(DATASET.labels // 3)
    start = draw_linear_init(x.shape[1], 7, "probe-init", spec.seed, DATASET.name)
    heads = ProbeHeads(spec, torch.from_numpy(start))
    for epoch in range(spec.epochs):
        order = permutations(1, len(TRAIN), "probe-order", spec.seed, DATASET.name, epoch)[0]
        rows = torch.from_numpy(order)
        heads.train_epoch(
            SplitFeatures(x[TRAIN], y[TRAIN]), rows, learning_rate_factor(spec, epoch)
        )
    logits = heads.logits(x[TEST])
    for column, lr in enumerate(spec.lrs):
        expected = reference(spec, lr, x, y)[-1](x[TEST])
        assert (logits[:, column] - expected).abs().max() <= 1e-9 * expected.abs().max()


def test_records_hold_the_curve_the_last_and_the_first_best_epoch() -> None:
    spec = ProbeSpec(epochs=12)
    probe = evaluate_linear_probe(inputs(mixed()), spec, TRAIN, TEST)
    x, y = torch.from_numpy(mixed()).double(), torch.from_numpy(DATASET.labels // 3)
    assert probe.lr.tolist() == list(spec.lrs)
    assert probe.curve.shape == (3, 12)
    for column, lr in enumerate(spec.lrs):
        right = np.stack(
            [(h(x[TEST]).argmax(1) == y[TEST]).numpy() for h in reference(spec, lr, x, y)]
        )
        np.testing.assert_allclose(probe.curve[column], right.mean(axis=1), atol=1.5 / len(TEST))
        best = int(probe.curve[column].argmax())
        assert probe.last[column].mean() == pytest.approx(probe.curve[column, -1])
        assert probe.best[column].mean() == pytest.approx(probe.curve[column, best])
        assert np.mean(probe.last[column] != right[-1]) < 0.05
        assert np.mean(probe.best[column] != right[best]) < 0.05


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"select": "held_out", "epoch": "best", "score": "accuracy"},
        {"select": "held_out", "epoch": "best", "score": "balanced_accuracy"},
    ],
    ids=["tried", "chosen", "chosen, balanced"],
)
def test_rates_are_tried_or_chosen_on_a_part_that_their_run_has_not_seen(
    fields: dict[str, Any],
) -> None:
    spec = ProbeSpec.model_validate({"epochs": 9, "held_out": 0.2, **fields})
    unequal = TRAIN[(DATASET.labels[TRAIN] > 3) | (np.arange(len(TRAIN)) % 3 == 0)]
    probe = evaluate_linear_probe(inputs(mixed()), spec, unequal, TEST)
    rest, held_out = (unequal[rows] for rows in hold_out(DATASET, unequal, 0.2))
    x, y = torch.from_numpy(mixed()).double(), torch.from_numpy(DATASET.labels // 3)
    truth = y[held_out].numpy()
    smallest = min(np.bincount(truth)[np.unique(truth)])
    for column, lr in enumerate(spec.lrs):
        scores = []
        for head in reference(spec, lr, x, y, rest, "held-out-order"):
            right = (head(x[held_out]).argmax(1) == y[held_out]).numpy()
            recalls = [right[truth == c].mean() for c in np.unique(truth)]
            balanced = spec.score == "balanced_accuracy"
            scores.append(np.mean(recalls) if balanced else right.mean())
        slack = 1.5 / (smallest * len(recalls))
        if not fields:
            assert probe.held_out is not None
            assert probe.held_out[column] == pytest.approx(scores[-1], abs=slack)
            continue
        assert probe.held_out_curve is not None
        assert probe.chosen is not None
        assert probe.held_out_curve[column] == pytest.approx(scores, abs=slack)
        best = int(probe.held_out_curve[column].argmax())
        assert probe.chosen[column].mean() == pytest.approx(probe.curve[column, best])
    plain = evaluate_linear_probe(inputs(mixed()), ProbeSpec(epochs=9), unequal, TEST)
    np.testing.assert_array_equal(probe.curve, plain.curve)
    assert plain.held_out is None


def test_each_epoch_trains_on_its_own_view_and_tests_on_the_centre_crop() -> None:
    spec = ProbeSpec(epochs=3, lrs=(0.1,), augmentation="live", held_out=0.2)
    crop = mixed()
    epochs = []

    def views(epoch: int) -> NDArray[np.float32]:
        epochs.append(epoch)
        return crop[TRAIN] + (noise(DATASET, seed=epoch + 1)[TRAIN] if epoch else 0)

    probe = evaluate_linear_probe(inputs(crop), spec, TRAIN, TEST, views=views)
    assert epochs == [0, 1, 2]
    still = evaluate_linear_probe(inputs(crop), spec, TRAIN, TEST, views=lambda _: crop[TRAIN])
    plain = evaluate_linear_probe(inputs(crop), spec, TRAIN, TEST)
    np.testing.assert_array_equal(still.curve, plain.curve)
    assert probe.curve[0, 0] == plain.curve[0, 0]
    assert (probe.last != plain.last).any()
    swapped = [1, 0, 2]
    other = evaluate_linear_probe(
        inputs(crop), spec, TRAIN, TEST, views=lambda epoch: views(swapped[epoch])
    )
    assert (other.curve != probe.curve).any()


def test_a_diverged_learning_rate_counts_as_wrong_and_leaves_the_others_alone() -> None:
    wild = ProbeSpec(epochs=4, lrs=(1e38, 0.01))
    tame = ProbeSpec(epochs=4, lrs=(0.01,))
    probe = evaluate_linear_probe(inputs(mixed()), wild, TRAIN, TEST)
    assert not probe.curve[0].any()
    assert not probe.last[0].any()
    np.testing.assert_array_equal(
        probe.last[1], evaluate_linear_probe(inputs(mixed()), tame, TRAIN, TEST).last[0]
    )


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_one_logit_that_is_not_finite_makes_the_image_wrong(value: float, place: int) -> None:
    heads = ProbeHeads(ProbeSpec(lrs=(0.1, 0.01)), torch.zeros(2, 3))
    heads.bias[[0, 3]] = 1
    image = SplitFeatures(torch.ones(1, 1), torch.tensor([0]))
    assert heads.correct(image).all()
    heads.bias[3 + place] = value
    assert heads.correct(image)[:, 0].tolist() == [True, False]


def test_the_seed_changes_the_run_and_nothing_else_does() -> None:
    def curve(seed: int = 0) -> NDArray[np.float64]:
        return evaluate_linear_probe(
            inputs(mixed()), ProbeSpec(epochs=3, seed=seed), TRAIN, TEST
        ).curve

    torch.rand(3)
    np.testing.assert_array_equal(curve(), curve())
    assert (curve() != curve(1)).any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_features_are_refused(value: float) -> None:
    features = mixed()
    features[TEST[2], 4] = value
    with pytest.raises(CheckpointError, match="features of blobs hold NaN or infinity"):
        evaluate_linear_probe(inputs(features), ProbeSpec(epochs=1), TRAIN, TEST)
    with pytest.raises(CheckpointError, match="features of blobs hold NaN or infinity"):
        evaluate_linear_probe(
            inputs(mixed()), ProbeSpec(epochs=1), TRAIN, TEST, views=lambda _: features[TEST]
        )
