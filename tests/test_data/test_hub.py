"""Targets in the layout of the Hugging Face hub: local copies of tables and folders, offline."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Value
from datasets import Image as ImageFeature
from PIL import Image
from support.cli import CommandLine
from support.images import draw_grey, draw_images, join_names, write_table

from fsbench.core.errors import DataError, FsbenchError, UsageError
from fsbench.core.tasks import user_data_name
from fsbench.data import DataRoots, TargetDataset, describe_dataset, load_source, load_target
from fsbench.data.catalog import all_facts
from fsbench.data.hub import HubReference, HubTable

NAMES = ["oak", "fir", "ash"]
Write = Callable[..., None]
Load = Callable[[str], TargetDataset]


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

    def write(splits: dict[str, int], image: str = "image", labels: str = "label") -> None:
        kinds = {image: ImageFeature()} | dict.fromkeys(labels.split(), ClassLabel(names=NAMES))
        for number, (split, per_class) in enumerate(splits.items()):
            values = [n % 3 for n in range(3 * per_class)]
            data = [encoded(100 * number + 50 * c + n) for n, c in enumerate(values)]
            columns: dict[str, Any] = dict.fromkeys(kinds, values)
            columns[image] = [{"bytes": content, "path": None} for content in data]
            folder = tmp_path / "org" / "trees" / "data"
            write_table(folder / f"{split}-00000-of-00001.parquet", columns, kinds)

    return write


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return lambda ref: load_target(ref, DataRoots(), cache=tmp_path / "c")


def test_a_split_is_a_target_in_rank_order(write: Write, load: Load, tmp_path: Path) -> None:
    write({"train": 2, "test": 4})
    ref = "hf-hub:org/trees?split=test"
    dataset = load(ref)
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
    train = describe_dataset(load("hf-hub:org/trees?split=train"), tmp_path)
    assert train.fingerprint != record.fingerprint
    with pytest.raises(DataError, match=r"several splits: (train, test|test, train)(.|\n)*split="):
        load("hf-hub:org/trees")
    with pytest.raises(DataError, match="no split dev"):
        load("hf-hub:org/trees?split=dev")
    with pytest.raises(UsageError, match="names a split"):
        load_source(ref, DataRoots(), tmp_path / "c", 8)


@pytest.mark.parametrize(
    ("columns", "right", "wrong", "message"),
    [
        ("photo species", ("", "image=photo&label=species"), "label=y",
         "columns photo, species; which is the label"),
        ("image species genus", ("label=genus",), "",
         r"which is the label(.|\n)*\?label=COLUMN"),
    ],
)  # fmt: skip
def test_columns_are_named_or_found(
    write: Write, load: Load, columns: str, right: tuple[str, ...], wrong: str, message: str
) -> None:
    image, _, labels = columns.partition(" ")
    write({"train": 2}, image, labels)
    for query in right:
        assert len(load("?".join(filter(None, ["hf-hub:org/trees", query])))) == 6
    with pytest.raises(DataError, match=message):
        load("?".join(filter(None, ["hf-hub:org/trees", wrong])))


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("int64", [0, 1, -1], "rows without a label"),
        ("string", ["a", None, "b"], "rows without a label"),
    ],
)
def test_other_labels_are_refused(
    tmp_path: Path, load: Load, kind: str, labels: list[object], message: str
) -> None:
    columns = {"image": [encoded(n) for n in range(3)], "label": labels}
    kinds = {"image": Value("binary"), "label": Value(kind)}
    write_table(tmp_path / "x" / "test.parquet", columns, kinds)
    with pytest.raises(DataError, match=message):
        load(f"hf-hub:{tmp_path / 'x'}")


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


def test_evaluated_through_the_command_line(write: Write, tmp_path: Path, cli: CommandLine) -> None:
    write({"train": 2, "test": 18})
    ref = "hf-hub:org/trees?split=test"
    network = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
    output = ("--limit", "4", "-o", tmp_path / "r")
    (result,) = cli.json("episodic", *network, "-t", f"{ref}:2w1s", *output)
    assert result["task"] == f"{user_data_name(ref)}:2w1s/linear@ibm"
    assert "custom" in result["flags"]
    assert (tmp_path / "cache" / "datasets").is_dir()
    assert len(result["dataset"]["fingerprint"]) == 64
    assert "every image opens" in cli("data", "verify", ref).err


@pytest.mark.parametrize(
    ("parts", "query"), [("train test", "?split=test"), (".", ""), ("validation", "")]
)
def test_a_folder_of_class_folders_on_disk(
    tmp_path: Path, load: Load, parts: str, query: str, cli: CommandLine
) -> None:
    folder = tmp_path / "my trees"
    draw_images(folder, *join_names(parts, "fir oak", "1.png 2.png"))
    dataset = load(f"hf-hub:{folder}{query}")
    assert (dataset.class_names, dataset.class_counts) == (("fir", "oak"), {0: 2, 1: 2})
    assert dataset.name == "hub-my-trees"
    expected = [p for p in folder.rglob("*.png") if not query or "test" in p.parts]
    assert {dataset.content(i) for i in range(4)} == {path.read_bytes() for path in expected}
    assert dataset.image(0).size == (8, 8)
    assert "4 images" in cli("data", "verify", f"hf-hub:{folder}{query}").out


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("split", ["train", "."])
def test_a_folder_with_a_table_on_disk(tmp_path: Path, load: Load, kind: str, split: str) -> None:
    labels = {"0.png": "fir", "1.png": "oak ", "2.png": "fir", "3.png": "oak"}
    folder = draw_images(tmp_path / "x" / split, *labels)
    lines = [json.dumps({"file_name": name, "label": label}) for name, label in labels.items()]
    if kind == "csv":
        lines = ["file_name,label", *map(",".join, labels.items())]
    (folder / f"metadata.{kind}").write_text("\n".join(lines) + "\n")
    dataset = load(f"hf-hub:{tmp_path / 'x'}")
    assert dataset.class_names == ("fir", "oak"), "outer spaces are no part of a name"
    expected = [(folder / f"{n}.png").read_bytes() for n in (0, 2, 1, 3)]
    assert [dataset.content(i) for i in range(4)] == expected


def test_sixteen_bit_rows_are_scaled(tmp_path: Path, load: Load) -> None:
    folder = draw_grey(tmp_path / "x", "a/1.png", "b/2.png", value=4095)
    sets = [load(f"hf-hub:{folder}{query}") for query in ("", "?bits=12")]
    assert [dataset.image(0).getpixel((0, 0)) for dataset in sets] == [(15,) * 3, (255,) * 3]
    records = [describe_dataset(dataset, tmp_path) for dataset in sets]
    assert len({record.fingerprint for record in records}) == 2
    assert len({record.name for record in records}) == 2
    assert len({dataset.name for dataset in sets}) == 1, "both have the same episodes"


def test_links_in_a_folder_are_followed_and_files_elsewhere_refused(
    tmp_path: Path, load: Load
) -> None:
    """A row may hold the path of an image in place of its bytes."""
    store = draw_images(tmp_path / "store", "1.png", "2.png")
    for name in ("fir/1.png", "oak/2.png"):
        link = tmp_path / "x" / name
        link.parent.mkdir(parents=True)
        link.symlink_to(store / link.name)
    dataset = load(f"hf-hub:{tmp_path / 'x'}")
    contents = [(store / f"{n}.png").read_bytes() for n in (1, 2)]
    assert [dataset.content(i) for i in range(2)] == contents
    paths = [store / "1.png", tmp_path / "y" / ".." / "store" / "2.png"]
    rows = [{"bytes": None, "path": str(path)} for path in paths]
    kinds = {"image": {"bytes": Value("binary"), "path": Value("string")}, "label": Value("string")}
    columns = {"image": rows, "label": all_facts()["tinyimagenet"].classes[:2]}
    for part in ("train", "val"):
        write_table(tmp_path / "y" / f"{part}-0.parquet", columns, kinds)
    foreign = load(f"hf-hub:{tmp_path / 'y'}?split=train")
    for row in range(2):
        with pytest.raises(DataError, match="names a file elsewhere"):
            foreign.content(row)
    roots = DataRoots.parse([f"tinyimagenet={tmp_path / 'y'}"])
    with pytest.raises(DataError, match=r"names a file elsewhere: .*1.png"):
        load_source("tinyimagenet", roots, tmp_path / "c", 8)
    downloaded = Dataset.from_dict({"image": rows[:1], "label": [0]})
    table = HubTable({"t": downloaded}, "t", HubReference("t"), store)
    assert table.list_images(("0",))[0].open().size == (8, 8)
