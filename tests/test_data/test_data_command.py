"""`fsbench data` and the errors of the data room, through the command line."""

import json
from pathlib import Path

import pytest

from fsbench.cli.main import run
from fsbench.data.targets import eurosat as eurosat_module


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        run(["data", *map(str, arguments)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return int(caught.value.code or 0), shown.out, shown.err


def test_ls_shows_counts_licence_citation_and_where_it_lies(
    capsys: pytest.CaptureFixture[str], eurosat: Path
) -> None:
    code, out, _ = call(capsys, "ls", "--data", eurosat.parent, "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["isic"]["images_per_class"]["NV"] == 6705
    assert rows["isic"]["license"] == "CC BY-NC 4.0"
    assert "HAM10000" in rows["isic"]["citation"]
    assert rows["eurosat"]["found"] == str(eurosat)
    assert rows["isic"]["found"] == ""
    assert rows["toy_scan"]["found"] == "generated"


def test_ls_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "ls")
    assert "43456" in out
    assert "CC BY-NC 4.0" in out
    _, out, _ = call(capsys, "ls", "plant-disease")
    assert "Potato___healthy 122" in out
    assert "saroz014/plant-disease" in out


def test_verify_accepts_official_data(
    capsys: pytest.CaptureFixture[str], eurosat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"classes": ("Forest", "River"), "images_per_class": (1, 2)}
    monkeypatch.setattr(eurosat_module, "FACTS", eurosat_module.FACTS.model_copy(update=changes))
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


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["verify", "isic"], 3, ["no --data was given", "GroundTruth.csv", "--data isic=DIR"]),
        (["verify", "eurosatt"], 2, ["did you mean 'eurosat'"]),
        (["verify", "isic", "--data", "/nowhere"], 3, ["/nowhere is not a folder"]),
        (["download", "chestx"], 3, ["kaggle datasets download nih-chest-xrays/data"]),
        (["download", "toy_scan"], 3, ["nothing to fetch"]),
        (["download", "isic", "--data", "new"], 3, ["_Input.zip", "GroundTruth.zip", "--sha256"]),
        (["download", "mit67", "--data", "new"], 2, ["TrainImages.txt", "--sha256"]),
        (["download", "cdfsl", "--sha256", "0"], 2, ["for the group cdfsl"]),
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
