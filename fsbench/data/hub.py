"""Sources in Hugging Face `datasets` format: parquet files on disk, or a data set on the hub."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from fsbench.core.errors import DataError
from fsbench.data.images import decode_rgb
from fsbench.data.source import SourceImage

LABELS = ("label", "labels", "fine_label")
VAL = ("valid", "val", "validation", "test")


class HubTable:
    """One split: rows with an `image` (encoded bytes) and a label (a class name or a number).

    downloads: folders whose files a row may reference instead of holding the bytes.
    """

    def __init__(self, rows: Any, name: str, downloads: tuple[Path, ...] = ()) -> None:
        from datasets import Image as ImageFeature

        columns = rows.column_names
        label = next((column for column in LABELS if column in columns), None)
        if "image" not in columns or label is None:
            raise DataError(
                f"{name} has the columns {', '.join(columns)}",
                fix="a source needs `image` and `label`",
            )
        if isinstance(rows.features["image"], ImageFeature):
            rows = rows.cast_column("image", ImageFeature(decode=False))
        self.rows, self.name, self.downloads = rows, name, downloads
        names = getattr(rows.features[label], "names", None)
        self.labels = [str(names[value] if names else value) for value in rows[label]]
        self.classes = tuple(names or sorted(set(self.labels)))
        self.stamp = str(rows._fingerprint)

    @property
    def counts(self) -> list[int]:
        """Number of images per class."""
        counts = Counter(self.labels)
        return [counts[name] for name in self.classes]

    def samples(self, classes: tuple[str, ...]) -> list[SourceImage]:
        """List the images, labelled by position in `classes`. Raise DataError for other labels."""
        ids = {name: place for place, name in enumerate(classes)}
        if other := sorted(set(self.labels) - set(ids)):
            raise DataError(
                f"{self.name} has labels that are not classes: {', '.join(other[:5])}",
                fix="train and validation must have the same classes",
            )
        return [
            SourceImage(ids[name], partial(self._open, n)) for n, name in enumerate(self.labels)
        ]

    def _open(self, row: int) -> Image.Image:
        value = self.rows[row]["image"]
        data = value["bytes"] if isinstance(value, dict) else value
        where = f"{self.name}, row {row}"
        if data is None and isinstance(value, dict) and value.get("path"):
            data = self._file(Path(value["path"]), where)
        return decode_rgb(data or b"", where)

    def _file(self, path: Path, where: str) -> bytes:
        """Read an image file that the hub download created. Raise DataError for any other file."""
        real = path.resolve()
        if not any(real.is_relative_to(folder.resolve()) for folder in self.downloads):
            raise DataError(
                f"{where} names a file elsewhere: {path}",
                fix="put the bytes of the images into the table",
            )
        try:
            return real.read_bytes()
        except OSError as error:
            raise DataError(f"{where}: {error}", fix="fetch the data set again") from error


def read_parquet_tables(
    train: list[Path], val: list[Path], cache: Path
) -> tuple[HubTable, HubTable]:
    """Read the train and validation split from parquet files on disk."""
    files = {"train": [str(p) for p in train], "val": [str(p) for p in val]}
    splits = _load("parquet", cache, data_files=files)
    folder = train[0].parent
    return HubTable(splits["train"], f"{folder} (train)"), HubTable(
        splits["val"], f"{folder} (val)"
    )


def read_hub_tables(ref: str, cache: Path) -> tuple[HubTable, HubTable]:
    """Read the splits of ORG/NAME[@REV]. Raise DataError if unavailable or without a split."""
    from huggingface_hub.constants import HF_HUB_CACHE

    path, _, revision = ref.partition("@")
    splits = _load(path, cache, revision=revision or None)
    val = next((name for name in VAL if name in splits), None)
    if "train" not in splits or val is None:
        raise DataError(
            f"hf-hub:{ref} has the splits {', '.join(splits)}",
            fix=f"a source needs train and one of {', '.join(VAL)}",
        )
    folders = (cache, Path(HF_HUB_CACHE))
    train, validation = (
        HubTable(splits[part], f"hf-hub:{ref} ({part})", folders) for part in ("train", val)
    )
    return train, validation


def _load(path: str, cache: Path, **options: Any) -> Any:
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        return load_dataset(path, cache_dir=str(cache), **options)
    except (OSError, ValueError, DatasetsError) as error:
        raise DataError(
            f"cannot load {path} through Hugging Face datasets: {error}",
            fix="check the name and the network, or give the data set as files: --data NAME=DIR",
        ) from error
