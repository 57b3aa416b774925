"""References: the scheme first, then the file, else the nearest name and exit code 2."""

from pathlib import Path

import pytest
import torch

from fsbench import backbones
from fsbench.backbones.checkpoint import FileReference
from fsbench.backbones.loading import parse_reference
from fsbench.cli.main import run
from fsbench.core.errors import UsageError, nearest_names


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


@pytest.mark.parametrize("ref", ["", "@resnet18", "::model", "::model@resnet18"])
def test_nothing_is_not_the_folder_at_hand(ref: str) -> None:
    assert FileReference.parse(ref) is None
    with pytest.raises(UsageError, match="no backbone"):
        parse_reference(ref)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{file}", ("", "")),
        ("{file}::ema", ("ema", "")),
        ("{file}@resnet18", ("", "resnet18")),
        ("{file}::model.ema@timm/vit", ("model.ema", "timm/vit")),
        ("{file}@timm/vit::model.ema", ("model.ema", "timm/vit")),
        ("{file}@py:a.b:make?depth=20&wide=true", ("", "py:a.b:make?depth=20&wide=true")),
    ],
)
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


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("SEAL", ("seal", "swr", "l2"), ["seal"]),
        ("RESNET18", ("timm/resnet18", "timm/resnet34"), ["timm/resnet18"]),
        ("cub", ("cub200", "cropdisease"), ["cub200"]),
        ("resnet81", ("vgg16", "resnet18"), ["resnet18"]),
        ("iris", ("isic", "pets"), []),
        ("swin", ("scnn", "l2"), []),
        ("ab", ("abc",), ["abc"]),
        ("qqqq", ("seal",), []),
    ],
)
def test_names_that_the_user_may_have_meant(
    name: str, names: tuple[str, ...], expected: list[str]
) -> None:
    assert nearest_names(name, names) == expected


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("resnet18", "timm/resnet18"),
        ("timm/resnet81", "resnet18"),
        ("timm/resnet18.a1_in2k", "resnet18.a1_in1k"),
        ("torchvision/RESNET18", "resnet18"),
        ("fsbench/toy_resnet", "--random-init"),
        ("fsbench/toy-resnet", "toy_resnet"),
        ("fsbench/toy_resnet@0", "width '0' of fsbench/toy_resnet is no integer from 1"),
        ("fsbench/toy_resnet@a", "write fsbench/toy_resnet@32"),
        ("run:nowhere", "fsbench pretrain"),
        ("py:no_such_module:make", "importable"),
        ("py:support.nets:cifar_resnte", "cifar_resnet"),
        ("hf-hub:name", "ORG/NAME"),
        ("hf-hub:org/", "ORG/NAME"),
        ("hf-hub:a/b/c", "ORG/NAME"),
        ("{file}", "--arch"),
        ("{file}@resnet81", "resnet18"),
        ("{file}@fsbench/toy-resnet", "toy_resnet"),
        ("{file}@py:support.nets:nothing", "known"),
    ],
)
def test_a_bad_reference_is_found_before_data(
    ref: str, hint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The data set is not there either, which would be exit code 3."""
    torch.save({}, tmp_path / "a.pth")
    good = ("-m", "timm/resnet18")
    bad = ("-m", ref.format(file=tmp_path / "a.pth"))
    with pytest.raises(SystemExit) as stop:
        run(["episodic", *good, *bad, "-t", "eurosat:5w1s", "-o", str(tmp_path / "out")])
    shown = capfd.readouterr().err
    assert stop.value.code == 2, shown
    assert hint in shown
    assert "eurosat" not in shown
