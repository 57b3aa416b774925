"""fsbench.Episodes: the episodes of the evaluation as tensors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.cli import CommandLine
from torch.utils.data import DataLoader

import fsbench
from fsbench.core.errors import UsageError
from fsbench.core.plotting import clean_text
from fsbench.core.records import EpisodeRecords
from fsbench.data.images import crop_centres
from fsbench.results.entry import write_entry


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
        numbers = indices.ravel().tolist()
        assert [*paths] == [data.paths[j] for j in numbers]
        pixels = crop_centres(map(data.image, numbers), episodes.image, len(numbers))
        assert np.array_equal(images.numpy(), pixels)
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


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> fsbench.Results:
    return fsbench.evaluate(
        "fsbench/toy_resnet",
        "toy_tiles:5w1s",
        heads=["centroid", "ridge"],
        random_init=0,
        input_size=32,
        episodes=4,
        output=tmp_path_factory.mktemp("results"),
        progress=False,
    )


@pytest.mark.parametrize(
    ("task", "heads"), [("5w1s", ("centroid", "ridge")), ("5w1s/ridge", ("ridge",))]
)
def test_a_picture_frames_and_names_what_each_head_gets_wrong(
    task: str, heads: tuple[str, ...], results: fsbench.Results
) -> None:
    episodes = fsbench.Episodes(f"toy_tiles:{task}", input_size=16)
    names = episodes[2].class_names
    support, *grids = episodes.plot(2, results).axes
    assert (support.get_title(loc="left"), len(support.images)) == ("support", 5)
    answers = [one for one in results.load() if one.result.task.head in heads]
    for axes, one in zip(grids, answers, strict=True):
        records = one.records
        assert isinstance(records, EpisodeRecords)
        assert records.predicted is not None
        wrong, taken = ~records.correct[2], records.predicted[2].reshape(5, 15)
        heading = f"fsbench-toy_resnet-random0 {one.result.task.head} 32px: "
        assert axes.get_title(loc="left") == heading + f"{(~wrong).sum()} of 75 right"
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            f"{i}  {name}" for i, name in enumerate(names)
        ]
        frames = [(round(p.get_y() / 1.25), round(p.get_x())) for p in axes.patches]
        assert frames == list(map(tuple, np.argwhere(wrong).tolist()))
        texts = [text.get_text() for text in axes.texts]
        assert texts == [f"× {label} {clean_text(names[label], 9)}" for label in taken[wrong]]
        assert len(axes.images) == 75


def test_a_picture_is_cut_with_a_count_and_marks_boards_by_a_cross_alone(
    results: fsbench.Results, tmp_path: Path
) -> None:
    many = fsbench.Episodes("toy_tiles:5w20s", input_size=16).plot(0)
    titles = [axes.get_title(loc="left") for axes in many.axes]
    assert titles == ["support (15 of 20 images of each class shown)", "queries"]
    assert [len(axes.images) for axes in many.axes] == [75, 75]
    one = results.load()[0]
    assert isinstance(one.records, EpisodeRecords)
    write_entry(tmp_path, [(one.result, replace(one.records, predicted=None))])
    axes = fsbench.Episodes("toy_tiles:5w1s", input_size=16).plot(0, tmp_path).axes[1]
    n_wrong = 75 - int(one.records.hits[0])
    assert [text.get_text() for text in axes.texts] == ["×"] * n_wrong
    assert axes.get_title(loc="left").endswith("right (predicted classes are not stored)")


@pytest.mark.parametrize(
    ("task", "index", "options", "message"),
    [
        ("5w1s", 600, {}, "episode 600 of 600"),
        ("5w1s", 4, {}, "no result holds episode 4 of toy_tiles:5w1s"),
        ("5w5s", 0, {}, "no result holds episode 0 of toy_tiles:5w5s"),
        ("5w1s/knn", 0, {}, "no result holds"),
        ("5w1s", 0, {"seed": 1}, "seed 1 and 15 queries"),
        ("5w1s", 0, {"n_query": 3}, "seed 0 and 3 queries"),
    ],
)
def test_a_picture_of_other_episodes_is_refused(
    task: str, index: int, options: dict[str, int], message: str, results: fsbench.Results
) -> None:
    episodes = fsbench.Episodes(f"toy_tiles:{task}", input_size=16, **options)
    with pytest.raises(UsageError, match=message):
        episodes.plot(index, results)


def test_the_command_writes_the_picture(
    cli: CommandLine, results: fsbench.Results, tmp_path: Path
) -> None:
    file, home = tmp_path / "episode.png", results.paths[0]
    command = "episodes", "show", "toy_tiles:5w1s", "-i", 3, "--results", home, "-o"
    cli(*command, file)
    first = file.read_bytes()
    cli(*command, file)
    assert file.read_bytes() == first
    assert "no figure format" in cli(*command, tmp_path / "episode.jpg", code=2).err
