"""Interface to learn2learn, which only this module imports, and only when it is used.

Its last release (0.2.0, 2023) builds on no Python that torch still supports, so it is an extra with
a separate install command (`make meta`). It provides copies of a network that are adapted by
gradient steps (MAML, Meta-SGD) and the prototypical classifier; fsbench provides the episodes.

Batch norm: `clone` copies parameters and shares buffers. A copy in training mode normalizes by the
images of the batch and updates the running statistics of the network; in eval mode it normalizes by
these and leaves them unchanged. learn2learn's examples evaluate in training mode, as MAML's code
does (learn2learn issue 207), so a prediction depends on the other queries. fsbench evaluates in
eval mode (pretrain/training/episodes.py).
"""

import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset

from fsbench.core.errors import UsageError
from fsbench.data.episodes import EpisodeSampler

INSTALL = (
    "`make meta` in a clone of fsbench, or: pip install cython setuptools wheel 'fsbench[meta]' &&"
    " pip install --no-build-isolation --no-deps"
    " --config-settings=--global-option=build_ext learn2learn==0.2.0"
)


class AdaptedCopy(Protocol):
    """Copy of a network that adapts by gradient steps."""

    def __call__(self, inputs: Tensor) -> Tensor: ...

    def adapt(self, loss: Tensor) -> None:
        """Take one gradient step of the copy."""


def import_learn2learn() -> Any:
    """Import learn2learn. Raises UsageError with the install command if it is missing."""
    try:
        with redirect_stderr(io.StringIO()):  # gym, which it imports, prints that it is retired
            import learn2learn
    except ImportError as error:
        raise UsageError(
            f"meta-learning needs the package learn2learn ({error})", fix=INSTALL
        ) from error
    return learn2learn


def maml_copy(module: nn.Module, lr: float, first_order: bool) -> AdaptedCopy:
    """Return a copy that `adapt` moves by -lr gradient; first_order: not differentiated twice."""
    wrapped = import_learn2learn().algorithms.MAML(module, lr=lr, first_order=first_order)
    return cast("AdaptedCopy", wrapped.clone())


def metasgd_copy(module: nn.Module, rates: Iterable[Tensor], first_order: bool) -> AdaptedCopy:
    """Return a copy that `adapt` moves by -rate gradient; rates have the shapes of parameters."""
    meta_sgd = import_learn2learn().algorithms.MetaSGD
    wrapped = meta_sgd(module, lrs=list(rates), first_order=first_order)
    return cast("AdaptedCopy", wrapped.clone())


def prototype_classifier(support: Tensor, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a classifier of features (B, D) by minus squared distances to class means.

    support: (N, D). labels: (N,); their sorted values are the columns of the logits (B, classes).
    """
    classifier = import_learn2learn().nn.PrototypicalClassifier
    return cast("Callable[[Tensor], Tensor]", classifier(support, labels, distance="euclidean"))


def build_taskset(
    sampler: EpisodeSampler,
    images: Dataset[Tensor],
    by_class: Mapping[int, NDArray[np.int64]],
    n: int,
) -> Any:
    """Return episodes 0 .. n - 1 of the sampler as a `learn2learn.data.Taskset`.

    images: item j is image j as a tensor. by_class: official class id -> image indices in rank
    order (`TargetDataset.by_class`). A task is (images, labels 0 .. n_way - 1), ordered by class,
    the support of each before its queries, so that
    `learn2learn.data.partition_task(*task, shots=k_shot)` splits it into support and query set.
    """
    data = import_learn2learn().data

    def describe(index: int, label: int) -> Any:
        """Return how a task loads image `index` with its label in the task."""
        description = data.DataDescription(index)
        description.transforms.append(lambda j: (images[j], label))
        return description

    owners = {int(j): c for c, indices in by_class.items() for j in indices}
    tasks = data.Taskset(data.MetaDataset(images, indices_to_labels=owners), num_tasks=n)
    for i in range(n):
        support, query = sampler.episode(i).images(by_class)
        rows = np.concatenate([support, query], axis=1).tolist()
        tasks.sampled_descriptions[i] = [
            describe(j, label) for label, row in enumerate(rows) for j in row
        ]
    return tasks
