"""The digits, split into training and validation by the seed, and the two processes of a claim."""

from __future__ import annotations

import operator
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fsbench.reproductions import _runs


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


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert _runs.run_jobs(abs, [-3, 1, -2], "jobs") == [3, 1, 2]


def test_a_worker_uses_the_folder_of_tmpdir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert _runs.run_jobs(operator.call, [tempfile.gettempdir], "place") == [str(tmp_path)]


@pytest.mark.skipif(_runs.find_memory_folder() is None, reason="no folder in memory with room")
def test_without_tmpdir_a_worker_uses_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert _runs.run_jobs(operator.call, [tempfile.gettempdir], "place") == [_runs.MEMORY_FOLDER]


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
