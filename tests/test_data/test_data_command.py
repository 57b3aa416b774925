"""`fsbench data ls|show|verify` and the errors of data sets, through the command line."""

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

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `fsbench data`; return the exit code, the output and the messages."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.call("data", *map(str, arguments))
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, shown.out, shown.err

    return run


def test_ls_counts_the_images_that_are_there(
    run: Call, eurosat: Path, chestx: Path, isic: Path
) -> None:
    for table in isic.glob("*/*.csv"):
        table.unlink()
    code, out, _ = run("ls", "--data", eurosat.parent, "--json")
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


def test_ls_has_a_line_per_data_set_and_verify_accepts_official_data(
    run: Call,
    eurosat: Path,
    monkeypatch: pytest.MonkeyPatch,
    change_card: Callable[..., None],
) -> None:
    change_card("eurosat", classes=("Forest", "River"), images_per_class=(1, 2))
    monkeypatch.setenv("COLUMNS", "100")
    _, out, _ = run("ls", "--data", eurosat.parent)
    lines = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line.split()}
    assert lines["eurosat"] == "eurosat 2 3 of 3 complete fsbench data download eurosat"
    assert {*TARGETS.names(), *SOURCES.names()} <= lines.keys()
    assert "0 of 43,456" in run("ls", "plant-disease")[1]
    code, out, err = run("verify", "eurosat", "--data", eurosat.parent)
    assert (code, "River" in out) == (0, True)
    assert "every image opens, the counts are official" in err


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("plant-disease", ["Potato___healthy=122", "saroz014/plant-disease", "data.mendeley.com"]),
        ("isic", ["NV=6705", "CC BY-NC 4.0", "HAM10000_metadata.csv", "amazonaws.com/2018/"]),
        ("flowers102", ["train=1020, test=6149", "102flowers.tgz", "52808999861908f626f3c1f4"]),
        ("toy_tiles", ["Apache-2.0", "generated"]),
    ],
)
def test_show_states_all_facts_and_addresses(run: Call, name: str, texts: list[str]) -> None:
    code, out, _ = run("show", name)
    joined = re.sub(r"\s+", "", out)
    assert code == 0
    assert all(re.sub(r"\s+", "", text) in joined for text in texts)
    assert json.loads(run("show", name, "--json")[1])["license"]


def test_verify_states_other_counts_and_each_corrupt_file(run: Call, eurosat: Path) -> None:
    code, _, err = run("verify", "eurosat", "--data", f"eurosat={eurosat}")
    assert code == 3
    assert all(t in err for t in ("Forest 1 of 3000", "subset", "fsbench data download eurosat"))
    river = eurosat / "2750" / "River"
    (river / "River_0.jpg").write_bytes((river / "River_1.jpg").read_bytes()[:100])
    (river / "River_1.jpg").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    (river / "River_2.jpg").unlink()
    (river / "River_2.jpg").symlink_to("../../.git/annex/objects/aa/bb/MD5E-s1--0.jpg")
    code, _, err = run("verify", "eurosat", "--data", eurosat.parent)
    assert (code, "3 of 4 images cannot be read" in err) == (3, True)
    assert str(river / "River_0.jpg") in err
    assert "run `git lfs pull`" in err
    assert "run `git annex get`" in err


def test_verify_generated_images_and_those_of_ones_own(run: Call, eurosat: Path) -> None:
    code, out, err = run("verify", "toy-tiles", "--json")
    assert (code, sum(row["images"] for row in json.loads(out))) == (0, 320)
    assert "every image opens" in err
    code, out, err = run("verify", f"folder:{eurosat / '2750'}")
    assert (code, "3 images" in out) == (0, True)
    assert "every image opens, custom images, without official counts" in err
    assert "counts are official" not in err
    _, out, _ = run("verify", f"folder:{eurosat / '2750'}", "--json")
    assert [row["official"] for row in json.loads(out)] == [None, None]


def test_verify_lists_equal_images_of_two_classes(
    run: Call, eurosat: Path, tmp_path: Path, draw: Callable[..., Path]
) -> None:
    for n in range(14):
        first, second = (draw(tmp_path / "x" / name / f"{name}{n}.png") for name in "ab")
        if n < 12:
            shutil.copy(first, second)
    shutil.copy(first, first.with_name("again.png"))
    code, _, err = run("verify", f"folder:{tmp_path / 'x'}")
    assert code == 0
    assert "24 images have the same content as an image of another class: a/a0.png = b/b0" in err
    assert err.count(" = ") == 10, "equal images of one class are not listed"
    tree = eurosat / "2750"
    shutil.copy(tree / "Forest" / "Forest_9.jpg", tree / "River" / "River_7.jpg")
    _, _, err = run("verify", "eurosat", "--data", eurosat.parent)
    assert "Forest/Forest_9.jpg = River/River_7.jpg" in err
    for name in ("a/1.png", "b/1.png", "c/2.png"):
        draw(tmp_path / "hub" / "test" / name)
    _, _, err = run("verify", f"hf-hub:{tmp_path / 'hub'}?split=test")
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
    run: Call, tmp_path: Path, top: int, query: str, warning: str | None
) -> None:
    for n, name in enumerate(("a/1.png", "a/2.tif", "b/3.png", "b/4.pgm")):
        path = tmp_path / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.array([[0, top - n], [top, 7]], dtype=np.uint16)).save(path)
    code, _, err = run("verify", f"folder:{tmp_path / 'x'}{query}")
    assert code == 0, err
    assert ("16-bit images use less than an eighth" in err) == (warning is not None)
    assert re.search((warning or "").replace("?bits", r"\?bits"), err)


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        ("verify isic", 3, ["no --data was given", "GroundTruth.csv", "--data isic=DIR"]),
        ("verify eurosatt", 2, ["did you mean 'eurosat'"]),
        ("verify isic --data /nowhere", 3, ["/nowhere is not a folder"]),
        ("download toy_scan", 3, ["nothing to fetch"]),
        ("download mit67 --data new", 3, ["TrainImages.txt", "indoorCVPR_09.tar"]),
        ("download eurosat", 2, ["no folder for eurosat", "--data ROOT"]),
    ],
)
def test_errors_name_the_file_and_the_fix(
    run: Call, arguments: str, code: int, texts: list[str]
) -> None:
    exit_code, _, err = run(*arguments.split())
    assert exit_code == code
    assert all(text in err for text in ["fix: ", *texts])
