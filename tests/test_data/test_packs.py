"""The loaders on real images in official layouts."""

from pathlib import Path

import numpy as np
import pytest
from support.cli import CommandLine

from fsbench.core.specs import Pool
from fsbench.data import DataRoots, describe_dataset, load_source, load_target
from fsbench.data.base import hash_lines
from fsbench.data.catalog import all_facts

pytestmark = pytest.mark.realdata

PINNED = {
    ("chestx", "full"): "7ba802a1 9ccc3773 1856c5c0",
    ("chestx", "labeled_80"): "beb7b67a 39f7f562 7ccb3e7a",
    ("isic", "full"): "633fd65b 566eb7a2 63b2538f",
    ("isic", "labeled_80"): "7626d1ae ba5004c5 77872c04",
    ("eurosat", "full"): "28b63eb7 bcd47909 -",
    ("eurosat", "labeled_80"): "5b978ab2 e4491307 -",
    ("cropdisease", "full"): "02e4942e 8bf14667 b6c2f1bf",
    ("cropdisease", "labeled_80"): "2dfefd79 14159cd1 773bec5a",
    ("chestx64", "full"): "87b634d8 3e89823d f65a0388",
}
"""Beginnings of the hashes of the images by name, by content, and of their groups."""


@pytest.mark.parametrize(("name", "pool"), PINNED)
def test_images_contents_and_groups_are_pinned(
    packs: Path, tmp_path: Path, name: str, pool: Pool
) -> None:
    """Others would be other episodes and results under the same name."""
    roots = DataRoots.parse(
        [str(packs), f"chestx={packs / name}"] if "64" in name else [str(packs)]
    )
    dataset = load_target(name.removesuffix("64"), roots, pool)
    groups = dataset.groups.hash if dataset.groups else "-"
    fingerprint = describe_dataset(dataset, tmp_path).fingerprint
    hashes = (dataset.images_hash, fingerprint, groups)
    assert " ".join(digest[:8] for digest in hashes) == PINNED[name, pool]
    assert dataset.flags == {"subset"}
    assert dataset.image(len(dataset) - 1).mode == "RGB"


def test_a_real_class_folder_is_a_target_of_ones_own(packs: Path) -> None:
    dataset = load_target(f"folder:{packs / 'plantvillage' / 'color'}", DataRoots())
    assert (dataset.flags, len(dataset)) == ({"custom"}, 900)


@pytest.mark.parametrize("name", ["chestx", "cropdisease", "eurosat", "isic"])
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


def test_real_images_in_the_official_layouts_have_results(
    packs: Path, tmp_path: Path, cli: CommandLine
) -> None:
    """Of an untrained network."""
    model = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
    data = ("--data", packs, "--data", f"chestx={packs / 'chestx64'}", "-o", tmp_path)
    results = cli.json("episodic", *model, "-t", "cdfsl:5w5s/centroid", "--limit", "20", *data)
    names = {result["dataset"]["name"] for result in results}
    assert names == {"chestx", "isic", "eurosat", "cropdisease"}
    assert {flag for result in results for flag in result["dataset"]["flags"]} == {"subset"}
    assert all(result["score"]["mean"] > 0.22 for result in results), "5-way chance is .2"
