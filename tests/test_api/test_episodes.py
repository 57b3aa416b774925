"""fsbench.Episodes: the episodes of the evaluation as tensors."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import fsbench
from fsbench.core.errors import UsageError
from fsbench.data.images import to_array


def test_an_episode_holds_the_images_labels_and_paths_of_the_sampler() -> None:
    episodes = fsbench.Episodes("toy_tiles:5w5s", episodes=3, input_size=32)
    episode = episodes[1]
    drawn = episodes.sampler.episode(1)
    support, query = drawn.images(episodes.dataset.by_class)
    assert episode.support.shape == (25, 3, 32, 32)
    assert episode.query.shape == (75, 3, 32, 32)
    assert episode.support.dtype == torch.uint8
    assert episode.support_labels.tolist() == sorted(episode.support_labels.tolist())
    assert episode.query_labels.bincount().tolist() == [15] * 5
    for images, indices, paths in (
        (episode.support, support, episode.support_paths),
        (episode.query, query, episode.query_paths),
    ):
        for image, j, path in zip(images, indices.ravel(), paths, strict=True):
            assert path == episodes.dataset.paths[j]
            expected = to_array(episodes.dataset.image(int(j)), episodes.image)
            assert np.array_equal(image.numpy(), expected)
    names = [episodes.dataset.class_names[c] for c in drawn.class_ids]
    assert list(episode.class_names) == names


def test_episodes_index_and_iterate() -> None:
    episodes = fsbench.Episodes("toy_tiles:5w1s", episodes=3, input_size=32)
    assert [episode.index for episode in episodes] == [0, 1, 2]
    assert torch.equal(episodes[-1].query, episodes[2].query)
    with pytest.raises(IndexError):
        episodes[3]
    assert repr(episodes) == "Episodes('toy_tiles:5w1s', 3 episodes, 32 px)"


def test_a_transform_and_a_data_loader() -> None:
    episodes = fsbench.Episodes(
        "toy_tiles:5w1s", episodes=2, input_size=32, transform=lambda images: images.float() / 255
    )
    batches = list(DataLoader(episodes, batch_size=None, collate_fn=lambda episode: episode))
    assert len(batches) == 2
    assert batches[0].support.dtype == torch.float32
    assert float(batches[0].support.max()) <= 1


@pytest.mark.parametrize("task", ["toy_tiles", "toy_tiles:probe", "cdfsl"])
def test_anything_but_one_episodic_task_is_refused(task: str) -> None:
    with pytest.raises(UsageError):
        fsbench.Episodes(task)
    with pytest.raises(UsageError, match="0 episodes"):
        fsbench.Episodes("toy_tiles:5w1s", episodes=0)
