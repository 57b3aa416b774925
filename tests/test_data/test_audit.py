"""`fsbench data audit`: the share of queries that leak, against the exact expectation."""

from collections import Counter
from math import comb
from pathlib import Path

import numpy as np
import pytest
from support.cli import CommandLine
from support.protocols import target, with_groups

from fsbench.data import verification as module
from fsbench.data.base import Groups, TargetDataset
from fsbench.data.catalog import all_facts
from fsbench.data.episodes import Episode
from fsbench.data.verification import audit_groups, shared_fractions


def photographed(sizes: tuple[int, ...], classes: int = 6) -> TargetDataset:
    """Every class has one group of each size."""
    names = [str(number) for number, size in enumerate(sizes) for _ in range(size)]
    dataset = target(counts=(len(names),) * classes)
    group = dict(zip(dataset.canonical_ids, names * classes, strict=True))
    return with_groups(dataset, lambda image: f"{image.partition('/')[0]}/{group[image]}")


@pytest.mark.parametrize("k", [1, 5, 10])
def test_shares_are_those_of_drawing_by_class_alone(k: int) -> None:
    """A query of a group of g leaks unless the support misses its g - 1 others (hypergeometric)."""
    sizes = (1,) * 20 + (2,) * 10 + (5,) * 2
    n = sum(sizes)
    expected = sum(g / n * (1 - comb(n - g, k) / comb(n - 1, k)) for g in sizes)
    shares = audit_groups(photographed(sizes), [k], 400)
    (leak,) = shares["leaks"]
    assert leak["queries"] == pytest.approx(expected, rel=0.12)
    assert leak["any_class"] == leak["queries"]
    counts = {"images": 6 * n, "groups": 6 * len(sizes), "repeats": 6 * (n - 32)}
    assert shares | counts == shares


def test_an_episode_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class 3: query 0 leaks by its own support, query 1 by that of class 7 alone."""
    groups = Groups({3: np.array([0, 0, 1, 2]), 7: np.array([1, 3, 4, 5])})
    support, query = np.array([[0], [0]]), np.array([[1, 2], [1, 2]])
    episode = Episode(0, np.array([3, 7]), (4, 4), support, query)
    assert shared_fractions(episode, groups) == (0.25, 0.5)
    drawn = iter([(0.0, 0.5), (0.25, 0.25), (0.75, 0.75), (0.0, 0.0)])
    monkeypatch.setattr(module, "shared_fractions", lambda *_: next(drawn))
    (leak,) = audit_groups(photographed((2,) * 20), [1], 4)["leaks"]
    assert (leak["queries"], leak["any_class"], leak["affected"]) == (0.25, 0.375, 0.5)


@pytest.fixture
def lesions(tmp_path: Path) -> Path:
    """Label file and lesions of 7 x 40 images, two to a lesion."""
    folder = tmp_path / "isic2018"
    images = folder / "ISIC2018_Task3_Training_Input"
    images.mkdir(parents=True)
    labels = [",".join(["image", *all_facts()["isic"].classes])]
    groups = ["lesion_id,image_id"]
    for i in range(280):
        labels.append(",".join([f"ISIC_{i:07}", *("01"[i % 7 == k] for k in range(7))]))
        groups.append(f"HAM_{i % 7}_{i // 14},ISIC_{i:07}")
        (images / f"ISIC_{i:07}.jpg").touch()  # images are listed and not read
    (folder / "ISIC2018_Task3_Training_GroundTruth.csv").write_text("\n".join(labels) + "\n")
    (folder / "HAM10000_metadata.csv").write_text("\n".join(groups) + "\n")
    return tmp_path


def test_leaks_of_lesions(lesions: Path, cli: CommandLine) -> None:
    command = ("data", "audit", "isic", "--data", lesions, "--shots", "1,20", "--episodes", "150")
    audit = cli.json(*command)
    assert (audit["images"], audit["groups"], audit["repeats"]) == (280, 140, 140)
    one, twenty = (leak["queries"] for leak in audit["leaks"])
    assert one == pytest.approx(1 / 39, rel=0.25)
    assert twenty == pytest.approx(20 / 39, rel=0.05)
    shown = cli(*command)
    assert "280 images, 140 groups, 140 repeats" in shown.out
    assert f"{100 * twenty:.2f}" in shown.out
    assert "lesion: ISIC2018" in shown.err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ("isic --protocol imb", 2, "did you mean 'ibm'"),
        ("toy_scan", 3, "toy_scan has no groups"),
        ("isic --shots 50", 3, "needs 65"),
        ("chestx", 3, "ChestX-ray14 not found"),
    ],
)
def test_refusals(lesions: Path, arguments: str, code: int, text: str, cli: CommandLine) -> None:
    err = cli("data", "audit", *arguments.split(), "--data", lesions, code=code).err
    assert "fix:" in err
    assert text in err


@pytest.mark.realdata
def test_groups_of_the_official_lists(packs: Path) -> None:
    """Exact counts over all official file names: photographs of CropDisease, patients of ChestX."""
    crop, chest = (all_facts()[name] for name in ("cropdisease", "chestx"))
    lists = [
        facts.listed_ids(part, packs / "startup_splits")
        for facts in (crop, chest)
        for part in ("labeled_80", "unlabeled_20")
    ]
    photos = Counter(map(crop.group_of, lists[0] | lists[1]))
    assert sum(n > 1 for n in photos.values()) == 438
    evaluated, adapted = ({*map(chest.group_of, part)} for part in lists[2:])
    assert (len(adapted), len(adapted & evaluated)) == (3701, 2288)
