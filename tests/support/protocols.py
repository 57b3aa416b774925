"""A target data set without pixels, and features for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.seeding import uniforms
from fsbench.data.base import Groups, TargetDataset
from fsbench.data.cards import DatasetFacts

COUNTS = (30, 44, 27, 33, 61, 25, 38)


def describe_images(
    name: str, classes: int | Sequence[str], images: int, domain: str = "target"
) -> DatasetFacts:
    """Return the facts of a generated data set of so many images per class. classes: or so many."""
    names = [f"class{c}" for c in range(classes)] if isinstance(classes, int) else classes
    texts = ("label_rule", "layout", "download", "license", "citation", "homepage")
    return DatasetFacts(
        name=name,
        title=name,
        domain=domain,
        classes=tuple(names),
        images_per_class=(images,) * len(names),
        folders=(name,),
        **dict.fromkeys(texts, "none"),
    )


def target(name: str = "blobs", counts: Sequence[int] = COUNTS) -> TargetDataset:
    """Classes of the given sizes; official ids are the multiples of 3."""
    facts = describe_images(name, 3 * len(counts), 1)
    ids = [f"{facts.classes[3 * c]}/{i:03}" for c, n in enumerate(counts) for i in range(n)]
    return TargetDataset(
        name=name,
        facts=facts,
        root=Path(name),
        paths=tuple(f"{i}.png" for i in ids),
        canonical_ids=tuple(ids),
        labels=np.repeat(3 * np.arange(len(counts)), counts),
        class_names=facts.classes,
    )


def with_groups(dataset: TargetDataset, group_of: Callable[[str], str]) -> TargetDataset:
    """The data set with the group of every canonical id."""
    names = [*map(group_of, dataset.canonical_ids)]
    return replace(dataset, groups=Groups.of(dataset.labels, names))


def noise(dataset: TargetDataset, dim: int = 13, seed: int = 0) -> NDArray[np.float32]:
    """Features that know nothing of the labels."""
    return uniforms((len(dataset), dim), "noise", seed).astype(np.float32)


def separable(dataset: TargetDataset, dim: int = 13, seed: int = 0) -> NDArray[np.float32]:
    """Features whose classes lie far apart: one large coordinate each, and a little noise."""
    features = noise(dataset, dim, seed) * 0.1
    features[np.arange(len(dataset)), dataset.labels // 3] += 5
    return features


def clouds(
    episodes: int = 4, n_way: int = 5, k_shot: int = 3, n_query: int = 7, dim: int = 11
) -> tuple[Tensor, Tensor]:
    """Support (E, n_way, k_shot, dim) and queries (E, n_way * n_query, dim), class by class, of
    overlapping classes whose features have no common scale."""
    names = ("clouds", episodes, n_way, k_shot)
    centres = uniforms((episodes, n_way, 1, dim), *names, "centres") * 1.3
    spread = uniforms((episodes, n_way, k_shot + n_query, dim), *names, "spread") * 2
    images = torch.from_numpy((centres + spread) * np.linspace(1, 3, dim))
    return images[:, :, :k_shot], images[:, :, k_shot:].flatten(1, 2)
