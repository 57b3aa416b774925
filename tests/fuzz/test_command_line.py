"""Bad input of every kind on the command line: the exit code, the file by name, no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fuzz.poison import Poison
from fuzz.tables import TABLES
from PIL import Image
from support import fakes
from support.cli import call

MODEL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")
LAUGHS = "a: &a [x]\n" + "".join(
    f"{c}: &{c} [*{b}, *{b}]\n" for b, c in zip("abcd", "bcde", strict=True)
)
CONFIGS = {
    "laughs.yaml": LAUGHS,
    "twice.yaml": "seed: 1\nseed: 2\n",
    "dashes.yaml": "seed: 1\n--seed: 2\n",
    "nan.json": '{"seed": NaN}',
    "number.toml": "episodes = 2.7",
    "code.toml": 'model = "py:os:getcwd"',
    "deep.yaml": "[" * 5000,
    "self.yaml": "config: self.yaml",
}
TASKS = [
    (["-t", "eurosat:5w1s/linear@ibm@ibm"], 2),
    (["-t", "folder:~nobody/x"], 3),
    (["-t", "eurosat", "--data", "~nobody"], 3),
    (["-t", "eurosat", "--shots", "9" * 5000], 2),
    (["-t", "eurosat", "--input-size", "9" * 5000], 2),
    (["-t", "eurosat", "--shard", f"0/{'9' * 5000}"], 2),
    (["-t", "toy_scan:2w1s", "--input-size", "1"], 2),
]


def episodic(*arguments: object) -> list[object]:
    return ["episodic", *MODEL, "--episodes", 2, *arguments]


def make_images(folder: Path) -> list[object]:
    for name in "ab":
        (folder / "own" / name).mkdir(parents=True)
        for n in range(16):
            Image.new("RGB", (32, 32), (n, 0, 0)).save(folder / "own" / name / f"{n:02}.png")
    (folder / "own" / "b" / "07.png").write_bytes(b"")
    return episodic("-t", f"folder:{folder / 'own'}:2w1s")


def make_table(folder: Path) -> list[object]:
    TABLES["chestx"](folder).write("a\n".encode("utf-16"))
    return episodic("-t", "chestx:2w1s", "--data", folder)


def make_checkpoint(folder: Path) -> list[object]:
    tree = {"model": {"w": torch.ones(1)}, "x": Poison("system", folder / "canary")}
    torch.save(tree, folder / "a.pth")
    return ["episodic", "-m", folder / "a.pth", "--arch", MODEL[1], "-t", "toy_scan:2w1s"]


def damage_result(folder: Path) -> list[object]:
    fakes.write(folder / "r")
    next((folder / "r").rglob("outcomes-*")).write_bytes(b"{}")
    return ["results", "merge", folder / "r", folder / "r"]


INPUTS: dict[str, tuple[Callable[[Path], list[object]], int]] = {
    "07.png": (make_images, 3),
    "Data_Entry_2017.csv": (make_table, 3),
    "a.pth": (make_checkpoint, 4),
    "/r/": (damage_result, 5),
}
"""What the message names -> what makes the input and the command, and the exit code."""


def assert_refused(
    arguments: list[object], code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> str:
    """Fail unless the command ends with this code, and a fix in place of a traceback."""
    exit_code = call(*arguments, "-o", tmp_path / "out")
    shown = capfd.readouterr().err
    assert exit_code == code, shown
    assert "fix:" in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").rglob("*.json"))
    return shown


@pytest.mark.parametrize(("arguments", "code"), TASKS, ids=str)
def test_words(
    arguments: list[object], code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert_refused(episodic(*arguments), code, tmp_path, capfd)


@pytest.mark.parametrize("name", CONFIGS)
def test_configs(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(CONFIGS[name])
    command = ["episodic", "-m", "x", "-C", tmp_path / name]
    assert name in assert_refused(command, 2, tmp_path, capfd)


@pytest.mark.parametrize("named", INPUTS)
def test_files(named: str, tmp_path: Path, canary: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make, code = INPUTS[named]
    assert named in assert_refused(make(tmp_path), code, tmp_path, capfd)
