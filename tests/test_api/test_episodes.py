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
    assert [episode.index for episode in episodes] == [0, 1, 2]
    assert torch.equal(episodes[-1].query, episodes[2].query)
    with pytest.raises(IndexError):
        episodes[3]
    assert repr(episodes) == "Episodes('toy_tiles:5w5s', 3 episodes, 32 px)"
    episode, drawn, data = episodes[1], episodes.sampler.episode(1), episodes.dataset
    sides = zip((episode.support, episode.query), drawn.images(data.by_class), strict=True)
    for (images, indices), paths in zip(
        sides, (episode.support_paths, episode.query_paths), strict=True
    ):
        assert (images.shape[1:], images.dtype) == ((3, 32, 32), torch.uint8)
        for image, j, path in zip(images, indices.ravel(), paths, strict=True):
            assert path == data.paths[j]
            assert np.array_equal(image.numpy(), to_array(data.image(int(j)), episodes.image))
    assert episode.support_labels.tolist() == [label for label in range(5) for _ in range(5)]
    assert episode.query_labels.bincount().tolist() == [15] * 5
    assert list(episode.class_names) == [data.class_names[c] for c in drawn.class_ids]


def test_a_transform_and_a_data_loader() -> None:
    episodes = fsbench.Episodes(
        "toy_tiles:5w1s", episodes=2, input_size=32, transform=lambda images: images.float() / 255
    )
    first, _ = DataLoader(episodes, batch_size=None, collate_fn=lambda episode: episode)
    assert first.support.dtype == torch.float32
    assert float(first.support.max()) <= 1


@pytest.mark.parametrize("task", ["toy_tiles", "toy_tiles:probe", "cdfsl"])
def test_anything_but_one_episodic_task_is_refused(task: str) -> None:
    with pytest.raises(UsageError):
        fsbench.Episodes(task)
    with pytest.raises(UsageError, match="0 episodes"):
        fsbench.Episodes("toy_tiles:5w1s", episodes=0)
