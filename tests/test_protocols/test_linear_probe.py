"""The linear probe against separate torch.optim.SGD runs."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.cases import read_cases
from support.protocols import noise, separable, target
from torch import nn

from fsbench.core.errors import CheckpointError
from fsbench.core.records import ProbeRecords
from fsbench.core.seeding import permutations
from fsbench.core.specs import ProbeSpec
from fsbench.data.splits import hold_out
from protocols.base import Inputs, SplitFeatures
from protocols.heads.gram import draw_linear_init
from protocols.probes.linear import ProbeHeads, ProbeTraining, evaluate_linear_probe

DATASET = target()
TRAIN = np.flatnonzero(np.arange(len(DATASET)) % 4 != 0)
TEST = np.flatnonzero(np.arange(len(DATASET)) % 4 == 0)


MIXED = noise(DATASET) + 0.1 * separable(DATASET)
X, Y = torch.from_numpy(MIXED).double(), torch.from_numpy(DATASET.labels // 3)


def probe(
    spec: ProbeSpec,
    features: NDArray[np.float32] = MIXED,
    train: NDArray[np.int64] = TRAIN,
    device: str = "cpu",
) -> ProbeRecords:
    return evaluate_linear_probe(Inputs(None, DATASET, features, device), spec, train, TEST)


def reference(
    spec: ProbeSpec, lr: float, train: NDArray[np.int64] = TRAIN, order: str = "probe-order"
) -> list[nn.Linear]:
    """The head after each epoch of a plain run."""
    start = torch.from_numpy(draw_linear_init(X.shape[1], 7, "probe-init", spec.seed, DATASET.name))
    head = nn.Linear(X.shape[1], 7).double()
    with torch.no_grad():
        head.weight.copy_(start[:-1].T)
        head.bias.copy_(start[-1])
    sgd = torch.optim.SGD(
        head.parameters(), lr=lr, momentum=spec.momentum, weight_decay=spec.weight_decay
    )
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=spec.epochs)
    loss = nn.CrossEntropyLoss(label_smoothing=spec.label_smoothing)
    heads = []
    for epoch in range(spec.epochs):
        rows = permutations(1, len(train), order, spec.seed, DATASET.name, epoch)[0]
        for batch in torch.from_numpy(train[rows]).split(spec.batch_size):
            sgd.zero_grad()
            loss(head(X[batch]), Y[batch]).backward()
            sgd.step()
        if spec.schedule == "cosine":
            cosine.step()
        heads.append(copy.deepcopy(head).requires_grad_(False))
    return heads


@pytest.mark.parametrize("fields", read_cases("heads")["probe"])
def test_float64_equals_three_separate_runs(fields: dict[str, Any]) -> None:
    spec = ProbeSpec.model_validate({"epochs": 8, **fields})
    start = draw_linear_init(X.shape[1], 7, "probe-init", spec.seed, DATASET.name)
    rows = torch.from_numpy(TRAIN)
    run = ProbeTraining("probe-order", spec, DATASET.name, rows, torch.from_numpy(start))
    for epoch in range(spec.epochs):
        run.epoch(epoch, SplitFeatures(X, Y))
    logits = run.heads.logits(X[TEST])
    for column, lr in enumerate(spec.lrs):
        expected = reference(spec, lr)[-1](X[TEST])
        assert (logits[:, column] - expected).abs().max() <= 1e-9 * expected.abs().max()


def test_records_hold_the_curve_the_last_and_the_first_best_epoch(device: str) -> None:
    spec = ProbeSpec(epochs=12)
    records = probe(spec, device=device)
    assert records.lr.tolist() == list(spec.lrs)
    assert records.curve.shape == (3, 12)
    for column, lr in enumerate(spec.lrs):
        heads, curve = reference(spec, lr), records.curve[column]
        right = np.stack([(head(X[TEST]).argmax(1) == Y[TEST]).numpy() for head in heads])
        np.testing.assert_allclose(curve, right.mean(axis=1), atol=1.5 / len(TEST))
        best = int(curve.argmax())
        assert records.last[column].mean() == pytest.approx(curve[-1])
        assert records.best[column].mean() == pytest.approx(curve[best])
        assert np.mean(records.last[column] != right[-1]) < 0.05
        assert np.mean(records.best[column] != right[best]) < 0.05


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
    records, plain = probe(spec, train=unequal), probe(ProbeSpec(epochs=9), train=unequal)
    rest, held_out = (unequal[rows] for rows in hold_out(DATASET, unequal, 0.2))
    truth = Y[held_out].numpy()
    smallest = min(np.bincount(truth)[np.unique(truth)])
    for column, lr in enumerate(spec.lrs):
        scores = []
        for head in reference(spec, lr, rest, "held-out-order"):
            right = (head(X[held_out]).argmax(1) == Y[held_out]).numpy()
            recalls = [right[truth == c].mean() for c in np.unique(truth)]
            balanced = spec.score == "balanced_accuracy"
            scores.append(np.mean(recalls) if balanced else right.mean())
        slack = 1.5 / (smallest * len(recalls))
        if not fields:
            assert records.held_out is not None
            assert records.held_out[column] == pytest.approx(scores[-1], abs=slack)
            continue
        assert records.held_out_curve is not None
        assert records.chosen is not None
        assert records.held_out_curve[column] == pytest.approx(scores, abs=slack)
        best = int(records.held_out_curve[column].argmax())
        assert records.chosen[column].mean() == pytest.approx(records.curve[column, best])
    np.testing.assert_array_equal(records.curve, plain.curve)
    assert plain.held_out is None


def test_a_diverged_learning_rate_counts_as_wrong_and_leaves_the_others_alone() -> None:
    wild, tame = (probe(ProbeSpec(epochs=4, lrs=lrs)) for lrs in ((1e38, 0.01), (0.01,)))
    assert not wild.curve[0].any()
    assert not wild.last[0].any()
    np.testing.assert_array_equal(wild.last[1], tame.last[0])


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_one_logit_that_is_not_finite_makes_the_image_wrong(value: float, label: int) -> None:
    heads = ProbeHeads(ProbeSpec(lrs=(0.1, 0.01)), torch.zeros(2, 3))
    heads.bias[[0, 3]] = 1
    image = SplitFeatures(torch.ones(1, 1), torch.tensor([0]))
    assert heads.correct(image).all()
    heads.bias[3 + label] = value
    assert heads.correct(image)[:, 0].tolist() == [True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_features_are_refused(value: float) -> None:
    features = MIXED.copy()
    features[TEST[2], 4] = value
    with pytest.raises(CheckpointError, match="features of blobs hold NaN or infinity"):
        probe(ProbeSpec(epochs=1), features)
