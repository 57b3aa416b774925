"""Bad input of every kind on the command line: the exit code, the file by name, no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fuzz.poison import Poison
from support import fakes
from support.cli import CommandLine
from support.images import draw_images, join_names

MODEL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")
EPISODIC = ("episodic", *MODEL, "--episodes", 2)
LAUGHS = "".join(f"{c}: &{c} [*{b}, *{b}]\n" for b, c in zip("abcd", "bcde", strict=True))
CONFIGS = {
    "laughs.yaml": f"a: &a [x]\n{LAUGHS}",
    "twice.yaml": "seed: 1\nseed: 2\n",
    "dashes.yaml": "seed: 1\n--seed: 2\n",
    "nan.json": '{"seed": NaN}',
    "number.toml": "episodes = 2.7",
    "code.toml": 'model = "py:os:getcwd"',
    "deep.yaml": "[" * 5000,
    "self.yaml": "config: self.yaml",
}
WORDS = [
    (["-t", "eurosat:5w1s/linear@ibm@ibm"], 2),
    (["-t", "folder:~nobody/x"], 3),
    (["-t", "eurosat", "--data", "~nobody"], 3),
    (["-t", "eurosat", "--shots", "9" * 5000], 2),
    (["-t", "eurosat", "--shard", f"0/{'9' * 5000}"], 2),
    (["-t", "toy_scan:2w1s", "--input-size", "1"], 2),
]


def make_images(folder: Path) -> tuple[object, ...]:
    draw_images(folder / "own", *join_names("a b", [f"{n:02}.png" for n in range(16)]), side=32)
    (folder / "own" / "b" / "07.png").write_bytes(b"")
    return (*EPISODIC, "-t", f"folder:{folder / 'own'}:2w1s")


def make_checkpoint(folder: Path) -> tuple[object, ...]:
    tree = {"model": {"w": torch.ones(1)}, "x": Poison("system", folder / "canary")}
    torch.save(tree, folder / "a.pth")
    return ("episodic", "-m", folder / "a.pth", "--arch", MODEL[1], "-t", "toy_scan:2w1s")


def damage_result(folder: Path) -> tuple[object, ...]:
    fakes.write(folder / "r")
    next((folder / "r").rglob("outcomes-*")).write_bytes(b"{}")
    return ("results", "merge", folder / "r", folder / "r")


INPUTS: dict[str, tuple[Callable[[Path], tuple[object, ...]], int]] = {
    "07.png": (make_images, 3),
    "a.pth": (make_checkpoint, 4),
    "/r/": (damage_result, 5),
}
"""What the message names -> what makes the input and the command, and the exit code."""


@pytest.fixture
def refuse(cli: CommandLine, tmp_path: Path, canary: Path) -> Callable[..., str]:
    """Fail unless a command ends with this code and a fix, without results; return its messages."""

    def refuse(*arguments: object, code: int) -> str:
        shown = cli(*arguments, "-o", tmp_path / "out", code=code).err
        assert "fix:" in shown
        assert not list(tmp_path.glob("out/**/*.json"))
        return shown

    return refuse


@pytest.mark.parametrize(("arguments", "code"), WORDS, ids=str)
def test_words(refuse: Callable[..., str], arguments: list[object], code: int) -> None:
    refuse(*EPISODIC, *arguments, code=code)


@pytest.mark.parametrize("name", CONFIGS)
def test_configs(refuse: Callable[..., str], name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(CONFIGS[name])
    assert name in refuse("episodic", "-m", "x", "-C", tmp_path / name, code=2)


@pytest.mark.parametrize("named", INPUTS)
def test_files(refuse: Callable[..., str], named: str, tmp_path: Path) -> None:
    make, code = INPUTS[named]
    assert named in refuse(*make(tmp_path), code=code)
