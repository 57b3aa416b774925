"""`fsbench data audit`: the share of queries that leak, against the exact expectation."""

import json
from collections import Counter
from functools import partial
from math import comb
from pathlib import Path

import numpy as np
import pytest
from support import cli
from support.protocols import target

from fsbench.core.errors import DataError
from fsbench.data import verification as module
from fsbench.data.base import Groups, TargetDataset
from fsbench.data.catalog import all_facts
from fsbench.data.episodes import Episode
from fsbench.data.verification import audit_groups, shared_fractions

TABLE = "ISIC2018_Task3_Training_GroundTruth"
CLASSES = ("MEL", "NV", "BCC", "AKIEC", "BKL", "DF", "VASC")


fsbench = partial(cli.call, "data", "audit")


def photographed(sizes: tuple[int, ...], classes: int = 6) -> TargetDataset:
    """Every class has one group of each size."""
    names = [str(number) for number, size in enumerate(sizes) for _ in range(size)]
    dataset = target(counts=(len(names),) * classes)
    group = dict(zip(dataset.canonical_ids, names * classes, strict=True))
    return dataset.with_groups(lambda image: f"{image.partition('/')[0]}/{group[image]}")


@pytest.mark.parametrize("k", [1, 5, 10])
def test_shares_are_those_of_drawing_by_class_alone(k: int) -> None:
    """A query of a group of g leaks unless the support misses its g - 1 others (hypergeometric)."""
    sizes = (1,) * 20 + (2,) * 10 + (5,) * 2
    n = sum(sizes)
    expected = sum(g / n * (1 - comb(n - g, k) / comb(n - 1, k)) for g in sizes)
    shares = audit_groups(photographed(sizes), [k], 400)
    (leak,) = shares.leaks
    assert leak.queries == pytest.approx(expected, rel=0.12)
    assert leak.any_class == leak.queries
    assert (shares.images, shares.groups, shares.repeats) == (6 * n, 6 * len(sizes), 6 * (n - 32))


def test_an_episode_by_hand() -> None:
    """Class 3: query 0 leaks by its own support, query 1 by that of class 7 alone."""
    groups = Groups({3: np.array([0, 0, 1, 2]), 7: np.array([1, 3, 4, 5])})
    support, query = np.array([[0], [0]]), np.array([[1, 2], [1, 2]])
    episode = Episode(0, np.array([3, 7]), (4, 4), support, query)
    assert shared_fractions(episode, groups) == (0.25, 0.5)


def test_an_affected_episode_has_at_least_one_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([(0.0, 0.5), (0.25, 0.25), (0.75, 0.75), (0.0, 0.0)])
    monkeypatch.setattr(module, "shared_fractions", lambda *_: next(drawn))
    (leak,) = audit_groups(photographed((2,) * 20), [1], 4).leaks
    assert (leak.queries, leak.any_class, leak.affected) == (0.25, 0.375, 0.5)


def test_shots_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(DataError, match="needs 65"):
        audit_groups(photographed((2,) * 15), [5, 50], 3)


@pytest.fixture
def lesions(tmp_path: Path) -> Path:
    """Label file and lesions of 7 x 40 images, two to a lesion."""
    folder = tmp_path / "isic2018"
    (folder / TABLE).mkdir(parents=True)
    rows = [(f"ISIC_{i:07}", i % 7) for i in range(280)]
    labels = [",".join([name, *("01"[c == k] for k in range(7))]) for name, c in rows]
    head = ",".join(["image", *CLASSES])
    (folder / TABLE / f"{TABLE}.csv").write_text("\n".join([head, *labels]) + "\n")
    rows_of_table = [f"HAM_{c}_{i // 14},{name}" for i, (name, c) in enumerate(rows)]
    text = "\n".join(["lesion_id,image_id", *rows_of_table]) + "\n"
    (folder / "HAM10000_metadata.csv").write_text(text)
    (folder / "ISIC2018_Task3_Training_Input").mkdir()
    for name, _ in rows:  # images are listed and not read
        (folder / "ISIC2018_Task3_Training_Input" / f"{name}.jpg").touch()
    return folder


def test_leaks_of_lesions(lesions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["isic", "--data", str(lesions.parent), "--shots", "1,20", "--episodes", "150"]
    assert fsbench(*arguments, "--json") == 0
    audit = json.loads(capsys.readouterr().out)
    assert (audit["images"], audit["groups"], audit["repeats"]) == (280, 140, 140)
    one, twenty = (leak["queries"] for leak in audit["leaks"])
    assert one == pytest.approx(1 / 39, rel=0.25)
    assert twenty == pytest.approx(20 / 39, rel=0.05)
    assert fsbench(*arguments) == 0
    out = capsys.readouterr()
    assert "280 images, 140 groups, 140 repeats" in out.out
    assert f"{100 * twenty:.2f}" in out.out
    assert "lesion: ISIC2018" in out.err


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["isic", "--protocol", "imb"], 2, ["did you mean 'ibm'"]),
        (["toy_scan"], 3, ["toy_scan has no groups"]),
        (["isic", "--shots", "50"], 3, ["needs 65"]),
        (["chestx"], 3, ["ChestX-ray14 not found"]),
    ],
)
def test_refusals(
    lesions: Path,
    arguments: list[str],
    code: int,
    texts: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fsbench(*arguments, "--data", str(lesions.parent)) == code
    err = capsys.readouterr().err
    assert all(text in err for text in ["fix:", *texts])


@pytest.mark.realdata
def test_groups_of_the_official_lists(packs: Path) -> None:
    """Exact counts over all official file names: photographs of CropDisease, patients of ChestX."""
    splits = packs / "startup_splits"
    crop, chest = (
        [all_facts()[name].listed_ids(part, splits) for part in ("labeled_80", "unlabeled_20")]
        for name in ("cropdisease", "chestx")
    )
    photos = Counter(map(all_facts()["cropdisease"].group_of, crop[0] | crop[1]))
    assert sum(n > 1 for n in photos.values()) == 438
    evaluated, adapted = ({all_facts()["chestx"].group_of(i) for i in part} for part in chest)
    assert (len(adapted), len(adapted & evaluated)) == (3701, 2288)


PUBLISHED = {1: 0.0027, 5: 0.0136, 20: 0.0525, 50: 0.1240}
"""Of all 10,015 images of ISIC 2018 task 3 with their 7,470 lesions, counted independently."""


@pytest.mark.realdata
def test_isic_in_full_leaks_what_was_counted(
    packs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["isic", "--data", str(packs), "--shots", "1,5,20", "--json"]
    assert fsbench(*arguments) == 0
    if json.loads(capsys.readouterr().out)["images"] < 10_015:
        pytest.skip(f"{packs} names a part of ISIC 2018 only, without a repeated lesion")
    assert fsbench(*arguments, "--shots", "50") == 0
    audit = json.loads(capsys.readouterr().out)
    assert (audit["groups"], audit["repeats"]) == (7470, 2545)
    for leak in audit["leaks"]:
        assert leak["queries"] == pytest.approx(PUBLISHED[leak["shots"]], rel=0.06)
