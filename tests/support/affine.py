"""Affine tuning of single episodes by a plain loop, and a small net and target to run it on."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fsbench import backbones, data
from fsbench.backbones.base import Backbone
from fsbench.core.seeding import permutations
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.data.episodes import EpisodeSampler
from fsbench.data.images import crop_centres
from protocols.affine.network import take_rows
from protocols.affine.tuning import read_episode_images
from protocols.base import Inputs
from protocols.episodic.affine import build_tuning, iterate_batches
from protocols.heads.gram import draw_linear_init

SIDE = 16
BATCH_NORM = nn.modules.batchnorm._BatchNorm


def toy_inputs() -> Inputs:
    """A small residual net that is far from its initial statistics, on generated images."""
    backbone = backbones.load_backbone("fsbench/toy_resnet", random_init=0)
    with torch.no_grad():
        for i, layer in enumerate(m for m in backbone.module.modules() if is_norm(m)):
            generator = torch.Generator().manual_seed(i)
            layer.running_mean.uniform_(-0.3, 0.3, generator=generator)
            layer.running_var.uniform_(0.5, 2, generator=generator)
            layer.weight.uniform_(0.5, 1.5, generator=generator)
            layer.bias.uniform_(-0.3, 0.3, generator=generator)
    dataset = data.load_target("toy_scan", data.DataRoots.parse())
    return Inputs(backbone, dataset, np.empty((len(dataset), 0), np.float32))


def move_inputs(inputs: Inputs, device: str) -> Inputs:
    """The same inputs on a device."""
    assert inputs.backbone is not None
    return replace(inputs, backbone=inputs.backbone.on(device), device=device)


def is_norm(module: nn.Module) -> bool:
    return isinstance(module, BATCH_NORM)


def spec(k_shot: int = 1, dtype: str = "float64", **fields: Any) -> EpisodicSpec:
    head = {"dtype": dtype} | fields.pop("head", {})
    values = {"adaptation": "affine", "image": {"input_size": SIDE}, "head": head} | fields
    return EpisodicSpec.model_validate(values | {"episode": EpisodeSpec(k_shot=k_shot, n_query=3)})


def ours(inputs: Inputs, setting: EpisodicSpec, indices: range, steps: int | None = None) -> Tensor:
    """Query logits (E, q, n_way) on the CPU after so many steps (all of them by default)."""
    sampler = EpisodeSampler(setting.episode, inputs.dataset.name, inputs.dataset.class_counts)
    episodes = [sampler.episode(i) for i in indices]
    tuning, images = (
        build_tuning(inputs, setting, indices),
        read_episode_images(inputs, setting.image, episodes),
    )
    labels = torch.arange(5, device=inputs.device).repeat_interleave(setting.episode.k_shot)
    labels = labels.repeat(len(indices))
    for rows in islice(iterate_batches(inputs, setting, episodes), steps):
        tuning.step(take_rows(images.support, rows), labels[rows], rows)
    return tuning.logits(images.query).cpu()


class PlainTuning:
    """A deep copy of a network with a head, tuned by autograd and torch.optim.SGD."""

    def __init__(self, backbone: Backbone, setting: EpisodicSpec) -> None:
        h, a, self.backbone = setting.head, setting.affine, backbone
        self.dtype = getattr(torch, h.dtype)
        self.network = copy.deepcopy(backbone.module).to(self.dtype).train(False)
        device = next(self.network.parameters()).device
        self.head = nn.Linear(backbone.facts.feature_dim, 5).to(device, self.dtype)
        others = [m for m in self.network.modules() if not isinstance(m, nn.Conv2d | nn.Linear)]
        tuned = [p.requires_grad_(True) for m in others for p in m.parameters(recurse=False)]
        for module in filter(is_norm, others):
            module.train(setting.bn_mode == "train")
        assert a is not None
        self.optimizers = [
            torch.optim.SGD(self.head.parameters(), h.lr, h.momentum, h.dampening, h.weight_decay),
            torch.optim.SGD(tuned, a.lr, a.momentum, a.dampening, a.weight_decay),
        ]

    def logits(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.network(self.backbone.normalised(images).to(self.dtype)))
        return scores

    def step(self, images: Tensor, labels: Tensor) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        cross_entropy(self.logits(images), labels).backward()
        for optimizer in self.optimizers:
            optimizer.step()


def plain(inputs: Inputs, setting: EpisodicSpec, i: int, steps: int | None = None) -> Tensor:
    """Query logits (q, n_way) of one episode by a plain loop."""
    assert inputs.backbone is not None
    e, name, tuning = setting.episode, inputs.dataset.name, PlainTuning(inputs.backbone, setting)
    dim = inputs.backbone.facts.feature_dim
    start = torch.from_numpy(draw_linear_init(dim, 5, e.digest(), name, i, "head-init"))
    tuning.head.load_state_dict({"weight": start[:-1].T, "bias": start[-1]})
    support, query = images(inputs, setting, i)
    labels = torch.arange(5).repeat_interleave(e.k_shot)
    for batch in islice(orders(setting, name, i), steps):
        tuning.step(support[batch], labels[batch])
    tuning.network.eval()
    with torch.no_grad():
        return tuning.logits(query)


def orders(setting: EpisodicSpec, name: str, i: int) -> Iterator[Tensor]:
    n, h = 5 * setting.episode.k_shot, setting.head
    for order in permutations(h.epochs, n, setting.episode.digest(), name, i, "head-order"):
        yield from torch.from_numpy(order).split(h.batch_size)


def images(inputs: Inputs, setting: EpisodicSpec, i: int) -> Iterator[Tensor]:
    """Support and query images of an episode, class by class."""
    dataset = inputs.dataset
    episode = EpisodeSampler(setting.episode, dataset.name, dataset.class_counts).episode(i)
    for ranks in (episode.support, episode.query):
        rows = [dataset.by_class[c][r] for c, r in zip(episode.class_ids, ranks, strict=True)]
        numbers = np.concatenate(rows).tolist()
        pixels = crop_centres(map(dataset.image, numbers), setting.image, len(numbers))
        yield torch.from_numpy(pixels).contiguous()
