"""`fsbench data` and the errors of the data room, through the command line."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import cli

from fsbench.data.catalog import SOURCES, TARGETS


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.call("data", *map(str, arguments))
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return code, shown.out, shown.err


def test_ls_counts_the_images_that_are_found(
    capsys: pytest.CaptureFixture[str], eurosat: Path, chestx: Path, isic: Path
) -> None:
    for table in isic.glob("*/*.csv"):
        table.unlink()
    code, out, _ = call(capsys, "ls", "--data", eurosat.parent, "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    states = {name: (row["present"], row["images"], row["state"]) for name, row in rows.items()}
    assert states["eurosat"] == (3, 27000, "subset")
    assert states["chestx"] == (3, 25848, "subset")
    assert states["isic"] == (0, 10015, "refused")
    assert states["cub200"] == (0, 11788, "missing")
    assert states["toy_scan"] == (320, 320, "generated")
    assert rows["eurosat"]["found"] == str(eurosat)
    assert rows["isic"]["get"] == "fsbench data verify isic"
    assert rows["eurosat"]["get"] == "fsbench data download eurosat"


def test_ls_has_a_line_per_data_set(
    capsys: pytest.CaptureFixture[str],
    eurosat: Path,
    monkeypatch: pytest.MonkeyPatch,
    change_card: Callable[..., None],
) -> None:
    change_card("eurosat", classes=("Forest", "River"), images_per_class=(1, 2))
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = call(capsys, "ls", "--data", eurosat.parent)
    lines = [line.split() for line in out.splitlines()]
    (line,) = [line for line in lines if line[:1] == ["eurosat"]]
    assert " ".join(line) == "eurosat 2 3 of 3 complete fsbench data download eurosat"
    named = [line[0] for line in lines if line and line[0] in {*TARGETS.names(), *SOURCES.names()}]
    assert sorted(named) == sorted({*TARGETS.names(), *SOURCES.names()})
    _, out, _ = call(capsys, "ls", "plant-disease")
    assert "0 of 43,456" in out


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("plant-disease", ["Potato___healthy 122", "saroz014/plant-disease", "data.mendeley.com"]),
        ("isic", ["NV 6705", "CC BY-NC 4.0", "HAM10000_metadata.csv", "amazonaws.com/2018/"]),
        ("flowers102", ["train 1020, test 6149", "102flowers.tgz", "52808999861908f626f3c1f4"]),
        ("toy_tiles", ["Apache-2.0", "generated"]),
    ],
)
def test_show_states_all_facts_and_addresses(
    capsys: pytest.CaptureFixture[str], name: str, texts: list[str]
) -> None:
    code, out, _ = call(capsys, "show", name)
    joined = re.sub(r"\s+", "", out)
    assert code == 0
    for text in texts:
        assert re.sub(r"\s+", "", text) in joined
    code, out, _ = call(capsys, "show", name, "--json")
    assert json.loads(out)["license"]


def test_verify_accepts_official_data(
    capsys: pytest.CaptureFixture[str],
    eurosat: Path,
    monkeypatch: pytest.MonkeyPatch,
    change_card: Callable[..., None],
) -> None:
    change_card("eurosat", classes=("Forest", "River"), images_per_class=(1, 2))
    code, out, err = call(capsys, "verify", "eurosat", "--data", eurosat.parent)
    assert code == 0
    assert "River" in out
    assert "every image opens, the counts are official" in err


def test_verify_toy(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "verify", "toy-tiles", "--json")
    assert code == 0
    assert sum(row["images"] for row in json.loads(out)) == 320
    assert "every image opens" in err


def test_verify_states_other_counts(capsys: pytest.CaptureFixture[str], eurosat: Path) -> None:
    code, _, err = call(capsys, "verify", "eurosat", "--data", f"eurosat={eurosat}")
    assert code == 3
    assert "Forest 1 of 3000" in err
    assert "subset" in err
    assert "fsbench data download eurosat" in err


def test_verify_names_each_corrupt_file(capsys: pytest.CaptureFixture[str], eurosat: Path) -> None:
    for name in ("River_1.jpg", "River_2.jpg"):
        path = eurosat / "2750" / "River" / name
        path.write_bytes(path.read_bytes()[:100])
    code, _, err = call(capsys, "verify", "eurosat", "--data", eurosat.parent)
    assert code == 3
    assert "2 of 3 images cannot be read" in err
    assert str(eurosat / "2750" / "River" / "River_1.jpg") in err
    assert "River_2.jpg" in err


def test_verify_a_source_of_ones_own(capsys: pytest.CaptureFixture[str], eurosat: Path) -> None:
    code, out, err = call(capsys, "verify", f"folder:{eurosat / '2750'}")
    assert code == 0
    assert "3 images" in out
    assert "every image opens, custom images, without official counts" in err
    assert "counts are official" not in err
    _, out, _ = call(capsys, "verify", f"folder:{eurosat / '2750'}", "--json")
    assert [row["official"] for row in json.loads(out)] == [None, None]


@pytest.fixture
def twins(tmp_path: Path, draw: Callable[..., Path]) -> Path:
    """Two classes of 14 images; the first 12 files of `b` are those of `a`."""
    for name in "ab":
        for n in range(14):
            draw(tmp_path / "own" / name / f"{name}{n}.png")
    for n in range(12):
        shutil.copy(tmp_path / "own" / "a" / f"a{n}.png", tmp_path / "own" / "b" / f"b{n}.png")
    return tmp_path / "own"


def test_verify_lists_equal_images_of_two_classes(
    capsys: pytest.CaptureFixture[str], twins: Path
) -> None:
    code, _, err = call(capsys, "verify", f"folder:{twins}")
    assert code == 0
    assert "24 images have the same content as an image of another class: a/a0.png = b/b0" in err
    assert err.count(" = ") == 10
    shutil.copy(twins / "a" / "a13.png", twins / "a" / "again.png")
    _, _, err = call(capsys, "verify", f"folder:{twins}")
    assert "24 images have the same content" in err, "equal images of one class are not listed"


def test_verify_lists_equal_images_of_official_copies_and_tables(
    capsys: pytest.CaptureFixture[str], eurosat: Path, tmp_path: Path, draw: Callable[..., Path]
) -> None:
    tree = eurosat / "2750"
    shutil.copy(tree / "Forest" / "Forest_9.jpg", tree / "River" / "River_7.jpg")
    _, _, err = call(capsys, "verify", "eurosat", "--data", eurosat.parent)
    assert "Forest/Forest_9.jpg = River/River_7.jpg" in err
    for name in ("a/1.png", "b/1.png", "c/2.png"):
        draw(tmp_path / "hub" / "test" / name)
    _, _, err = call(capsys, "verify", f"hf-hub:{tmp_path / 'hub'}?split=test")
    assert "2 images have the same content as an image of another class: a/" in err


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
def test_verify_warns_of_unused_bits(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, top: int, query: str, warning: str | None
) -> None:
    for n, name in enumerate(("a/1.png", "a/2.tif", "b/3.png", "b/4.pgm")):
        path = tmp_path / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.array([[0, top - n], [top, 7]], dtype=np.uint16)).save(path)
    code, _, err = call(capsys, "verify", f"folder:{tmp_path / 'x'}{query}")
    assert code == 0, err
    assert ("16-bit images use less than an eighth" in err) == (warning is not None)
    assert re.search((warning or "").replace("?bits", r"\?bits"), err)


def test_verify_names_pointers_and_what_to_run(
    capsys: pytest.CaptureFixture[str], eurosat: Path
) -> None:
    river = eurosat / "2750" / "River"
    (river / "River_1.jpg").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    (river / "River_2.jpg").unlink()
    (river / "River_2.jpg").symlink_to("../../.git/annex/objects/aa/bb/MD5E-s1--0.jpg")
    code, _, err = call(capsys, "verify", "eurosat", "--data", eurosat.parent)
    assert code == 3
    assert "run `git lfs pull`" in err
    assert "run `git annex get`" in err


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["verify", "isic"], 3, ["no --data was given", "GroundTruth.csv", "--data isic=DIR"]),
        (["verify", "eurosatt"], 2, ["did you mean 'eurosat'"]),
        (["verify", "isic", "--data", "/nowhere"], 3, ["/nowhere is not a folder"]),
        (["download", "chestx"], 3, ["kaggle datasets download nih-chest-xrays/data"]),
        (["download", "toy_scan"], 3, ["nothing to fetch"]),
        (["download", "isic", "--data", "new"], 3, ["_Input.zip", "GroundTruth.zip"]),
        (["download", "mit67", "--data", "new"], 3, ["TrainImages.txt", "indoorCVPR_09.tar"]),
        (["download", "eurosat"], 2, ["no folder for eurosat", "--data ROOT"]),
    ],
)
def test_errors_name_the_file_and_the_fix(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, texts: list[str]
) -> None:
    exit_code, _, err = call(capsys, *arguments)
    assert exit_code == code
    assert "fix: " in err
    for text in texts:
        assert text in err
