"""Hessian: the largest eigenvalues of the training loss, and how many of them are negative.

SEAL, section 5 and Table 6, after Park and Kim 2022 (protocol.md 5): of every mini-batch the k
eigenvalues of largest magnitude, pooled over mini-batches; the share of negative ones is a share of
these, not of the full spectrum. Park and Kim take the loss with the L2 term and on augmented images
and call it a mistake to leave either out. Neither paper gives code, so what is open is a field:

| field           | Park and Kim | here                                                  |
|-----------------|--------------|-------------------------------------------------------|
| top             | e.g. 5       | 5                                                     |
| l2              | with         | with: (weight_decay of the recipe / 2) times |w|^2    |
| augmentation    | with         | with: the recipe's own                                |
| label_smoothing | not said     | none                                                  |
| batch_size      | not said     | 64, four batches of random training images            |

BatchNorm is in eval mode, so the loss is a plain function of the weights; all parameters count, and
all are in the L2 term. Eigenvalues by Lanczos iteration (scipy's eigsh) over Hessian-vector
products, which autograd gives exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.seeding import Name, torch_generator
from fsbench.core.specs import Frozen
from fsbench.data.augmentation import Augmentation
from protocols.analyses import Need
from protocols.analyses._subject import Subject

SOURCE = "SEAL (CVPR 2023), section 5, Table 6; Park and Kim 2022"
NEEDS: tuple[Need, ...] = ("head", "images")
PRODUCT_PASSES = 100
"""Forward passes that an image costs: some 25 products of about four passes each."""


class Settings(Frozen):
    """tolerance: relative, of every eigenvalue; iterations: restarts of Lanczos at most."""

    top: int = Field(5, ge=1)
    l2: bool = True
    augmentation: bool = True
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    images: int | None = Field(256, ge=1)
    batch_size: int = Field(64, ge=1)
    tolerance: float = Field(1e-3, ge=0)
    iterations: int = Field(100, ge=1)
    seed: int = Field(0, ge=0)


Product = Callable[[Tensor], Tensor]


def hessian_product(loss: Tensor, parameters: Sequence[Tensor]) -> Product:
    """v (n,) -> H v (n,) for the Hessian of a scalar in all parameters, flattened in order."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    curved = [i for i, gradient in enumerate(gradients) if gradient.requires_grad]
    sizes = [parameter.numel() for parameter in parameters]

    def product(v: Tensor) -> Tensor:
        parts = [part.view_as(p) for part, p in zip(torch.split(v, sizes), parameters, strict=True)]
        found = torch.autograd.grad(
            [gradients[i] for i in curved],
            parameters,
            [parts[i] for i in curved],
            retain_graph=True,
            materialize_grads=True,
        )
        return torch.cat([part.flatten() for part in found])

    return product


def top_eigenvalues(
    product: Product, start: Tensor, top: int, tolerance: float = 0.0, iterations: int = 100
) -> NDArray[np.float64]:
    """The `top` eigenvalues of largest magnitude, ascending, of a symmetric map of vectors (n,).

    start (n,): first vector, whose dtype and device the map works in. Raises UsageError for a map
    of too few dimensions, FsbenchError where the iteration does not converge.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n, kind = start.numel(), np.float64 if start.dtype == torch.float64 else np.float32
    if top >= n:
        raise UsageError(f"{top} eigenvalues of {n} parameters", fix=f"ask for at most {n - 1}")

    def multiply(v: NDArray[np.floating]) -> NDArray[np.floating]:
        given = torch.from_numpy(np.ascontiguousarray(v.reshape(-1))).to(start)
        found: NDArray[np.floating] = product(given).cpu().numpy()
        return found

    operator: Any = LinearOperator((n, n), matvec=multiply, dtype=kind)
    try:
        values = eigsh(
            operator,
            k=top,
            which="LM",
            v0=start.cpu().numpy(),
            tol=tolerance,
            maxiter=iterations,
            return_eigenvectors=False,
        )
    except ArpackNoConvergence as error:
        raise FsbenchError(
            f"the eigenvalues did not converge in {iterations} iterations",
            fix="set hessian.iterations or hessian.tolerance higher",
        ) from error
    return np.sort(np.asarray(values, np.float64))


def passes(subject: Subject, settings: Settings) -> int:
    return PRODUCT_PASSES * len(subject.chosen("train", settings.images, settings.seed))


def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Raises CheckpointError for a network whose loss is not finite."""
    fields = subject.network.record.recipe_fields
    decay = float(fields.get("weight_decay", 0.0)) if settings.l2 else 0.0
    kind: Augmentation = fields.get("augmentation", "none") if settings.augmentation else "none"
    images, names = subject.chosen("train", settings.images, settings.seed), stream(settings)
    parameters, found = list(subject.network.model.parameters()), []
    parts = subject.batches(images, settings.batch_size, report, "hessian", kind, names)
    for number, (x, y) in enumerate(parts):
        logits = subject.network.model(x)
        loss = cross_entropy(logits, y, label_smoothing=settings.label_smoothing)
        loss = loss + decay / 2 * sum((p.square().sum() for p in parameters), loss.new_zeros(()))
        if not loss.isfinite():
            raise CheckpointError(
                f"{subject.backbone.facts.ref} has no finite loss",
                fix="check the run: its log shows where the loss went",
            )
        product = hessian_product(loss, parameters)
        first = start(parameters, *names, number)
        found.append(
            top_eigenvalues(product, first, settings.top, settings.tolerance, settings.iterations)
        )
    return finding(np.concatenate(found), len(found), decay, kind)


def stream(settings: Settings) -> tuple[Name, ...]:
    return "hessian", settings.seed


def start(parameters: Sequence[Tensor], *names: Name) -> Tensor:
    """The first vector of the iteration (n,), in the dtype and on the device of the parameters."""
    n = sum(parameter.numel() for parameter in parameters)
    return torch.randn(n, generator=torch_generator(*names, "start")).to(parameters[0])


def finding(
    values: NDArray[np.float64], batches: int, decay: float, augmentation: Augmentation
) -> Finding:
    """values: pooled over the batches."""
    ordered = np.sort(values)[::-1]
    return Finding(
        measures=(
            Measure(name="mini-batches", value=batches),
            Measure(name="largest eigenvalue", value=float(ordered[0])),
            Measure(name="mean eigenvalue", value=float(values.mean())),
            Measure(name="negative eigenvalues", value=float((values < 0).mean()), share=True),
            Measure(name="weight decay in the loss", value=decay),
            Measure(name="augmented images", value=int(augmentation != "none")),
        ),
        views=(
            View(
                title="Hessian: pooled top eigenvalues",
                x="rank",
                y="eigenvalue",
                at=tuple(range(1, len(ordered) + 1)),
                values=tuple(ordered.tolist()),
            ),
        ),
    )
