"""The digits and the colour images, split by the seed, and one training on them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from fsbench.claims import _training
from fsbench.claims.engine import ClaimJob, ClaimSettings
from fsbench.core.errors import DataError
from fsbench.data.catalog import DataRoots, all_facts

load = _training.load_digits_source


def test_every_digit_is_used_once_with_its_label() -> None:
    source = load(3)
    images = np.concatenate([source.train.images, source.val.images])
    labels = np.concatenate([source.train.labels, source.val.labels])
    assert (images.shape, images.max()) == ((1797, 3, 8, 8), 255)
    ours = {(image.tobytes(), label) for image, label in zip(images[:, 1], labels, strict=True)}
    digits = load_digits()
    expected = np.rint(digits.images * 255 / 16).astype(np.uint8)
    assert ours == {(i.tobytes(), t) for i, t in zip(expected, digits.target, strict=True)}


def test_seed_size_zoom_and_noise_change_their_part_alone() -> None:
    """The seed chooses the split, the size shortens it, zoom repeats pixels, noise turns labels."""
    one, other, few = load(0), load(1), load(0, 100)
    large, noisy = load(0, zoom=2), load(0, noise=0.4)
    assert len({source.fingerprint for source in (one, other, few, large, noisy)}) == 5
    assert (len(one.val), len(few.train)) == (360, 100)
    assert not np.array_equal(one.val.labels, other.val.labels)
    for source in (few, large, noisy):
        assert np.array_equal(one.val.labels, source.val.labels)
    assert np.array_equal(one.train.images[:100], few.train.images)
    assert large.train.images.shape == (1437, 3, 16, 16)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert np.array_equal(large.val.images[:, :, row::2, column::2], one.val.images)
    assert (one.mean, one.std) == (large.mean, large.std)
    assert np.array_equal(one.train.images, noisy.train.images)
    wrong = one.train.labels != noisy.train.labels
    assert 0.36 < wrong.mean() < 0.44
    assert set(noisy.train.labels[wrong]) == set(range(10))
    assert np.array_equal(load(0, 100, noise=0.4).train.labels, noisy.train.labels[:100])


def test_without_tinyimagenet_loading_says_where_to_get_it() -> None:
    with pytest.raises(DataError, match="TinyImageNet not found"):
        _training.load_colour_source(ClaimJob("arm", 0), 10)


def test_colour_images_are_ten_classes_in_an_order_set_by_the_seed(tmp_path: Path) -> None:
    folder = tmp_path / "tiny-imagenet-200"
    for position, wnid in enumerate(all_facts()["tinyimagenet"].classes[:12]):
        for part, n in (("train", 4), ("val", 1)):
            images = folder / part / wnid / "images"
            images.mkdir(parents=True)
            for i in range(n):
                colour = (20 * position, 50 * i, 100)
                Image.new("RGB", (64, 64), colour).save(images / f"{wnid}_{i}.JPEG")
    (folder / "wnids.txt").write_text("\n".join(all_facts()["tinyimagenet"].classes[:12]))
    settings = ClaimSettings(data=DataRoots.parse([str(tmp_path)]))
    one, other = (
        _training.load_colour_source(ClaimJob("arm", seed, settings), 15) for seed in (0, 1)
    )
    assert one.train.images.shape == (15, 3, 16, 16)
    assert len(one.val) == 40 - 15
    assert one.n_classes == len(one.facts.classes) == 10
    assert set(one.train.labels) | set(one.val.labels) == set(range(10))
    assert one.facts.classes == other.facts.classes
    assert not np.array_equal(one.train.labels, other.train.labels)
    contents = {image.tobytes() for part in (one.train, one.val) for image in part.images}
    assert len(contents) == 40


def test_swr_is_trained_as_in_its_paper() -> None:
    source = _training.load_digits_source(0, 64)
    swr = {"name": "swr", "lam": 0.5}
    recipe = _training.build_swr_recipe(swr, source, 3, 7, "warm-start", lr=0.1)
    assert (recipe.optimizer, recipe.lr, recipe.weight_decay) == ("adam", 0.1, 0)
    assert (recipe.batch_size, recipe.input_size, recipe.source) == (32, 8, "digits")
    assert (recipe.schedule, recipe.augmentation, recipe.label_smoothing) == ("constant", "none", 0)
    assert (recipe.opt_reset, recipe.seed, recipe.plan.epochs) == ("none", 3, 7)
    assert [stage.stop for stage in recipe.plan.stages] == [0.5, 1]
    assert recipe.methods[0].model_dump()["lambda_f"] == 0.5
    assert _training.build_swr_recipe({"name": "normal"}, source, 0, 1).lr == 1e-3


def test_a_run_gives_percent_by_epoch_and_stage_and_is_watched() -> None:
    source = _training.load_digits_source(0, 64)
    recipe = _training.build_swr_recipe({"name": "normal"}, source, 0, 2, "warm-start")
    run = _training.train_once(
        recipe, source, lambda ctx: [tuple(kernel.shape) for kernel in _training.get_kernels(ctx)]
    )
    assert len(run.test) == 4
    assert run.stages == run.test[1::2]
    assert len(run.train) == 4
    assert 5 < min(run.train) <= max(run.train) <= 100
    assert max(run.test) > 15
    assert run.watched == [[(100, 192), (100, 100), (10, 100)]] * 5
