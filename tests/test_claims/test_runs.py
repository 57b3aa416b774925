"""The digits, split into training and validation by the seed, and the two processes of a claim."""

import operator
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from fsbench.claims import FIRST_SEED, ClaimSettings, _runs
from fsbench.core.errors import DataError
from fsbench.data.catalog import DataRoots
from fsbench.data.sources import tinyimagenet


def test_every_image_is_used_once_with_its_label() -> None:
    source = _runs.load_digits_source(3)
    images = np.concatenate([source.train.images, source.val.images])
    labels = np.concatenate([source.train.labels, source.val.labels])
    assert images.shape == (1797, 3, 8, 8)
    assert images.max() == 255
    there = {(image.tobytes(), label) for image, label in zip(images[:, 1], labels, strict=True)}
    digits = load_digits()
    expected = np.rint(digits.images * 255 / 16).astype(np.uint8)
    assert there == {(i.tobytes(), t) for i, t in zip(expected, digits.target, strict=True)}


def test_the_seed_chooses_the_split_and_the_size_only_shortens_it() -> None:
    one, other, few = (
        _runs.load_digits_source(0),
        _runs.load_digits_source(1),
        _runs.load_digits_source(0, 100),
    )
    assert len(one.val) == len(few.val) == 360
    assert np.array_equal(one.val.images, few.val.images)
    assert np.array_equal(one.train.images[:100], few.train.images)
    assert not np.array_equal(one.val.labels, other.val.labels)
    assert len({s.fingerprint for s in (one, other, few)}) == 3


def test_zoom_repeats_every_pixel_and_is_in_the_name() -> None:
    one, large = _runs.load_digits_source(0), _runs.load_digits_source(0, zoom=2)
    assert large.train.images.shape == (1437, 3, 16, 16)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert np.array_equal(large.val.images[:, :, row::2, column::2], one.val.images)
    assert np.array_equal(one.train.labels, large.train.labels)
    assert one.mean == large.mean
    assert one.fingerprint != large.fingerprint


def test_noise_gives_a_part_of_the_training_images_a_wrong_label() -> None:
    clean, noisy = _runs.load_digits_source(3), _runs.load_digits_source(3, noise=0.4)
    wrong = clean.train.labels != noisy.train.labels
    assert 0.36 < wrong.mean() < 0.44
    assert set(noisy.train.labels[wrong]) == set(range(10))
    assert np.array_equal(clean.val.labels, noisy.val.labels)
    assert np.array_equal(clean.train.images, noisy.train.images)
    again = _runs.load_digits_source(3, 100, noise=0.4)
    assert np.array_equal(again.train.labels, noisy.train.labels[:100])
    assert len({clean.fingerprint, noisy.fingerprint, again.fingerprint}) == 3


def test_without_tinyimagenet_the_condition_fails_and_loading_says_where_to_get_it() -> None:
    nowhere = ClaimSettings(seeds=1)
    assert not _runs.require_colour_images(nowhere).holds
    with pytest.raises(DataError, match="TinyImageNet not found"):
        _runs.load_colour_source(nowhere, 8, 10, 0)


def test_colour_images_are_ten_classes_in_an_order_set_by_the_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FSBENCH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tiny-imagenet-200"
    for position, wnid in enumerate(tinyimagenet.FACTS.classes[:12]):
        for part, n in (("train", 4), ("val", 1)):
            images = folder / part / wnid / "images"
            images.mkdir(parents=True)
            for i in range(n):
                colour = (20 * position, 50 * i, 100)
                Image.new("RGB", (64, 64), colour).save(images / f"{wnid}_{i}.JPEG")
    (folder / "wnids.txt").write_text("\n".join(tinyimagenet.FACTS.classes[:12]))
    settings = ClaimSettings(data=DataRoots.parse([str(tmp_path)]))
    assert _runs.require_colour_images(settings).holds
    one, other = (_runs.load_colour_source(settings, 8, 15, seed) for seed in (0, 1))
    assert one.train.images.shape == (15, 3, 8, 8)
    assert len(one.val) == 40 - 15
    assert one.n_classes == len(one.facts.classes) == 10
    assert set(one.train.labels) | set(one.val.labels) == set(range(10))
    assert one.facts.classes == other.facts.classes
    assert not np.array_equal(one.train.labels, other.train.labels)
    contents = {image.tobytes() for part in (one.train, one.val) for image in part.images}
    assert len(contents) == 40


def test_claims_run_on_seeds_that_no_trial_used() -> None:
    assert list(ClaimSettings(seeds=2).seed_range) == [FIRST_SEED, FIRST_SEED + 1]
    cells = _runs.run_seeds(operator.itemgetter(1), "ab", ClaimSettings(2, processes=1), "seeds")
    assert cells == {"a": [100, 101], "b": [100, 101]}


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert _runs.run_jobs(abs, [-3, 1, -2], ClaimSettings(), "jobs") == [3, 1, 2]


def test_a_worker_uses_the_folder_of_tmpdir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert _runs.run_jobs(
        operator.call, [tempfile.gettempdir], ClaimSettings(processes=1), "place"
    ) == [str(tmp_path)]


@pytest.mark.skipif(_runs.find_memory_folder() is None, reason="no folder in memory with room")
def test_without_tmpdir_a_worker_uses_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert _runs.run_jobs(
        operator.call, [tempfile.gettempdir], ClaimSettings(processes=1), "place"
    ) == [_runs.MEMORY_FOLDER]


def test_memory_without_free_space_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_runs, "MEMORY_FOLDER", str(tmp_path))
    assert _runs.find_memory_folder() == str(tmp_path)
    monkeypatch.setattr(_runs, "FREE_BYTES", 2**62)
    assert _runs.find_memory_folder() is None
    monkeypatch.setattr(_runs, "MEMORY_FOLDER", str(tmp_path / "missing"))
    monkeypatch.setattr(_runs, "FREE_BYTES", 0)
    assert _runs.find_memory_folder() is None
