"""Bad data on the way into an evaluation: the file is named, exit code 3, nothing is kept."""

from pathlib import Path

import pytest
from PIL import Image

from fsbench.cli.main import run

CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")
CELL = ("--shots", "1", "--way", "2", "--episodes", "2")


def refused(capfd: pytest.CaptureFixture[str], out: Path, *arguments: str) -> str:
    """What the refused command says on stderr."""
    with pytest.raises(SystemExit) as stop:
        run(["episodic", *CONTROL, *CELL, *arguments, "-o", str(out)])
    shown = capfd.readouterr().err
    assert stop.value.code == 3, shown
    assert "fix:" in shown
    assert "Traceback" not in shown
    assert not list(out.rglob("*.json"))
    return shown


def images(folder: Path, classes: str = "ab") -> Path:
    for i, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for n in range(16):
            Image.new("RGB", (32, 32), (100 * i, 10 * n, 0)).save(folder / name / f"{n:02}.png")
    return folder


def test_a_corrupt_image(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = images(tmp_path / "own")
    (folder / "b" / "07.png").write_bytes(b"\x89PNG cut off")
    shown = refused(capfd, tmp_path / "out", "-t", f"folder:{folder}")
    assert "07.png" in shown


def test_a_class_one_image_short(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = images(tmp_path / "own")
    (folder / "b" / "07.png").unlink()
    shown = refused(capfd, tmp_path / "out", "-t", f"folder:{folder}")
    assert "15 images in class 'b'; 1-shot with 15 queries needs 16" in shown
    assert "fix: use --n-query 14 or fewer" in shown


def test_a_label_file_without_its_columns(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chestx" / "images").mkdir(parents=True)
    Image.new("L", (8, 8)).save(tmp_path / "chestx" / "images" / "a.png")
    (tmp_path / "chestx" / "Data_Entry_2017.csv").write_text("file,label\na.png,Mass\n")
    shown = refused(capfd, tmp_path / "out", "-t", "chestx", "--data", str(tmp_path))
    assert "Data_Entry_2017.csv" in shown
    assert "Image Index" in shown


def test_a_pool_without_its_lists(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    images(tmp_path / "eurosat" / "2750").joinpath("a").rename(
        tmp_path / "eurosat" / "2750" / "Forest"
    )
    (tmp_path / "eurosat" / "2750" / "b").rename(tmp_path / "eurosat" / "2750" / "River")
    shown = refused(
        capfd, tmp_path / "out", "-t", "eurosat", "--protocol", "startup", "--data", str(tmp_path)
    )
    assert "EuroSAT_labeled_80.csv" in shown
