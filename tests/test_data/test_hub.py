"""Targets in the layout of the Hugging Face hub: local copies of tables and folders, offline."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value
from datasets import Image as ImageFeature
from PIL import Image
from support.cli import call

from fsbench.core.errors import DataError, FsbenchError, UsageError
from fsbench.core.tasks import user_data_name
from fsbench.data import DataRoots, TargetDataset, describe_dataset, load_source, load_target
from fsbench.data.catalog import all_facts
from fsbench.data.hub import HubReference, HubTable

NAMES = ["oak", "fir", "ash"]
Write = Callable[..., Path]


def encoded(level: int) -> bytes:
    """A PNG of noise around a level, another one for every level."""
    noise = np.random.default_rng(level).integers(0, 60, (16, 16, 3))
    buffer = BytesIO()
    Image.fromarray((noise + level % 180).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write splits of org/trees, class by class; the working folder is where the hub would be."""
    monkeypatch.chdir(tmp_path)

    def write(splits: dict[str, int], image: str = "image", labels: str = "label") -> Path:
        folder = tmp_path / "org" / "trees" / "data"
        folder.mkdir(parents=True)
        kinds = dict.fromkeys(labels.split(), ClassLabel(names=NAMES))
        for number, (split, per_class) in enumerate(splits.items()):
            values = [n % 3 for n in range(3 * per_class)]
            data = [encoded(100 * number + 50 * c + n) for n, c in enumerate(values)]
            rows = {image: [{"bytes": content, "path": None} for content in data]}
            table = Dataset.from_dict(
                rows | dict.fromkeys(kinds, values), Features({image: ImageFeature(), **kinds})
            )
            table.to_parquet(str(folder / f"{split}-00000-of-00001.parquet"))
        return folder.parent

    return write


def load(ref: str, tmp_path: Path) -> TargetDataset:
    return load_target(ref, DataRoots(), cache=tmp_path / "c")


def write_table(path: Path, images: list[object], labels: list[object], kind: str) -> None:
    features = Features(
        {"image": {"bytes": Value("binary"), "path": Value("string")}, "label": Value(kind)}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    Dataset.from_dict({"image": images, "label": labels}, features=features).to_parquet(str(path))


def test_a_split_is_a_target_in_rank_order(write: Write, tmp_path: Path) -> None:
    write({"train": 2, "test": 4})
    ref = "hf-hub:org/trees?split=test"
    dataset = load(ref, tmp_path)
    assert (dataset.name, dataset.result_name) == ("hub-org-trees", user_data_name(ref))
    assert (dataset.class_names, dataset.flags) == (tuple(NAMES), {"custom"})
    assert dataset.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert dataset.canonical_ids[:2] == ("oak/00000000", "oak/00000003")
    assert dataset.content(1) == encoded(100 + 3)
    assert dataset.take(np.array([5])).content(0) == dataset.content(5)
    assert dataset.image(0).size == (16, 16)
    assert "split test" in dataset.notes[0]
    record = describe_dataset(dataset, tmp_path)
    assert record.name == user_data_name(ref)
    train = describe_dataset(load("hf-hub:org/trees?split=train", tmp_path), tmp_path)
    assert train.fingerprint != record.fingerprint
    for query, message in (
        ("", r"several splits: (train, test|test, train)(.|\n)*split="),
        ("?split=dev", "no split dev"),
    ):
        with pytest.raises(DataError, match=message):
            load(f"hf-hub:org/trees{query}", tmp_path)


def test_columns_are_named_or_found(write: Write, tmp_path: Path) -> None:
    write({"train": 2}, image="photo", labels="species")
    assert len(load("hf-hub:org/trees", tmp_path)) == 6
    assert len(load("hf-hub:org/trees?image=photo&label=species", tmp_path)) == 6
    with pytest.raises(DataError, match="columns photo, species; which is the label is not clear"):
        load("hf-hub:org/trees?label=y", tmp_path)


def test_one_of_two_label_columns_must_be_named(write: Write, tmp_path: Path) -> None:
    write({"train": 2}, labels="species genus")
    with pytest.raises(DataError, match=r"which is the label is not clear(.|\n)*\?label=COLUMN"):
        load("hf-hub:org/trees", tmp_path)
    assert len(load("hf-hub:org/trees?label=genus", tmp_path)) == 6


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("int64", [0, 1, -1], "rows without a label"),
        ("string", ["a", None, "b"], "rows without a label"),
        ("float64", [0.5, 1.5, 2.5], "not a class"),
        ("string", ["a", "a", "a"], "fewer than two classes"),
    ],
)
def test_other_labels_are_refused(
    tmp_path: Path, kind: str, labels: list[object], message: str
) -> None:
    images: list[object] = [{"bytes": encoded(n), "path": None} for n in range(3)]
    write_table(tmp_path / "x" / "test.parquet", images, labels, kind)
    with pytest.raises(DataError, match=message):
        load(f"hf-hub:{tmp_path / 'x'}", tmp_path)


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("hf-hub:?split=test", "names no data set"),
        ("hf-hub:a/b?split", "sets nothing|names no data set"),
        ("hf-hub:a/b?split=x&split=y", "or split twice"),
        ("hf-hub:a/b?splits=x", r"splits(.|\n)*did you mean 'split'"),
    ],
)
def test_malformed_references_are_refused(ref: str, message: str) -> None:
    with pytest.raises(FsbenchError, match=message) as error:
        HubReference.parse(ref)
    assert error.value.exit_code == UsageError.exit_code


def test_evaluated_through_the_command_line(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write({"train": 2, "test": 18})
    ref = "hf-hub:org/trees?split=test"
    arguments = ["-m", "fsbench/toy_resnet", "--random-init", "0", "-t", f"{ref}:2w1s"]
    arguments += ["--input-size", "32", "--limit", "4", "-o", str(tmp_path / "r"), "--json"]
    assert call("episodic", *arguments) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["task"] == f"{user_data_name(ref)}:2w1s/linear@ibm"
    assert "custom" in result["flags"]
    assert (tmp_path / "cache" / "datasets").is_dir()
    assert len(result["dataset"]["fingerprint"]) == 64
    assert call("data", "verify", ref) == 0
    assert "every image opens" in capsys.readouterr().err


def draw_rows(folder: Path, names: list[str]) -> Path:
    """Write an image of noise under each name, another one for every name."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(number))
    return folder


@pytest.mark.parametrize(
    ("parts", "query"), [("train test", "?split=test"), (".", ""), ("validation", "")]
)
def test_a_folder_of_class_folders_on_disk(
    tmp_path: Path, parts: str, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{part}/{c}/{n}.png" for part in parts.split() for c in ("fir", "oak") for n in "12"]
    folder = draw_rows(tmp_path / "my trees", names)
    dataset = load(f"hf-hub:{folder}{query}", tmp_path)
    assert (dataset.class_names, dataset.class_counts) == (("fir", "oak"), {0: 2, 1: 2})
    assert dataset.name == "hub-my-trees"
    expected = [p for p in folder.rglob("*.png") if not query or "test" in p.parts]
    assert {dataset.content(i) for i in range(4)} == {path.read_bytes() for path in expected}
    assert dataset.image(0).size == (16, 16)
    assert call("data", "verify", f"hf-hub:{folder}{query}") == 0
    assert "4 images" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("split", ["train", "."])
def test_a_folder_with_a_table_on_disk(tmp_path: Path, kind: str, split: str) -> None:
    rows = [
        {"file_name": f"{n}.png", "label": y} for n, y in enumerate(["fir", "oak ", "fir", "oak"])
    ]
    folder = draw_rows(tmp_path / "x" / split, [str(row["file_name"]) for row in rows])
    lines = [json.dumps(row) for row in rows]
    if kind == "csv":
        lines = ["file_name,label", *(f"{row['file_name']},{row['label']}" for row in rows)]
    (folder / f"metadata.{kind}").write_text("\n".join(lines) + "\n")
    dataset = load(f"hf-hub:{tmp_path / 'x'}", tmp_path)
    assert dataset.class_names == ("fir", "oak"), "outer spaces are no part of a name"
    assert [dataset.content(i) for i in range(4)] == [encoded(n) for n in (0, 2, 1, 3)]


def test_files_of_a_local_folder_that_no_split_has_are_counted(tmp_path: Path) -> None:
    folder = draw_rows(tmp_path / "x", ["fir/1.png", "oak/2.png"])
    for name in ("fir/1.npy", "oak/n2"):
        (folder / name).write_bytes(b"x")
    notes = load(f"hf-hub:{folder}", tmp_path).notes
    assert any("2 files are left out, not read as images: 1 .npy, 1 without" in n for n in notes)


@pytest.mark.parametrize("splits", ["Training Testing", "fold1 fold2 fold3", "A B"])
def test_splits_that_are_not_told_apart_are_refused(tmp_path: Path, splits: str) -> None:
    names = [f"{split}/{c}/1.png" for split in splits.split() for c in ("fir", "oak")]
    folder = draw_rows(tmp_path / "x", names)
    with pytest.raises(DataError, match="look like splits") as caught:
        load(f"hf-hub:{folder}", tmp_path)
    assert f"folder:{folder}" in str(caught.value)


def test_sixteen_bit_rows_are_scaled(tmp_path: Path) -> None:
    for name in ("a/1.png", "b/2.png"):
        path = tmp_path / "x" / name
        path.parent.mkdir(parents=True)
        Image.fromarray(np.full((4, 4), 4095, dtype=np.uint16)).save(path)
    sets = [load(f"hf-hub:{tmp_path / 'x'}{q}", tmp_path) for q in ("", "?bits=12")]
    assert [dataset.image(0).getpixel((0, 0)) for dataset in sets] == [(15,) * 3, (255,) * 3]
    records = [describe_dataset(dataset, tmp_path) for dataset in sets]
    assert len({record.fingerprint for record in records}) == 2
    assert len({record.name for record in records}) == 2
    assert len({dataset.name for dataset in sets}) == 1, "both have the same episodes"


def test_links_in_a_folder_are_followed_and_files_elsewhere_refused(tmp_path: Path) -> None:
    """A row may hold the path of an image in place of its bytes."""
    store = draw_rows(tmp_path / "store", ["1.png", "2.png"])
    for name in ("fir/1.png", "oak/2.png"):
        link = tmp_path / "x" / name
        link.parent.mkdir(parents=True)
        link.symlink_to(store / link.name)
    dataset = load(f"hf-hub:{tmp_path / 'x'}", tmp_path)
    assert [dataset.content(i) for i in range(2)] == [encoded(0), encoded(1)]
    wnids = all_facts()["tinyimagenet"].classes
    paths = [store / "1.png", tmp_path / "y" / ".." / "store" / "2.png"]
    rows: list[object] = [{"bytes": None, "path": str(path)} for path in paths]
    for part in ("train", "val"):
        write_table(tmp_path / "y" / f"{part}-0.parquet", rows, [*wnids[:2]], "string")
    foreign = load(f"hf-hub:{tmp_path / 'y'}?split=train", tmp_path)
    for row in range(2):
        with pytest.raises(DataError, match="names a file elsewhere"):
            foreign.content(row)
    roots = DataRoots.parse([f"tinyimagenet={tmp_path / 'y'}"])
    with pytest.raises(DataError, match=r"names a file elsewhere: .*1.png"):
        load_source("tinyimagenet", roots, tmp_path / "c", 8)
    downloaded = Dataset.from_dict({"image": rows[:1], "label": [0]})
    table = HubTable({"t": downloaded}, "t", HubReference("t"), store)
    assert table.samples(("0",))[0].open().size == (16, 16)
