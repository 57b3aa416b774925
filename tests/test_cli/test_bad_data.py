"""Bad data on the way into an evaluation: the file is named, exit code 3, nothing is kept."""

from pathlib import Path

import pytest
from PIL import Image
from support.cli import call

CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")
CELL = ("--shots", "1", "--way", "2", "--episodes", "2")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A root with EuroSAT in part, and ChestX whose label file has other columns."""
    for i, name in enumerate(("Forest", "River")):
        folder = tmp_path / "data" / "eurosat" / "2750" / name
        folder.mkdir(parents=True)
        for n in range(16):
            Image.new("RGB", (32, 32), (100 * i, 10 * n, 0)).save(folder / f"{n:02}.png")
    (tmp_path / "data" / "chestx" / "images").mkdir(parents=True)
    (tmp_path / "data" / "chestx" / "Data_Entry_2017.csv").write_text("file,label\na.png,Mass\n")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("-t", "eurosat"), ("River", "07.png")),
        (("-t", "chestx"), ("Data_Entry_2017.csv", "Image Index")),
        (("-t", "eurosat", "--protocol", "startup"), ("EuroSAT_labeled_80.csv",)),
    ],
)
def test_bad_data_is_refused_by_name(
    arguments: tuple[str, ...],
    texts: tuple[str, ...],
    data: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (data / "eurosat" / "2750" / "River" / "07.png").write_bytes(b"\x89PNG cut off")
    out = tmp_path / "out"
    code = call("episodic", *CONTROL, *CELL, *arguments, "--data", data, "-o", out)
    shown = capfd.readouterr().err
    assert code == 3, shown
    assert all(text in shown for text in ("fix:", *texts))
    assert "Traceback" not in shown
    assert not list(out.rglob("*.json"))
