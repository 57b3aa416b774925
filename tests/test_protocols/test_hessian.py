"""Hessian eigenvalues against dense Hessians in float64, and the terms of the loss."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.analyses import FACTS, analysis_input, measures
from torch import Tensor, nn

from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from fsbench.data.augmentation import augment
from protocols.analyses.hessian import (
    HessianSettings,
    compute_top_eigenvalues,
    make_hessian_product,
    run,
)
from protocols.analyses.inputs import AnalysisInput

SETTINGS = HessianSettings(images=8, batch_size=4, top=3, tolerance=0, augmentation=False)


def network(**recipe: object) -> AnalysisInput:
    """44 parameters in float64, a BatchNorm with statistics of its own among them."""
    norm = nn.BatchNorm2d(2)
    norm.running_mean.add_(0.3)  # type: ignore[union-attr]
    norm.running_var.mul_(2.5)  # type: ignore[union-attr]
    layers = (nn.AvgPool2d(4), nn.Conv2d(3, 2, 1), norm, nn.GELU(), nn.Flatten())
    return analysis_input(nn.Sequential(*layers).double(), nn.Linear(8, 3).double(), **recipe)


def dense(
    inputs: AnalysisInput, x: Tensor, y: Tensor, decay: float, smoothing: float = 0.0
) -> NDArray[np.float64]:
    """All eigenvalues of the Hessian of mean cross-entropy plus (decay / 2) |w|^2."""
    model = inputs.network.model
    values = dict(model.named_parameters())
    sizes = [v.numel() for v in values.values()]

    def loss(flat: Tensor) -> Tensor:
        parts = zip(values.items(), flat.split(sizes), strict=True)
        logits = torch.func.functional_call(
            model, {n: part.view_as(v) for (n, v), part in parts}, (x,)
        )
        hard = torch.eye(3).double()[y] * (1 - smoothing) + smoothing / 3
        return -(hard * logits.log_softmax(1)).sum(1).mean() + decay / 2 * flat.square().sum()

    flat = torch.cat([v.detach().flatten() for v in values.values()])
    matrix = torch.autograd.functional.hessian(loss, flat)
    return np.linalg.eigvalsh(matrix.numpy())


def expected(
    inputs: AnalysisInput, decay: float, smoothing: float = 0.0, kind: str = "none"
) -> NDArray[np.float64]:
    """The three largest in magnitude of both mini-batches, in descending order."""
    chosen = inputs.sample("train", 8, 0)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (FACTS.mean, FACTS.std))
    pooled: list[float] = []
    for start in (0, 4):
        pixels = torch.from_numpy(chosen.images[start : start + 4])
        pixels = augment(pixels, kind, ("hessian", 0, "augmentation", start))  # type: ignore[arg-type]
        y = torch.from_numpy(chosen.labels[start : start + 4]) % 3
        hessian = dense(inputs, (pixels / 255 - mean) / std, y, decay, smoothing)
        pooled += sorted(hessian, key=abs)[-3:]
    return np.sort(pooled)[::-1]


@pytest.fixture(autouse=True)
def _three_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny source has four classes, the network three."""
    plain = AnalysisInput.batches
    monkeypatch.setattr(
        AnalysisInput, "batches", lambda *arguments: ((x, y % 3) for x, y in plain(*arguments))
    )


@pytest.mark.parametrize(
    ("settings", "recipe", "reference"),
    [
        ({}, {"weight_decay": 0.01}, {"decay": 0.01}),
        ({"l2": False}, {"weight_decay": 0.5}, {"decay": 0.0}),
        ({"label_smoothing": 0.3}, {}, {"decay": 0.0, "smoothing": 0.3}),
        *(
            ({"augmentation": True}, {"augmentation": kind}, {"decay": 0.0, "kind": kind})
            for kind in ("crop_flip", "resize_crop_flip", "flip")
        ),
    ],
)
def test_pooled_eigenvalues_are_those_of_the_dense_hessians(
    settings: dict[str, Any], recipe: dict[str, Any], reference: dict[str, Any]
) -> None:
    """The L2 term, smoothing and augmentation are the recipe's, each with its option."""
    inputs = network(**recipe)
    finding = run(inputs, SETTINGS.model_copy(update=settings))
    eigenvalues = np.array(finding.views[0].values)
    assert eigenvalues == pytest.approx(expected(inputs, **reference), rel=1e-6)
    assert eigenvalues != pytest.approx(expected(inputs, 0.1), rel=1e-4)
    values = measures(finding)
    assert values["mini-batches"] == 2
    assert values["largest eigenvalue"] == eigenvalues[0]
    assert values["negative eigenvalues"] == (eigenvalues < 0).mean()
    assert values["weight decay in the loss"] == reference["decay"]
    assert values["augmented images"] == ("kind" in reference)


def test_products_are_those_of_the_dense_hessian_of_a_quartic() -> None:
    w = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    unused = torch.ones(1, dtype=torch.float64, requires_grad=True)
    loss = w.pow(4).sum() + w.prod() + 0 * unused.sum()
    product = make_hessian_product(loss, [w, unused])
    hand = torch.tensor([[12.0, 0.5, -2.0], [0.5, 48.0, 1.0], [-2.0, 1.0, 3.0]])
    v = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    result = product(torch.cat([v, torch.ones(1).double()]))
    torch.testing.assert_close(result, torch.cat([hand.double() @ v, torch.zeros(1).double()]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_magnitudes_are_found_negative_ones_too(dtype: torch.dtype) -> None:
    spectrum = torch.tensor([5.0, -4.0, 3.0, -2.0, 1.0, 0.5, 0.2, 0.0], dtype=dtype)
    drawn = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    turn = torch.linalg.qr(drawn).Q.to(dtype)
    matrix = turn @ spectrum.diag() @ turn.T
    eigenvalues = compute_top_eigenvalues(lambda v: matrix @ v, torch.ones(8, dtype=dtype), 3)
    assert eigenvalues == pytest.approx([-4, 3, 5], rel=1e-5)


def test_failures_of_the_iteration_are_reported() -> None:
    eye = torch.arange(200.0).double()
    with pytest.raises(UsageError, match="8 eigenvalues of 8"):
        compute_top_eigenvalues(lambda v: v, torch.ones(8), 8)
    with pytest.raises(FsbenchError, match="did not converge in 1 iterations"):
        compute_top_eigenvalues(lambda v: eye * v, torch.ones(200).double(), 5, 0.0, iterations=1)
    broken = network()
    broken.network.model.fc.bias.data.fill_(float("nan"))  # type: ignore[union-attr,operator]
    with pytest.raises(CheckpointError, match="losses that are not finite"):
        run(broken, SETTINGS)
