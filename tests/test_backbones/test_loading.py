"""References: the scheme first, then the file, else the nearest name and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsbench import backbones
from fsbench.backbones.loading import parse_reference
from fsbench.core.errors import UsageError


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("timm/resnet18.a1_in1k", ("timm", "resnet18.a1_in1k")),
        ("hf-hub:timm/resnet18@main", ("hf_hub", "timm/resnet18@main")),
        ("torchvision/resnet50", ("torchvision", "resnet50")),
        ("fsbench/toy_resnet", ("fsbench", "toy_resnet")),
        ("run:runs/toy", ("run", "runs/toy")),
        ("py:pkg.mod:make", ("py", "pkg.mod:make")),
    ],
)
def test_schemes(ref: str, expected: tuple[str, str]) -> None:
    assert parse_reference(ref) == expected


def test_files_with_and_without_a_part(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    path.touch()
    assert parse_reference(str(path)) == ("file", str(path))
    assert parse_reference(f"{path}::model") == ("file", f"{path}::model")


def test_a_scheme_beats_a_file_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "timm").mkdir()
    (tmp_path / "timm" / "resnet18").touch()
    monkeypatch.chdir(tmp_path)
    assert parse_reference("timm/resnet18")[0] == "timm"


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("resnet18", "'timm/resnet18'"),
        ("toy_resnet", "'fsbench/toy_resnet'"),
        ("tmim/resnet18", "'timm/resnet18'"),
        ("torchvison/resnet50", "'torchvision/resnet50'"),
        ("hf_hub:org/name", "'hf-hub:org/name'"),
        ("runs:runs/x", "'run:runs/x'"),
    ],
)
def test_the_nearest_name(ref: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no backbone") as caught:
        backbones.load_backbone(ref)
    assert f"did you mean {hint}" in caught.value.fix
    assert "timm/NAME" in caught.value.fix


def test_a_misspelt_file_and_a_run_folder_without_its_scheme(
    tmp_path: Path, run_folder: Path
) -> None:
    (tmp_path / "model.pth").touch()
    with pytest.raises(UsageError) as caught:
        backbones.load_backbone(str(tmp_path / "modle.pth"))
    assert str(tmp_path / "model.pth") in caught.value.fix
    with pytest.raises(UsageError) as caught:
        backbones.load_backbone(str(run_folder))
    assert f"run:{run_folder}" in caught.value.fix


def test_arch_belongs_to_files() -> None:
    with pytest.raises(UsageError, match="--arch is for checkpoint files"):
        backbones.load_backbone("timm/test_resnet", arch="resnet18", random_init=0)
