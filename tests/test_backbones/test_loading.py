"""References: the scheme first, then the file, else the nearest name and exit code 2."""

from pathlib import Path

import pytest
from support.cases import read_cases

from fsbench import backbones
from fsbench.backbones.checkpoint import FileReference
from fsbench.backbones.loading import parse_reference
from fsbench.core.errors import UsageError, nearest_names

CASES = read_cases("backbones")


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("hf-hub:timm/resnet18@main", ("hf_hub", "timm/resnet18@main")),
        ("py:pkg.mod:make", ("py", "pkg.mod:make")),
        ("timm/resnet18", ("timm", "resnet18")),
        ("x.pth", ("file", "x.pth")),
        ("x.pth::model", ("file", "x.pth::model")),
    ],
)
def test_schemes_beat_files(
    ref: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "timm").mkdir()
    for name in ("x.pth", "timm/resnet18"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert parse_reference(ref) == expected


@pytest.mark.parametrize("ref", ["", "@resnet18", "::model", "::model@resnet18"])
def test_nothing_is_not_the_folder_at_hand(ref: str) -> None:
    assert FileReference.parse(ref) is None
    with pytest.raises(UsageError, match="no backbone"):
        parse_reference(ref)


@pytest.mark.parametrize(("ref", "hint"), CASES["nearest"])
def test_the_nearest_name(ref: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "model.pth").touch()
    with pytest.raises(UsageError, match="no backbone") as caught:
        backbones.load_backbone(ref.format(folder=tmp_path))
    assert f"did you mean {hint.format(folder=tmp_path)}" in caught.value.fix
    assert "timm/NAME" in caught.value.fix


@pytest.mark.parametrize(("text", "expected"), CASES["parts"])
def test_parts_and_architectures_of_files(
    text: str, expected: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "user@host" / "last@3.pth.tar"
    file.parent.mkdir()
    file.touch()
    reference = FileReference.parse(text.format(file=file))
    assert reference is not None
    assert (reference.path, reference.part, reference.arch) == (str(file), *expected)
    assert FileReference.parse(str(reference)) == reference
    assert FileReference.parse(text.format(file=tmp_path / "none.pth")) is None


@pytest.mark.parametrize(("name", "names", "expected"), CASES["meant"])
def test_names_that_the_user_may_have_meant(name: str, names: str, expected: str) -> None:
    assert nearest_names(name, names.split()) == expected.split()
