"""Targets in the layout of the Hugging Face hub: a local copy of parquet files, offline."""

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

from fsbench.cli.main import run
from fsbench.core.errors import DataError, FsbenchError, UsageError
from fsbench.core.tasks import user_data_name
from fsbench.data import DataRoots, TargetDataset, describe_dataset, load_target
from fsbench.data.hub import HubReference

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

    def write(
        splits: dict[str, int], image: str = "image", label: str = "label", extra: bool = False
    ) -> Path:
        folder = tmp_path / "org" / "trees"
        features = Features({image: ImageFeature(), label: ClassLabel(names=NAMES)})
        for number, (split, per_class) in enumerate(splits.items()):
            labels = [n % 3 for n in range(3 * per_class)]
            rows = {
                image: [
                    {"bytes": encoded(100 * number + 50 * c + n), "path": None}
                    for n, c in enumerate(labels)
                ],
                label: labels,
            }
            if extra:
                features["genus"] = ClassLabel(names=NAMES)
                rows["genus"] = labels
            path = folder / "data" / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            Dataset.from_dict(rows, features=features).to_parquet(str(path))
        return folder

    return write


def load(ref: str, tmp_path: Path) -> TargetDataset:
    return load_target(ref, DataRoots(), cache=tmp_path / "c")


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


def test_columns_are_named_or_found(write: Write, tmp_path: Path) -> None:
    write({"train": 2}, image="photo", label="species")
    assert len(load("hf-hub:org/trees", tmp_path)) == 6
    assert len(load("hf-hub:org/trees?image=photo&label=species", tmp_path)) == 6
    with pytest.raises(DataError, match="columns photo, species; which is the label is not clear"):
        load("hf-hub:org/trees?label=y", tmp_path)


def test_one_of_two_label_columns_must_be_named(write: Write, tmp_path: Path) -> None:
    write({"train": 2}, label="species", extra=True)
    with pytest.raises(DataError, match=r"which is the label is not clear(.|\n)*\?label=COLUMN"):
        load("hf-hub:org/trees", tmp_path)
    assert len(load("hf-hub:org/trees?label=genus", tmp_path)) == 6


def test_one_of_two_splits_must_be_named(write: Write, tmp_path: Path) -> None:
    write({"train": 2, "test": 2})
    with pytest.raises(DataError, match=r"several splits: (train, test|test, train)(.|\n)*split="):
        load("hf-hub:org/trees", tmp_path)
    with pytest.raises(DataError, match="no split dev"):
        load("hf-hub:org/trees?split=dev", tmp_path)


def test_rows_without_a_label_are_refused(tmp_path: Path) -> None:
    features = Features({"image": ImageFeature(), "label": Value("int64")})
    rows = {"image": [{"bytes": encoded(n), "path": None} for n in range(3)], "label": [0, 1, -1]}
    (tmp_path / "x").mkdir()
    Dataset.from_dict(rows, features=features).to_parquet(str(tmp_path / "x" / "test.parquet"))
    with pytest.raises(DataError, match=r"rows without a label"):
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
    arguments = ["episodic", "-m", "fsbench/toy_resnet", "--random-init", "0", "-t", f"{ref}:2w1s"]
    with pytest.raises(SystemExit) as caught:
        run([*arguments, "--input-size", "32", "--limit", "4", "-o", str(tmp_path / "r"), "--json"])
    shown = capsys.readouterr()
    assert not caught.value.code, shown.err
    (result,) = json.loads(shown.out)
    assert result["task"] == f"{user_data_name(ref)}:2w1s/linear@ibm"
    assert set(result["flags"]) >= {"custom"}
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


def lines_of(kind: str, labels: list[str]) -> str:
    if kind == "csv":
        return "file_name,label\n" + "".join(f"{n}.png,{y}\n" for n, y in enumerate(labels))
    rows = ({"file_name": f"{n}.png", "label": y} for n, y in enumerate(labels))
    return "".join(json.dumps(row) + "\n" for row in rows)


LOCAL = [
    (
        [f"{s}/{c}/{n}.png" for s in ("train", "test") for c in ("fir", "oak") for n in "12"],
        "?split=test",
    ),
    ([f"{c}/{n}.png" for c in ("fir", "oak") for n in "12"], ""),
    ([f"validation/{c}/{n}.png" for c in ("fir", "oak") for n in "12"], "?split=validation"),
]


@pytest.mark.parametrize(("names", "query"), LOCAL)
def test_a_folder_of_class_folders_on_disk(tmp_path: Path, names: list[str], query: str) -> None:
    folder = draw_rows(tmp_path / "my trees", names)
    dataset = load(f"hf-hub:{folder}{query}", tmp_path)
    assert (dataset.class_names, dataset.class_counts) == (("fir", "oak"), {0: 2, 1: 2})
    assert dataset.name == "hub-my-trees"
    levels = {dataset.content(i) for i in range(4)}
    expected = [p for p in folder.rglob("*.png") if not query or query[7:] in p.parts]
    assert levels == {path.read_bytes() for path in expected}
    assert dataset.image(0).size == (16, 16)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("split", ["train", "."])
def test_a_folder_with_a_table_on_disk(tmp_path: Path, kind: str, split: str) -> None:
    labels = ["fir", "oak ", "fir", "oak"]
    folder = draw_rows(tmp_path / "x" / split, [f"{n}.png" for n in range(4)])
    (folder / f"metadata.{kind}").write_text(lines_of(kind, labels))
    dataset = load(f"hf-hub:{tmp_path / 'x'}", tmp_path)
    assert dataset.class_names == ("fir", "oak"), "outer spaces are no part of a name"
    assert [dataset.content(i) for i in range(4)] == [encoded(n) for n in (0, 2, 1, 3)]


def test_files_of_a_local_folder_that_no_split_has_are_counted(tmp_path: Path) -> None:
    folder = draw_rows(tmp_path / "x", ["fir/1.png", "oak/2.png"])
    for name in ("fir/1.npy", "oak/n2"):
        (folder / name).write_bytes(b"x")
    notes = load(f"hf-hub:{folder}", tmp_path).notes
    assert any("2 files are left out, not read as images: 1 .npy, 1 without" in n for n in notes)


@pytest.mark.parametrize(
    "splits", [("Training", "Testing"), ("fold1", "fold2", "fold3"), ("A", "B")]
)
def test_splits_that_are_not_told_apart_are_refused(
    tmp_path: Path, splits: tuple[str, ...]
) -> None:
    names = [f"{split}/{c}/1.png" for split in splits for c in ("fir", "oak")]
    folder = draw_rows(tmp_path / "x", names)
    with pytest.raises(DataError, match="look like splits") as caught:
        load(f"hf-hub:{folder}", tmp_path)
    assert f"folder:{folder}" in str(caught.value)


def test_verify_takes_a_local_folder_with_one_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = draw_rows(tmp_path / "x", [f"{c}/{n}.png" for c in "ab" for n in "12"])
    assert call("data", "verify", f"hf-hub:{folder}") == 0
    assert "4 images" in capsys.readouterr().out


def test_sixteen_bit_rows_are_scaled(tmp_path: Path) -> None:
    for name in ("a/1.png", "b/2.png"):
        path = tmp_path / "x" / name
        path.parent.mkdir(parents=True)
        Image.fromarray(np.full((4, 4), 4095, dtype=np.uint16)).save(path)
    dark, scaled = (load(f"hf-hub:{tmp_path / 'x'}{q}", tmp_path) for q in ("", "?bits=12"))
    assert (dark.image(0).getpixel((0, 0)), scaled.image(0).getpixel((0, 0))) == (
        (15, 15, 15),
        (255, 255, 255),
    )
    records = [describe_dataset(dataset, tmp_path) for dataset in (dark, scaled)]
    assert len({record.fingerprint for record in records}) == 2
    assert len({record.name for record in records}) == 2
    assert dark.name == scaled.name, "both have the same episodes"


def test_links_in_a_folder_are_followed_and_files_elsewhere_refused(tmp_path: Path) -> None:
    store = draw_rows(tmp_path / "store", ["1.png", "2.png"])
    for name in ("fir/1.png", "oak/2.png"):
        link = tmp_path / "x" / name
        link.parent.mkdir(parents=True)
        link.symlink_to(store / link.name)
    dataset = load(f"hf-hub:{tmp_path / 'x'}", tmp_path)
    assert [dataset.content(i) for i in range(2)] == [encoded(0), encoded(1)]
    (tmp_path / "y").mkdir()
    paths = [str(store / "1.png"), str(tmp_path / "y" / ".." / "store" / "2.png")]
    rows = {"image": [{"bytes": None, "path": path} for path in paths], "label": ["a", "b"]}
    kinds = {"image": {"bytes": Value("binary"), "path": Value("string")}, "label": Value("string")}
    table = Dataset.from_dict(rows, features=Features(kinds))
    table.to_parquet(str(tmp_path / "y" / "test.parquet"))
    foreign = load(f"hf-hub:{tmp_path / 'y'}", tmp_path)
    for row in range(2):
        with pytest.raises(DataError, match="names a file elsewhere"):
            foreign.content(row)
