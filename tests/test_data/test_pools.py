"""The pool labeled_80: the user's lists, refused without them, never mixed with the full pool."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.base import hash_lines
from fsbench.data.files import without_suffix
from fsbench.data.targets import chestx as chestx_module


def write_list(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "ChestX_labeled_80.csv").write_text(text)


def test_the_pool_holds_the_listed_images_only(chestx: Path) -> None:
    write_list(chestx.parent / "startup_splits", "img_path\n00000001_000.png\n00009999_000.png\n")
    dataset = load_target("chestx", DataRoots.parse([str(chestx.parent)]), "labeled_80")
    assert dataset.canonical_ids == ("00000001_000",)
    assert dataset.pool == "labeled_80"
    assert dataset.flags == {"subset"}
    assert dataset.notes == ("1 of the 2 images of labeled_80 are present",)


def test_the_official_list_with_all_its_images_is_complete(
    chestx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ["00000001_000", "00000003_000"]
    facts = chestx_module.FACTS
    assert facts.startup is not None
    official = replace(facts.startup, labeled_80_hash=hash_lines(ids))
    monkeypatch.setattr(chestx_module, "FACTS", facts.model_copy(update={"startup": official}))
    write_list(chestx.parent / "mine", "img_path\n00000003_000.png\n00000001_000.png\n")
    roots = DataRoots.parse([str(chestx.parent), f"startup_splits={chestx.parent / 'mine'}"])
    assert load_target("chestx", roots, "labeled_80").flags == set()
    assert load_target("chestx", roots).flags == {"subset"}


def test_lists_beside_the_data_set_are_found(chestx: Path) -> None:
    write_list(chestx.parent / "startup_splits", "img_path\n00000001_000.png\n")
    roots = DataRoots.parse([f"chestx={chestx}"])
    assert len(load_target("chestx", roots, "labeled_80")) == 1


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, r"no folder with ChestX_labeled_80.csv was given"),
        (lambda folder: folder.mkdir(), r"startup_splits lacks ChestX_labeled_80.csv"),
        (
            lambda folder: write_list(folder, "path\nx\n"),
            r"lacks the columns img_path; found: path",
        ),
    ],
)
def test_missing_lists_are_refused_by_name(
    chestx: Path, prepare: Callable[[Path], None], message: str
) -> None:
    prepare(chestx.parent / "startup_splits")
    with pytest.raises(DataError, match=message):
        load_target("chestx", DataRoots.parse([str(chestx.parent)]), "labeled_80")


def test_toy_and_own_data_have_no_pool(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pool labeled_80"):
        load_target("toy_photo", DataRoots(), "labeled_80")


def test_only_image_suffixes_are_cut() -> None:
    assert [without_suffix(n) for n in ("a_0.png", "a.JPG", "a", "v1.2")] == [
        "a_0",
        "a",
        "a",
        "v1.2",
    ]
