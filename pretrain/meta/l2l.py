"""learn2learn behind one door: imported here alone, and only when it is used.

Its last release (0.2.0, 2023) builds on no Python that torch still runs on, so it is an extra with
a recipe of its own (`make meta`). It gives the suite copies of a network that are adapted through
gradients (MAML, Meta-SGD) and the prototypical classifier; the suite gives it frozen episodes.

Batch norm: `clone` copies parameters and shares buffers. A copy in training mode normalises by the
images that it is given and moves the running statistics of the network itself; in eval mode it
normalises by these and leaves them alone. learn2learn's own examples stay in training mode when
they evaluate, as MAML's code does (learn2learn issue 207): an answer then depends on the other
queries. What the suite measures never does (pretrain/meta/episodes.py).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.utils.data import Dataset

    from fsbench.data.episodes import EpisodeSampler

INSTALL = (
    "`make meta` in a clone of fsbench, or: pip install cython setuptools wheel 'fsbench[meta]' &&"
    " pip install --no-build-isolation --no-deps"
    " --config-settings=--global-option=build_ext learn2learn==0.2.0"
)


class AdaptedCopy(Protocol):
    """An adapted copy of a network."""

    def __call__(self, inputs: Tensor) -> Tensor: ...

    def adapt(self, loss: Tensor) -> None:
        """One gradient step of the copy."""


def import_learn2learn() -> Any:
    """learn2learn. Raises UsageError with the install command where it is missing."""
    try:
        with redirect_stderr(io.StringIO()):  # gym, which it imports, prints that it is retired
            import learn2learn
    except ImportError as error:
        raise UsageError(
            f"meta-learning needs the package learn2learn ({error})", fix=INSTALL
        ) from error
    return learn2learn


def maml_copy(module: nn.Module, lr: float, first_order: bool) -> AdaptedCopy:
    """A copy that `adapt` moves by -lr gradient; first_order: not differentiated twice."""
    wrapped = import_learn2learn().algorithms.MAML(module, lr=lr, first_order=first_order)
    return cast("AdaptedCopy", wrapped.clone())


def metasgd_copy(module: nn.Module, rates: Iterable[Tensor], first_order: bool) -> AdaptedCopy:
    """A copy that `adapt` moves by -rate gradient; rates: as module.parameters(), same shapes."""
    wrapped = import_learn2learn().algorithms.MetaSGD(
        module, lrs=list(rates), first_order=first_order
    )
    return cast("AdaptedCopy", wrapped.clone())


def prototype_classifier(support: Tensor, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """Features (B, D) to minus squared distances to the classes' mean features, (B, classes).

    support (N, D); labels (N,), whose sorted values are the columns.
    """
    classifier = import_learn2learn().nn.PrototypicalClassifier(
        support, labels, distance="euclidean"
    )
    return cast("Callable[[Tensor], Tensor]", classifier)


def build_taskset(
    sampler: EpisodeSampler,
    images: Dataset[Tensor],
    by_class: Mapping[int, NDArray[np.int64]],
    n: int,
) -> Any:
    """Episodes 0 .. n - 1 of the sampler as a `learn2learn.data.Taskset`: task i is episode i.

    images: item j is image j as a tensor; by_class: official class id -> image indices in rank
    order (`TargetDataset.by_class`). A task is (images, labels 0 .. n_way - 1), class by class,
    the support of each before its queries, so that
    `learn2learn.data.partition_task(*task, shots=k_shot)` parts it as every protocol here does.
    """
    data = import_learn2learn().data
    owners = {int(j): c for c, found in by_class.items() for j in found}
    tasks = data.Taskset(data.MetaDataset(images, indices_to_labels=owners), num_tasks=n)
    for i in range(n):
        support, query = sampler.episode(i).images(by_class)
        rows = np.concatenate([support, query], axis=1).tolist()
        tasks.sampled_descriptions[i] = [
            _describe(data, images, j, label) for label, row in enumerate(rows) for j in row
        ]
    return tasks


def _describe(data: Any, images: Dataset[Tensor], index: int, label: int) -> Any:
    """How a task loads image `index`, whose label in the task is given."""
    found = data.DataDescription(index)
    found.transforms.append(lambda j: (images[j], label))
    return found
