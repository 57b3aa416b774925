"""folder:DIR as a target and as a source."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from torchvision.datasets import ImageFolder

from fsbench.core.errors import DataError, UsageError
from fsbench.data import DataRoots, TargetDataset, load_source, load_target
from fsbench.data.base import fingerprint
from fsbench.data.files import IMAGE_SUFFIXES
from fsbench.data.image_folder import list_tree_images

Draw = Callable[..., Path]


def load_folder(folder: Path) -> TargetDataset:
    return load_target(f"folder:{folder}", DataRoots())


def test_a_target_holds_what_imagefolder_holds(tmp_path: Path, draw: Draw) -> None:
    folder = tmp_path / "my birds"
    for name in ("b/2.PNG", "b/1.jpeg", "a/deep/er/3.png", "a/x.tiff", "C/4.bmp"):
        draw(folder / name)
    (folder / "a" / "notes.txt").write_text("not an image")
    (folder / "readme.md").write_text("not a class")
    dataset = load_folder(folder)
    reference = ImageFolder(str(folder))
    expected = sorted((label, str(Path(p).relative_to(folder))) for p, label in reference.samples)
    assert list(zip(dataset.labels.tolist(), dataset.paths, strict=True)) == expected
    assert dataset.class_names == tuple(reference.classes)
    assert dataset.name == dataset.facts.name == "folder-my-birds"
    assert dataset.flags == {"custom"}
    assert dataset.canonical_ids[1] == "a/deep/er/3.png"


def test_suffixes_are_those_of_torchvision() -> None:
    from torchvision.datasets.folder import IMG_EXTENSIONS

    assert set(IMAGE_SUFFIXES) == set(IMG_EXTENSIONS)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "is not a folder"),
        (["a/1.png"], "has 1 class folders"),
        (["a/1.png", "b/1.txt"], "without an image: b"),
        (["train/a/1.png", "val/a/1.png"], r"look like splits(.|\n)*folder:.*train"),
    ],
)
def test_other_folders_are_refused(
    tmp_path: Path, draw: Draw, files: list[str], message: str
) -> None:
    for name in files:
        path = tmp_path / "x" / name
        if name.endswith(".png"):
            draw(path)
        else:
            path.parent.mkdir(parents=True)
            path.touch()
    with pytest.raises(DataError, match=message):
        load_folder(tmp_path / "x")


def test_startup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no pool labeled_80"):
        load_target(f"folder:{tmp_path}", DataRoots(), "labeled_80")


@pytest.mark.parametrize("val", ["val", "valid", "test"])
def test_a_source_has_train_and_val(tmp_path: Path, draw: Draw, val: str) -> None:
    for name in (
        "train/b/1.png",
        "train/a/2.png",
        "train/a/3.png",
        f"{val}/a/4.png",
        f"{val}/b/5.png",
    ):
        draw(tmp_path / "src" / name, side=12)
    source = load_source(f"folder:{tmp_path / 'src'}", DataRoots(), tmp_path / "c", 8)
    assert source.train.images.shape == (3, 3, 8, 8)
    assert source.train.labels.tolist() == [0, 0, 1]
    assert source.val.labels.tolist() == [0, 1]
    assert source.facts.classes == ("a", "b")
    assert source.facts.images_per_class == (2, 1)
    assert (source.n_classes, source.flags, source.name) == (2, {"custom"}, "folder-src")


def test_a_source_needs_the_same_classes_in_both(tmp_path: Path, draw: Draw) -> None:
    for name in ("train/a/1.png", "train/b/2.png", "val/a/3.png", "val/c/4.png"):
        draw(tmp_path / name)
    with pytest.raises(DataError, match="other classes \\(b, c\\)"):
        load_source(f"folder:{tmp_path}", DataRoots(), tmp_path / "cache", 8)
    with pytest.raises(DataError, match="train/<class>"):
        load_source(f"folder:{tmp_path / 'train'}", DataRoots(), tmp_path / "cache", 8)


def refusal(*command: str) -> str:
    """Run a command that exits with 3; return what it writes to stderr."""
    ended = subprocess.run(
        [sys.executable, "-m", "fsbench", *command], capture_output=True, text=True, timeout=20
    )
    assert ended.returncode == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_a_pipe_among_the_images_is_named_and_not_waited_for(tmp_path: Path, draw: Draw) -> None:
    folder = tmp_path / "x"
    for name in ("a/1.png", "b/2.png"):
        draw(folder / name)
    os.mkfifo(folder / "a" / "pipe.png")
    shown = refusal("data", "verify", f"folder:{folder}")
    assert f"{folder / 'a' / 'pipe.png'}: it is not a regular file" in shown
    with pytest.raises(DataError, match=r"pipe\.png: it is not a regular file"):
        fingerprint(load_folder(folder), tmp_path / "cache")
    with pytest.raises(DataError, match=r"pipe\.png: it is not a regular file"):
        list_tree_images(folder, ["a", "b"])


@pytest.mark.parametrize(
    ("link", "target"), [("a/again", ".."), ("a/deep/again", "../.."), ("c", "."), ("a/x", "../b")]
)
def test_a_link_to_a_folder_that_contains_it_is_named(
    tmp_path: Path, draw: Draw, link: str, target: str
) -> None:
    for name in ("a/deep/1.png", "b/2.png"):
        draw(tmp_path / name)
    back = tmp_path / "b" / "back"
    back.symlink_to(tmp_path / "a")
    assert load_folder(tmp_path).class_counts == {0: 1, 1: 2}, (
        "a link that makes no loop is followed"
    )
    if target != "../b":
        back.unlink()
    (tmp_path / link).symlink_to(target)
    with pytest.raises(DataError, match=r"/\w+ links to .*, which contains it"):
        load_folder(tmp_path)


@pytest.mark.parametrize("name", [b"a/caf\xe9.png", b"caf\xe9/1.png"])
def test_a_name_that_is_not_utf8_is_named(tmp_path: Path, draw: Draw, name: bytes) -> None:
    for good in ("a/1.png", "b/2.png"):
        draw(tmp_path / "x" / good)
    bad = Path(os.fsdecode(os.fsencode(tmp_path / "x") + b"/" + name))
    try:
        bad.parent.mkdir(exist_ok=True)
        shutil.copy(tmp_path / "x" / "a" / "1.png", bad)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    shown = refusal("data", "verify", f"folder:{tmp_path / 'x'}")
    assert "caf\\xe9" in shown
    assert "is not UTF-8" in shown
    assert "rename it" in shown
