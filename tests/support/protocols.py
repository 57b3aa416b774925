"""A target data set without pixels, and features for it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.seeding import uniforms
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts

COUNTS = (30, 44, 27, 33, 61, 25, 38)


def target(name: str = "blobs", counts: Sequence[int] = COUNTS) -> TargetDataset:
    """Classes of the given sizes; official ids are the multiples of 3."""
    names = tuple(f"class{i}" for i in range(3 * len(counts)))
    ids = [f"{names[3 * c]}/{i:03}" for c, n in enumerate(counts) for i in range(n)]
    facts = DatasetFacts(
        name=name,
        title=name,
        domain="target",
        classes=names,
        images_per_class=(1,) * len(names),
        label_rule="none",
        layout="none",
        folders=(name,),
        download="none",
        license="none",
        citation="none",
        homepage="none",
    )
    return TargetDataset(
        name=name,
        facts=facts,
        root=Path(name),
        paths=tuple(f"{i}.png" for i in ids),
        canonical_ids=tuple(ids),
        labels=np.repeat(3 * np.arange(len(counts)), counts),
        class_names=names,
    )


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
