"""Margins by hand and against NumPy, and the images that they are computed from."""

import numpy as np
import pytest
import torch
from support.analyses import analysis_input, normalised_images
from torch import nn

from fsbench.core.errors import CheckpointError
from fsbench.core.schema import Finding
from protocols.analyses.inputs import AnalysisInput
from protocols.analyses.margins import MarginsSettings, compute_margins, run


def linear() -> AnalysisInput:
    return analysis_input(
        nn.Sequential(nn.AvgPool2d(4), nn.Flatten()), nn.Linear(12, 4), spread=2.0
    )


def measures(finding: Finding) -> dict[str, float]:
    return {m.name: m.value for m in finding.measures}


def test_by_hand() -> None:
    logits = torch.tensor([[0.8, 0.15, 0.05], [0.8, 0.15, 0.05], [0.25, 0.5, 0.25]]).log()
    margins = compute_margins(logits, torch.tensor([0, 2, 1]))
    assert margins.tolist() == pytest.approx([0.65, -0.75, 0.25])
    sure = compute_margins(torch.tensor([[200.0, 0.0], [200.0, 0.0]]), torch.tensor([0, 1]))
    assert sure.tolist() == [1, -1]


def test_the_smallest_of_all_training_images_in_order() -> None:
    inputs = linear()
    inputs.network.model.get_parameter("fc.weight").data.neg_()
    inputs.network.model.get_parameter("fc.bias").data[0] += 9
    x, y = normalised_images(inputs)
    logits = inputs.network.model(x).detach().double().numpy()
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    rows = np.arange(len(y))
    true = shares[rows, y].copy()
    shares[rows, y] = 0
    expected = np.sort(true - shares.max(1))
    finding = run(inputs, MarginsSettings(smallest=7, batch_size=16))
    (view,) = finding.views
    assert view.values == pytest.approx(expected[:7], rel=1e-5)
    assert view.at == (1, 2, 3, 4, 5, 6, 7)
    values = measures(finding)
    assert values["images"] == 40
    assert values["smallest margin"] == view.values[0]
    assert values["mean of the 7 smallest"] == pytest.approx(expected[:7].mean(), rel=1e-5)
    wrong = (logits.argmax(1) != y.numpy()).mean()
    assert 0 < wrong < 1 != 2 * wrong
    assert values["wrong images"] == wrong


def test_fewer_images_than_smallest_give_all_margins() -> None:
    finding = run(linear(), MarginsSettings(images=5))
    assert len(finding.views[0].values) == 5
    assert "mean of the 5 smallest" in measures(finding)


def test_broken_logits_are_refused() -> None:
    inputs = linear()
    inputs.network.model.get_parameter("fc.bias").data[0] = float("nan")
    with pytest.raises(CheckpointError, match="not finite"):
        run(inputs, MarginsSettings())
