"""Hessian: the largest eigenvalues of the training loss, and the share of negative ones.

Paper: Simulated Annealing in Early Layers Leads to Better Generalization (SEAL). A. M. Sarfi et
al., CVPR 2023, section 5, Table 6, https://arxiv.org/abs/2304.04858
Procedure: How Do Vision Transformers Work? N. Park, S. Kim, ICLR 2022,
https://arxiv.org/abs/2202.06709

    H v = lambda v,    H = Hessian of cross-entropy + (weight_decay / 2) |w|^2 on one mini-batch

The k eigenvalues of largest magnitude are computed for every mini-batch and pooled; the share of
negative ones is a share of these, not of the full spectrum. Park and Kim call it a mistake to leave
out the L2 term or the augmentation. Neither paper publishes code for this, so open choices are
settings:

| setting         | Park and Kim | here                                           |
|-----------------|--------------|------------------------------------------------|
| top (k)         | e.g. 5       | 5                                              |
| l2              | with         | with, weight_decay from the recipe             |
| augmentation    | with         | with, as in the recipe                         |
| label_smoothing | not stated   | none                                           |
| batch_size      | not stated   | 64, four batches of random training images     |

Unit: nats per squared weight. Differences: batch norm is in eval mode, so the loss is a plain
function of the weights; all parameters count, and all are in the L2 term. Eigenvalues come from
Lanczos iteration (scipy's eigsh) with exact Hessian-vector products.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from fsbench.core.seeding import torch_generator
from fsbench.data.augmentation import Augmentation
from protocols.analyses import Need
from protocols.analyses.inputs import AnalysisInput, ImageSettings

SOURCE = "SEAL (CVPR 2023), section 5, Table 6; Park and Kim 2022"
NEEDS: tuple[Need, ...] = ("head", "images")
PRODUCT_PASSES = 100
"""Forward passes per image: some 25 products of about four passes each."""


class HessianSettings(ImageSettings):
    """Settings of the eigenvalues.

    tolerance: relative, of every eigenvalue; iterations: largest number of Lanczos restarts.
    """

    top: int = Field(5, ge=1)
    l2: bool = True
    augmentation: bool = True
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    images: int | None = Field(256, ge=1)
    batch_size: int = Field(64, ge=1)
    tolerance: float = Field(1e-3, ge=0)
    iterations: int = Field(100, ge=1)

    def count_passes(self, inputs: AnalysisInput) -> int:
        return PRODUCT_PASSES * super().count_passes(inputs)


SETTINGS = HessianSettings


Product = Callable[[Tensor], Tensor]


def make_hessian_product(loss: Tensor, parameters: Sequence[Tensor]) -> Product:
    """Return v (n,) -> H v (n,), H the Hessian of a scalar in all parameters, flattened."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    curved = [i for i, gradient in enumerate(gradients) if gradient.requires_grad]
    sizes = [parameter.numel() for parameter in parameters]

    def product(v: Tensor) -> Tensor:
        parts = [part.view_as(p) for part, p in zip(torch.split(v, sizes), parameters, strict=True)]
        products = torch.autograd.grad(
            [gradients[i] for i in curved],
            parameters,
            [parts[i] for i in curved],
            retain_graph=True,
            materialize_grads=True,
        )
        return torch.cat([part.flatten() for part in products])

    return product


def compute_top_eigenvalues(
    product: Product, start: Tensor, top: int, tolerance: float = 0.0, iterations: int = 100
) -> NDArray[np.float64]:
    """Return the `top` eigenvalues of largest magnitude of a symmetric map (n,), ascending.

    start (n,): first vector, with the dtype and device of the map. Raises UsageError for a map of
    too few dimensions, FsbenchError if the iteration does not converge.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n, kind = start.numel(), np.float64 if start.dtype == torch.float64 else np.float32
    if top >= n:
        raise UsageError(f"{top} eigenvalues of {n} parameters", fix=f"ask for at most {n - 1}")

    def multiply(v: NDArray[np.floating]) -> NDArray[np.floating]:
        vector = torch.from_numpy(np.ascontiguousarray(v.reshape(-1))).to(start)
        result: NDArray[np.floating] = product(vector).cpu().numpy()
        return result

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


def run(inputs: AnalysisInput, settings: HessianSettings, report: Reporter = SILENT) -> Finding:
    """Compute the eigenvalues. Raises CheckpointError for a network whose loss is not finite."""
    fields = inputs.network.record.recipe_fields
    decay = float(fields.get("weight_decay", 0.0)) if settings.l2 else 0.0
    kind: Augmentation = fields.get("augmentation", "none") if settings.augmentation else "none"
    (images,), names = inputs.samples(settings), ("hessian", settings.seed)
    parameters, eigenvalues = list(inputs.network.model.parameters()), []
    parts = inputs.batches(images, settings.batch_size, report, "hessian", kind, names)
    for number, (x, y) in enumerate(parts):
        logits = inputs.network.model(x)
        loss = cross_entropy(logits, y, label_smoothing=settings.label_smoothing)
        loss = loss + decay / 2 * sum((p.square().sum() for p in parameters), loss.new_zeros(()))
        inputs.require_finite(loss, "losses")
        product = make_hessian_product(loss, parameters)
        n, generator = sum(p.numel() for p in parameters), torch_generator(*names, number, "start")
        first = torch.randn(n, generator=generator).to(parameters[0])
        eigenvalues.append(
            compute_top_eigenvalues(
                product, first, settings.top, settings.tolerance, settings.iterations
            )
        )
    return summarize_eigenvalues(np.concatenate(eigenvalues), len(eigenvalues), decay, kind)


def summarize_eigenvalues(
    values: NDArray[np.float64], batches: int, decay: float, augmentation: Augmentation
) -> Finding:
    """Build the finding from eigenvalues pooled over the batches."""
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
