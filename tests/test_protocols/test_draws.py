"""Draws of heads and orders: PyTorch's init, by name, whatever the block."""

import numpy as np
import torch
from scipy.stats import kstest
from support.protocols import target

from fsbench.core.specs import EpisodeSpec
from fsbench.data.episodes import EpisodeSampler
from protocols.heads.gram import draw_linear_init, draw_orders, draw_untrained_heads, stack_images

NAMES = ("digest", "blobs")


def test_init_is_that_of_nn_linear_for_weight_and_bias() -> None:
    drawn = draw_linear_init(400, 10, "init")
    assert drawn.shape == (401, 10)
    bound = 1 / np.sqrt(400)
    torch_bound = float(torch.nn.Linear(400, 10).weight.detach().abs().max())
    assert 0.98 * bound < torch_bound <= bound
    assert kstest(drawn[:-1].ravel(), "uniform", args=(-bound, 2 * bound)).pvalue > 1e-3
    many = np.stack([draw_linear_init(4, 5, "bias", i)[-1] for i in range(200)])
    assert kstest(many.ravel(), "uniform", args=(-0.5, 1.0)).pvalue > 1e-3


def test_heads_depend_on_the_episode_and_not_on_its_neighbours_or_the_padding() -> None:
    empty = torch.empty(0)
    weight, bias = draw_untrained_heads(NAMES, [4, 7], 13, 5, empty)
    alone, alone_bias = draw_untrained_heads(NAMES, [7], 13, 5, empty)
    assert weight.shape == (2, 16, 5)
    assert bias.shape == (2, 5)
    torch.testing.assert_close(weight[1], alone[0], rtol=0, atol=0)
    torch.testing.assert_close(bias[1], alone_bias[0], rtol=0, atol=0)
    assert not weight[:, 13:].any()
    assert not torch.equal(weight[0], weight[1])
    assert not torch.equal(draw_untrained_heads(("other", "blobs"), [7], 13, 5, empty)[0], alone)


def test_orders_are_permutations_new_in_every_epoch_and_episode() -> None:
    drawn = draw_orders(NAMES, [3, 4], 6, 10, "cpu")
    assert drawn.shape == (2, 6, 10)
    assert torch.equal(drawn.sort(dim=2).values, torch.arange(10).expand(2, 6, 10))
    assert len({tuple(row) for row in drawn.flatten(0, 1).tolist()}) == 12
    assert torch.equal(drawn[1:], draw_orders(NAMES, [4], 6, 10, "cpu"))


def test_stacked_images_are_those_of_every_episode_support_first() -> None:
    dataset = target()
    sampler = EpisodeSampler.of(EpisodeSpec(n_way=3, k_shot=2, n_query=4), dataset)
    episodes = [sampler.episode(i) for i in range(8)]
    expected = [
        np.concatenate([side.ravel() for side in episode.images(dataset.by_class)])
        for episode in episodes
    ]
    np.testing.assert_array_equal(stack_images(dataset.by_class, episodes), expected)
