"""`fsbench data ls|show|verify|audit` and the errors of data sets, through the command line."""

import re
from collections import Counter
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest
from support.cli import CommandLine
from support.images import draw_grey
from support.protocols import target, with_groups

from fsbench.data import DataRoots, TargetDataset, load_target, verification
from fsbench.data.base import Groups
from fsbench.data.catalog import SOURCES, TARGETS, all_facts
from fsbench.data.content import hash_contents
from fsbench.data.episodes import Episode
from fsbench.data.verification import audit_groups, shared_fractions


def test_ls_counts_the_images_that_are_there(
    cli: CommandLine, eurosat: Path, chestx: Path, isic: Path
) -> None:
    next(isic.glob("*/*.csv")).unlink()
    rows = {row["name"]: row for row in cli.json("data", "ls", "--data", eurosat.parent)}
    states = {name: (row["present"], row["images"], row["state"]) for name, row in rows.items()}
    expected = {
        "eurosat": (3, 27000, "subset"),
        "chestx": (3, 25848, "subset"),
        "isic": (0, 10015, "refused"),
        "cub200": (0, 11788, "missing"),
        "toy_scan": (320, 320, "generated"),
    }
    assert states | expected == states
    assert rows["eurosat"]["found"] == str(eurosat)
    assert rows["isic"]["get"] == "fsbench data verify isic"
    assert rows["eurosat"]["get"] == "fsbench data download eurosat"


def test_ls_has_a_line_per_data_set_and_verify_accepts_official_data(
    cli: CommandLine, eurosat: Path, change_card: Callable[..., None]
) -> None:
    change_card("eurosat", classes=("Forest", "River"), images_per_class=(1, 2))
    shown = cli("data", "ls", "--data", eurosat.parent).out
    lines = {line.split()[0]: " ".join(line.split()) for line in shown.splitlines() if line}
    assert lines["eurosat"] == "eurosat 2 3 of 3 complete fsbench data download eurosat"
    assert {*TARGETS.names(), *SOURCES.names()} <= lines.keys()
    assert "0 of 43,456" in cli("data", "ls", "plant-disease").out
    shown = cli("data", "verify", "eurosat", "--data", eurosat.parent)
    assert "River" in shown.out
    assert "every image opens, the counts are official" in shown.err


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("plant-disease", ["Potato___healthy=122", "saroz014/plant-disease", "data.mendeley.com"]),
        ("isic", ["NV=6705", "CC BY-NC 4.0", "HAM10000_metadata.csv", "amazonaws.com/2018/"]),
        ("flowers102", ["train=1020, test=6149", "102flowers.tgz", "52808999861908f626f3c1f4"]),
        ("toy_tiles", ["Apache-2.0", "generated"]),
    ],
)
def test_show_states_all_facts_and_addresses(
    cli: CommandLine, name: str, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "9999")
    out = cli("data", "show", name).out
    assert [text for text in texts if text not in out] == []
    assert cli.json("data", "show", name)["license"]


def test_verify_states_other_counts_and_each_corrupt_file(cli: CommandLine, eurosat: Path) -> None:
    err = cli("data", "verify", "eurosat", "--data", f"eurosat={eurosat}", code=3).err
    assert all(t in err for t in ("Forest 1 of 3000", "subset", "fsbench data download eurosat"))
    river = eurosat / "2750" / "River"
    (river / "River_0.jpg").write_bytes((river / "River_1.jpg").read_bytes()[:100])
    (river / "River_1.jpg").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    (river / "River_2.jpg").unlink()
    (river / "River_2.jpg").symlink_to("../../.git/annex/objects/aa/bb/MD5E-s1--0.jpg")
    err = cli("data", "verify", "eurosat", "--data", eurosat.parent, code=3).err
    texts = ("3 of 4 images cannot be read", "River_0.jpg", "run `git lfs pull`", "`git annex get`")
    assert all(text in err for text in texts)


def test_verify_generated_images_and_those_of_ones_own(cli: CommandLine, eurosat: Path) -> None:
    assert sum(row["images"] for row in cli.json("data", "verify", "toy-tiles")) == 320
    shown = cli("data", "verify", f"folder:{eurosat / '2750'}")
    assert "3 images" in shown.out
    assert "every image opens, custom images, without official counts" in shown.err
    rows = cli.json("data", "verify", f"folder:{eurosat / '2750'}")
    assert [row["official"] for row in rows] == [None, None]


@pytest.mark.parametrize(
    ("top", "query", "warning"),
    [
        (4095, "", "4 of 4 16-bit images .*4095 of 65535.*?bits=12"),
        (1023, "", "?bits=10"),
        (255, "", "?bits=8"),
        (8191, "", "?bits=13"),
        (8192, "", None),
        (4095, "?bits=12", None),
        (255, "?bits=12", "largest value of all is 255 of 4095"),
    ],
)
def test_unused_bits_are_warned_of(
    tmp_path: Path, top: int, query: str, warning: str | None
) -> None:
    folder = draw_grey(tmp_path / "x", "a/1.png", "a/2.tif", "b/3.png", "b/4.pgm", value=7, top=top)
    dataset = load_target(f"folder:{folder}{query}", DataRoots())
    text = " ".join(hash_contents(dataset, tmp_path / "c").warnings)
    assert ("16-bit images use less than an eighth" in text) == (warning is not None)
    assert re.search((warning or "").replace("?bits", r"\?bits"), text)


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        ("verify isic", 3, ["no --data was given", "GroundTruth.csv", "--data isic=DIR"]),
        ("verify eurosatt", 2, ["did you mean 'eurosat'"]),
        ("verify isic --data /nowhere", 3, ["/nowhere is not a folder"]),
        ("download toy_scan", 3, ["nothing to fetch"]),
        ("download mit67 --data new", 3, ["TrainImages.txt", "indoorCVPR_09.tar"]),
        ("download eurosat", 2, ["no folder for eurosat", "--data ROOT"]),
        ("audit isic --protocol imb", 2, ["did you mean 'ibm'"]),
        ("audit toy_scan", 3, ["toy_scan has no groups"]),
        ("audit chestx", 3, ["ChestX-ray14 not found"]),
    ],
)
def test_errors_name_the_file_and_the_fix(
    cli: CommandLine, arguments: str, code: int, texts: list[str]
) -> None:
    err = cli("data", *arguments.split(), code=code).err
    assert all(text in err for text in ["fix: ", *texts])


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
    monkeypatch.setattr(verification, "shared_fractions", lambda *_: next(drawn))
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
    command = ("data", "audit", "isic", "--data", lesions, "--episodes", "150", "--shots")
    audit = cli.json(*command, "1,20")
    assert (audit["images"], audit["groups"], audit["repeats"]) == (280, 140, 140)
    one, twenty = (leak["queries"] for leak in audit["leaks"])
    assert one == pytest.approx(1 / 39, rel=0.25)
    assert twenty == pytest.approx(20 / 39, rel=0.05)
    shown = cli(*command, "1,20")
    assert "280 images, 140 groups, 140 repeats" in shown.out
    assert f"{100 * twenty:.2f}" in shown.out
    assert "lesion: ISIC2018" in shown.err
    assert "needs 65" in cli(*command, "50", code=3).err


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
