"""`fsbench data ls|show|verify` and the errors of data sets, through the command line."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cases import read_cases
from support.cli import CommandLine
from support.images import draw_grey, draw_images, join_names

from fsbench.data import DataRoots, load_target
from fsbench.data.catalog import SOURCES, TARGETS, all_facts
from fsbench.data.content import hash_contents


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


@pytest.mark.parametrize(("top", "query", "warning"), read_cases("data")["bits"])
def test_unused_bits_are_warned_of(
    tmp_path: Path, top: int, query: str, warning: str | None
) -> None:
    folder = draw_grey(tmp_path / "x", "a/1.png", "a/2.tif", "b/3.png", "b/4.pgm", value=7, top=top)
    dataset = load_target(f"folder:{folder}{query}", DataRoots())
    text = " ".join(hash_contents(dataset, tmp_path / "c").warnings)
    assert ("16-bit images use less than an eighth" in text) == (warning is not None)
    assert re.search((warning or "").replace("?bits", r"\?bits"), text)


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


def test_verify_lists_equal_images_of_two_classes(
    cli: CommandLine, eurosat: Path, tmp_path: Path
) -> None:
    folder = draw_images(tmp_path / "x", *(f"{c}/{c}{n}.png" for c in "ab" for n in range(14)))
    for n in range(12):
        shutil.copy(folder / "a" / f"a{n}.png", folder / "b" / f"b{n}.png")
    shutil.copy(folder / "a" / "a13.png", folder / "a" / "again.png")
    err = cli("data", "verify", f"folder:{folder}").err
    assert "24 images have the same content as an image of another class: a/a0.png = b/b0" in err
    assert err.count(" = ") == 10, "equal images of one class are not listed"
    tree = eurosat / "2750"
    shutil.copy(tree / "Forest" / "Forest_9.jpg", tree / "River" / "River_7.jpg")
    err = cli("data", "verify", "eurosat", "--data", eurosat.parent, code=3).err
    assert "Forest/Forest_9.jpg = River/River_7.jpg" in err
    hub = draw_images(tmp_path / "hub", *join_names("test", "a b c", "1.png"))
    shutil.copy(hub / "test" / "a" / "1.png", hub / "test" / "b" / "1.png")
    err = cli("data", "verify", f"hf-hub:{hub}?split=test").err
    assert "2 images have the same content as an image of another class: a/" in err
