"""folder:DIR as a target and as a source."""

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.cases import read_cases
from support.cli import CommandLine
from support.images import draw_images, join_names, write_pixels
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import IMG_EXTENSIONS

from fsbench.core.errors import DataError, UsageError
from fsbench.data import DataRoots, TargetDataset, load_source, load_target
from fsbench.data.content import hash_contents
from fsbench.data.formats import readable_suffixes
from fsbench.data.image_folder import list_folder_source

NFC, NFD = "Caf\u00e9", "Cafe\u0301"
PARTS = join_names("train val", "a b", "1.png")


def load(folder: Path, query: str = "") -> TargetDataset:
    return load_target(f"folder:{folder}{query}", DataRoots())


def test_a_target_holds_what_imagefolder_holds(tmp_path: Path) -> None:
    names = ("b/2.PNG", "b/1.jpeg", "a/deep/er/3.png", "a/x.tiff", "C/4.bmp")
    folder = draw_images(tmp_path / "my birds", *names)
    (folder / "a" / "notes.txt").write_text("not an image")
    (folder / "readme.md").write_text("not a class")
    dataset = load(folder)
    reference = ImageFolder(str(folder))
    expected = sorted((label, str(Path(p).relative_to(folder))) for p, label in reference.samples)
    assert list(zip(dataset.labels.tolist(), dataset.paths, strict=True)) == expected
    assert dataset.class_names == tuple(reference.classes)
    assert dataset.name == dataset.facts.name == "folder-my-birds"
    assert dataset.flags == {"custom"}
    assert dataset.canonical_ids[1] == "a/deep/er/3.png"
    assert {*IMG_EXTENSIONS} <= {*readable_suffixes()}


@pytest.mark.parametrize("suffix", ["GIF", "jfif", "JPE", "avif", "jp2", "j2k", "TIF", "WebP"])
def test_formats_that_pillow_reads_are_read(tmp_path: Path, suffix: str) -> None:
    dataset = load(draw_images(tmp_path, f"a/1.{suffix}", "b/2.png"))
    assert (dataset.paths, dataset.notes) == ((f"a/1.{suffix}", "b/2.png"), ())
    expected = np.asarray(Image.open(tmp_path / "a" / f"1.{suffix}").convert("RGB"))
    assert np.array_equal(np.asarray(dataset.image(0)), expected)


@pytest.mark.parametrize(
    ("files", "note"),
    [
        (["a/n1", "b/n2"], "files left out, not read as images: 2 without a suffix"),
        (["a/1.NPY", "b/deep/2.npy", "b/x.txt"], "2 .npy, 1 .txt"),
        (["above.png"], "files left out, not read as images: 1 .png"),
        (["a/1.svg", "a/1.eps", "b/2.HEIC"], "1 .eps, 1 .svg, 1 .heic"),
    ],
)
def test_files_that_are_left_out_are_counted_by_suffix(
    tmp_path: Path, files: list[str], note: str
) -> None:
    dataset = load(draw_images(tmp_path, "a/1.png", "b/2.png", *files))
    assert len(dataset) == 2
    assert note in dataset.notes[-1]
    source = draw_images(tmp_path / "src", *PARTS, *(f"val/{name}" for name in files))
    assert any(note in line for line in list_folder_source(f"folder:{source}").notes)


@pytest.mark.parametrize(("splits", "classes", "fix"), read_cases("data")["splits"])
def test_folders_that_repeat_their_sub_folders_are_splits(
    tmp_path: Path, splits: str, classes: str, fix: str
) -> None:
    first = tmp_path / splits.split()[0]
    draw_images(tmp_path, *join_names(splits, classes, "1.png"))
    if "z" in classes:
        draw_images(first, "only here/1.png")
    with pytest.raises(DataError, match="look like splits") as caught:
        load(tmp_path)
    assert f"folder:{tmp_path / fix}" in str(caught.value)
    assert {*load(first).class_names} >= {*classes.split()}


@pytest.mark.parametrize(
    "files",
    [
        ["n01/images/1.png", "n02/images/2.png"],  # the training folder of TinyImageNet
        ["cat/2019/1.png", "dog/2020/2.png", "dog/2019/3.png"],
        ["train/1.png", "valley/2.png"],
        ["cat/train/1.png", "cat/test/1.png", "dog/2.png"],
    ],
)
def test_other_sub_folders_are_parts_of_a_class(tmp_path: Path, files: list[str]) -> None:
    assert len(load(draw_images(tmp_path, *files))) == len(files)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "is not a folder"),
        (["a/1.png"], "has 1 class folders"),
        (["a/1.png", "b/1.txt"], "without an image: b"),
        (["data/a/1.png", "data/b/2.png"], r"has 1 class folders(.|\n)*folder:.*/data"),
        (join_names("cat dog", "train test", "1.png"), "repeat the names test, train"),
        ([f"{NFC}/1.png", f"{NFD}/2.png", "b/3.png"], "two spellings of the class"),
        (["cat/1.png", "cat /2.png", "b/3.png"], "two spellings of the class"),
        (["cat/1.png", " cat/2.png", "b/3.png"], "two spellings of the class"),
    ],
)
def test_other_folders_are_refused(tmp_path: Path, files: list[str], message: str) -> None:
    draw_images(tmp_path / "x", *files)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "x")


@pytest.mark.parametrize("name", [NFC, NFD, f"{NFC} "])
def test_ids_do_not_depend_on_how_a_name_is_spelled(tmp_path: Path, name: str) -> None:
    files = (f"{name}/{name.strip()}.png", "Cafz/1.png", "b/2.png")
    dataset = load(draw_images(tmp_path, *files))
    assert dataset.canonical_ids == ("Cafz/1.png", f"{NFC}/{NFC}.png", "b/2.png")
    assert dataset.class_names == ("Cafz", NFC, "b")
    assert dataset.image(1).size == (8, 8)


def test_classes_that_differ_in_case_are_told_apart(tmp_path: Path) -> None:
    dataset = load(draw_images(tmp_path, "A/1.png", "a/2.png", "b/3.png"))
    assert dataset.class_names == ("A", "a", "b")
    draw_images(tmp_path / "s", *join_names("train val", "A a b", "1.png"))
    assert list_folder_source(f"folder:{tmp_path / 's'}").facts.classes == ("A", "a", "b")
    (tmp_path / "s" / "val" / "A").rename(tmp_path / "s" / "val" / "c")
    with pytest.raises(DataError, match=r"val has other classes than .*train: c"):
        list_folder_source(f"folder:{tmp_path / 's'}")
    (tmp_path / "s" / "val" / "c").rename(tmp_path / "c")
    with pytest.raises(DataError, match="val has class folders without an image: A"):
        list_folder_source(f"folder:{tmp_path / 's'}")


@pytest.mark.parametrize(
    ("train", "val", "name"),
    [(NFC, NFD, NFC), ("Cat", "cat", "Cat"), ("cat", "CAT ", "cat"), (NFD, NFC, NFC)],
)
def test_parts_of_a_source_have_the_same_classes_as_people_read_them(
    tmp_path: Path, train: str, val: str, name: str
) -> None:
    names = (f"train/{train}/1.png", "train/b/2.png", f"val/{val}/3.png", "val/b/4.png")
    source = list_folder_source(f"folder:{draw_images(tmp_path, *names)}")
    assert source.facts.classes == tuple(sorted([name, "b"]))
    pixels = {image.label: image.open().getpixel((0, 0)) for image in source.parts["val"]}
    expected = Image.open(tmp_path / "val" / val / "3.png").getpixel((0, 0))
    assert pixels[source.facts.classes.index(name)] == expected


@pytest.mark.parametrize("val", ["val", "valid", "test"])
def test_a_source_has_train_and_val(tmp_path: Path, val: str) -> None:
    train = ("train/b/1.png", "train/a/2.png", "train/a/3.png")
    folder = draw_images(tmp_path / "src", *train, f"{val}/a/4.png", f"{val}/b/5.png")
    source = load_source(f"folder:{folder}", DataRoots(), tmp_path / "c", 8)
    assert source.train.images.shape == (3, 3, 8, 8)
    assert (source.train.labels.tolist(), source.val.labels.tolist()) == ([0, 0, 1], [0, 1])
    assert (source.facts.classes, source.facts.images_per_class) == (("a", "b"), (2, 1))
    assert (source.n_classes, source.flags, source.name) == (2, {"custom"}, "folder-src")
    with pytest.raises(DataError, match="train/<class>"):
        load_source(f"folder:{folder / 'train'}", DataRoots(), tmp_path / "c", 8)


def test_a_pipe_among_the_images_is_named_and_not_waited_for(
    tmp_path: Path, cli: CommandLine
) -> None:
    folder = draw_images(tmp_path / "x", *PARTS) / "train"
    os.mkfifo(folder / "a" / "pipe.png")
    fault = f"{folder / 'a' / 'pipe.png'}: it is not a regular file"
    signal.alarm(60)  # ends the process if it waits for the pipe
    assert fault in cli("data", "verify", f"folder:{folder}", code=3).err
    with pytest.raises(DataError, match=fault):
        hash_contents(load(folder), tmp_path / "cache")
    with pytest.raises(DataError, match=fault):
        list_folder_source(f"folder:{folder.parent}")
    signal.alarm(0)


@pytest.mark.parametrize(
    ("link", "target"), [("a/again", ".."), ("a/deep/again", "../.."), ("c", "."), ("b/x", "../a")]
)
def test_a_link_to_a_folder_that_is_listed_already_is_named(
    tmp_path: Path, link: str, target: str
) -> None:
    draw_images(tmp_path / "x", "a/deep/1.png", "b/2.png")
    draw_images(tmp_path / "elsewhere", "3.png")
    (tmp_path / "x" / "b" / "more").symlink_to(tmp_path / "elsewhere")
    assert load(tmp_path / "x").class_counts == {0: 1, 1: 2}, "the link is followed"
    (tmp_path / "x" / link).symlink_to(target)
    with pytest.raises(DataError, match=r"/\w+ links to .*, whose images would count again"):
        load(tmp_path / "x")


@pytest.mark.parametrize("name", [b"a/caf\xe9.png", b"caf\xe9/1.png"])
def test_a_name_that_is_not_utf8_is_named(tmp_path: Path, name: bytes, cli: CommandLine) -> None:
    folder = draw_images(tmp_path / "x", "a/1.png", "b/2.png")
    bad = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
    try:
        bad.parent.mkdir(exist_ok=True)
        shutil.copy(folder / "a" / "1.png", bad)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    shown = cli("data", "verify", f"folder:{folder}", code=3).err
    assert all(text in shown for text in ("caf\\xe9", "is not UTF-8", "rename it"))


@pytest.mark.parametrize("query", ["?bits=7", "?bits=16", "?bits=x", "?bit=12", "?bits=9&bits=10"])
def test_other_queries_and_pools_are_refused(tmp_path: Path, query: str) -> None:
    folder = draw_images(tmp_path / "what?", "a/1.png", "b/2.png")
    assert len(load(folder)) == 2
    with pytest.raises(UsageError):
        load(folder, query)
    with pytest.raises(UsageError, match="no pool labeled_80"):
        load_target(f"folder:{folder}", DataRoots(), "labeled_80")


def test_a_run_warns_of_what_its_images_hold(tmp_path: Path, cli: CommandLine) -> None:
    folder = tmp_path / "x"
    for n in range(32):
        values = np.random.default_rng(n).integers(0, 4096, (8, 8)).astype(np.uint16)
        write_pixels(folder / "ab"[n % 2] / f"{n}.png", values)
    (folder / "b" / "note").write_text("x")
    network = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
    for query in ("", "?bits=12"):
        shown = cli("episodic", *network, "--limit", "2", "-t", f"folder:{folder}{query}:2w1s").err
        assert "1 without a suffix" in shown
        assert ("use less than an eighth" in shown) == (query == "")
