"""The loaders on real images in official layouts."""

from pathlib import Path

import numpy as np
import pytest

from fsbench.core.specs import Pool
from fsbench.data import DataRoots, load_source, load_target
from fsbench.data.base import hash_lines
from fsbench.data.catalog import all_facts

pytestmark = pytest.mark.realdata

COUNTS = {
    "eurosat": dict.fromkeys(range(10), 100),
    "isic": {0: 60, 1: 60, 2: 60, 3: 60, 4: 60, 5: 40, 6: 53},
    "chestx": {0: 11, 1: 16, 2: 8, 3: 24, 4: 16, 5: 17, 6: 18},
    "cropdisease": dict.fromkeys([*range(18, 23), *range(28, 38)], 60),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("pool", ["full", "labeled_80"])
def test_targets(packs: Path, name: str, pool: Pool) -> None:
    dataset = load_target(name, DataRoots.parse([str(packs)]), pool)
    assert dataset.flags == {"subset"}
    if pool == "full":
        assert dataset.class_counts == COUNTS[name]
    else:
        assert 0.5 * sum(COUNTS[name].values()) < len(dataset) < 0.9 * sum(COUNTS[name].values())
    assert dataset.image(len(dataset) - 1).mode == "RGB"


def test_chestx64(packs: Path) -> None:
    dataset = load_target("chestx", DataRoots.parse([f"chestx={packs / 'chestx64'}"]))
    assert dataset.class_counts == {0: 34, 1: 31, 2: 56, 3: 61, 4: 22, 5: 28, 6: 30}
    assert dataset.image(0).size == (256, 256)


def test_a_real_class_folder_is_a_target_of_ones_own(packs: Path) -> None:
    dataset = load_target(f"folder:{packs / 'plantvillage' / 'color'}", DataRoots())
    assert (dataset.flags, len(dataset)) == ({"custom"}, 900)


@pytest.mark.parametrize("name", COUNTS)
def test_lists_have_the_pinned_hash_and_the_official_counts(packs: Path, name: str) -> None:
    splits, facts = packs / "startup_splits", all_facts()[name]
    assert facts.startup
    ids = [facts.listed_ids(part, splits) for part in ("labeled_80", "unlabeled_20")]
    assert hash_lines(sorted(ids[0])) == facts.startup.labeled_80_hash
    assert hash_lines(sorted(ids[0] | ids[1])) == facts.startup.full_hash
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == sum(facts.images_per_class)
    if "/" in next(iter(ids[0])):
        names = [i.split("/")[0] for i in ids[0] | ids[1]]
        counts = tuple(names.count(c) for c in facts.classes)
        assert counts == facts.images_per_class


def test_wnids_are_those_of_the_official_file(packs: Path) -> None:
    official = (packs / "tiny-imagenet-200" / "wnids.txt").read_text().split()
    assert list(all_facts()["tinyimagenet"].classes) == official


@pytest.mark.slow
def test_tinyimagenet(packs: Path, tmp_path: Path) -> None:
    source = load_source("tinyimagenet", DataRoots.parse([str(packs)]), tmp_path, 32)
    assert source.train.images.shape == (50_000, 3, 32, 32)
    assert np.bincount(source.train.labels).tolist() == [250] * 200
    assert np.bincount(source.val.labels).tolist() == [30] * 200
    assert source.flags == {"subset"}
