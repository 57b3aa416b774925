"""A backbone that is wrong, through the command line: code, file, way out, no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fsbench.backbones.networks import load_architecture
from fsbench.cli.main import run

Fsbench = Callable[..., tuple[int, str]]
ARCH = ("--arch", "fsbench/toy_resnet")

STATED = ("--mean", "imagenet", "--std", "imagenet")


@pytest.fixture
def fsbench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fsbench:
    """Two episodes on a toy target with the given options: (exit code, stderr)."""

    def call(model: str | Path, *options: str) -> tuple[int, str]:
        cell = ["-t", "toy_tiles", "--shots", "1", "--episodes", "2", "--input-size", "32"]
        arguments = ["episodic", "-m", str(model), *cell, "-o", str(tmp_path / "results")]
        with pytest.raises(SystemExit) as caught:
            run([*arguments, "--device", "cpu", *STATED, *options])
        return int(caught.value.code or 0), capsys.readouterr().err

    return call


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    return load_architecture("toy_resnet").build(3).state_dict()


def check_refusal(result: tuple[int, str], code: int, *words: str) -> None:
    assert result[0] == code, result[1]
    assert "Traceback" not in result[1]
    assert "fix: " in result[1]
    for word in words:
        assert word in result[1]


def test_references_that_name_nothing(fsbench: Fsbench, tmp_path: Path) -> None:
    check_refusal(fsbench("tmim/resnet18"), 2, "did you mean 'timm/resnet18'")
    check_refusal(
        fsbench("fsbench/toy_resnte", "--random-init", "0"), 2, "did you mean 'toy_resnet'"
    )
    check_refusal(fsbench("fsbench/toy_resnet"), 2, "--random-init")
    check_refusal(fsbench(tmp_path / "none.pth"), 2, "none.pth", str(tmp_path))
    check_refusal(fsbench(f"run:{tmp_path}"), 2, str(tmp_path), "run.json")
    check_refusal(fsbench("py:no_such_module:f"), 2, "no_such_module")


def test_weights_that_cannot_be_had(fsbench: Fsbench) -> None:
    check_refusal(fsbench("timm/resnet18"), 4, "HF_HOME", "--random-init")


def test_files_that_do_not_fit(
    fsbench: Fsbench, tmp_path: Path, weights: dict[str, torch.Tensor]
) -> None:
    path = tmp_path / "weights.pth"
    torch.save(weights | {"queue": torch.ones(2)}, path)
    check_refusal(fsbench(path), 2, "weights.pth", "--arch")
    check_refusal(
        fsbench(path, *ARCH), 4, "weights.pth", "matched", "dropped head 2", "unexpected 1: queue"
    )
    torch.save({"model": weights, "model_ema": weights}, path)
    check_refusal(fsbench(path, *ARCH), 4, f"{path}::model_ema")
    weights["bn1.bias"][0] = float("nan")
    torch.save(weights, path)
    check_refusal(fsbench(path, *ARCH), 4, "weights.pth", "NaN or infinity", "bn1.bias")


def test_files_of_other_contents(
    fsbench: Fsbench, tmp_path: Path, weights: dict[str, torch.Tensor]
) -> None:
    path = tmp_path / "module.pth"
    torch.save(torch.nn.Linear(2, 2), path)
    check_refusal(fsbench(path, *ARCH), 4, "module.pth", "unexpected 2: weight, bias")
    path.write_bytes(path.read_bytes()[:300])
    check_refusal(fsbench(path, *ARCH), 4, "module.pth is cut")
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    check_refusal(fsbench(path, *ARCH), 4, "module.pth is a Git LFS pointer", "git lfs pull")
    check_refusal(fsbench(tmp_path, *ARCH), 2, "is a folder", "module.pth")
    torch.save(weights, path.with_name("model-00002-of-00002.bin"))
    check_refusal(fsbench(tmp_path / "model-00002-of-00002.bin", *ARCH), 4, "00001-of-00002.bin")


def test_a_dead_network(fsbench: Fsbench, tmp_path: Path, weights: dict[str, torch.Tensor]) -> None:
    path = tmp_path / "dead.pth"
    torch.save({n: torch.zeros_like(t) for n, t in weights.items()}, path)
    check_refusal(fsbench(path, *ARCH), 4, "dead.pth gives the same features")


def test_a_file_that_fits_is_evaluated_and_its_plan_shown(
    fsbench: Fsbench, tmp_path: Path, weights: dict[str, torch.Tensor]
) -> None:
    path = tmp_path / "good.pth"
    torch.save({"state_dict": {f"module.{n}": t for n, t in weights.items()}}, path)
    code, text = fsbench(path, *ARCH)
    assert code == 0, text
    assert "prefix 'module.' stripped" in text
    assert "dropped head 2: fc.weight, fc.bias" in text
    assert "images/s" in text
