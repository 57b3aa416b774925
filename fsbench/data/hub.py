"""Data sets in Hugging Face `datasets` format: on the hub, or parquet files or images on disk.

A reference is `hf-hub:ORG/NAME[@REVISION][?split=test&image=COLUMN&label=COLUMN&config=NAME]`; a
folder in a layout of the hub may replace ORG/NAME. Other columns are found by name or type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from PIL import Image

from fsbench.core.errors import DataError, UsageError
from fsbench.core.tasks import HUB, parse_bits, parse_query
from fsbench.data import files
from fsbench.data.assembly import ImageRow
from fsbench.data.base import TargetDataset
from fsbench.data.files import compose_name, match_names
from fsbench.data.image_folder import VAL, assemble_custom
from fsbench.data.images import decode_rgb
from fsbench.data.source import SourceImage

IMAGES = ("image", "img")
LABELS = ("label", "labels", "fine_label")
OPTIONS = ("split", "image", "label", "config", "bits")
LABEL_RULE = "class id = the hub's own label number (rank in sorted order for text labels)"


@dataclass(frozen=True)
class HubReference:
    """Parts of a reference to a data set of the hub; None for a part that is left out."""

    repo: str
    revision: str | None = None
    split: str | None = None
    image: str | None = None
    label: str | None = None
    config: str | None = None
    bits: int | None = None

    @classmethod
    def parse(cls, ref: str) -> Self:
        """Return the parts. Raise UsageError if malformed, UnknownName for an unknown option."""
        address, _, query = ref.removeprefix(HUB).partition("?")
        folder = Path(address).expanduser()
        repo, _, revision = address.partition("@")
        if address and folder.is_dir():
            repo, revision = str(folder.resolve()), ""
        options = parse_query(query, ref, OPTIONS)
        if not repo or (query and not options):
            raise UsageError(
                f"'{ref}' names no data set of the hub",
                fix=f"write {HUB}ORG/NAME or '{HUB}ORG/NAME?split=test&image=img&label=y'",
            )
        names = {name: value for name, value in options.items() if name != "bits"}
        return cls(repo, revision or None, bits=parse_bits(options), **names)

    @property
    def folder(self) -> Path | None:
        """The folder of a data set on disk."""
        return Path(self.repo) if Path(self.repo).is_dir() else None

    def load_splits(self, cache: Path) -> Any:
        """Load all splits. Raise DataError if the data set is not available."""
        from datasets import disable_progress_bars, load_dataset
        from datasets.exceptions import DatasetsError

        disable_progress_bars()
        try:
            return load_dataset(
                self.repo, self.config, cache_dir=str(cache), revision=self.revision
            )
        except (OSError, ValueError, DatasetsError) as error:
            for file in files.list_files(self.folder) if self.folder else ():
                files.refuse_placeholder(Path(self.repo) / file)
            raise DataError(
                f"cannot load {self.repo} through Hugging Face datasets: {error}",
                fix="check the name and the network, or give the files: --data NAME=DIR",
            ) from error


class HubTable:
    """One split: rows with an image (encoded bytes) and a label (a class name or a number).

    A row may name a file in place of the bytes: of `cache`, where downloads lie, of the hub's own
    cache, or of the folder of the reference, links in it included. Raises DataError for columns
    that are not found, and for rows without a label.
    """

    def __init__(
        self, splits: Mapping[str, Any], split: str, reference: HubReference, cache: Path
    ) -> None:
        from datasets import ClassLabel
        from datasets import Image as ImageFeature
        from huggingface_hub.constants import HF_HUB_CACHE

        self.name, self.reference = f"{HUB}{reference.repo} ({split})", reference
        self.downloads = (cache, Path(HF_HUB_CACHE))
        self.rows, features = splits[split], splits[split].features
        self.image = self._find_column("image", features, IMAGES, ImageFeature)
        self.label = self._find_column("label", features, LABELS, ClassLabel)
        values = self.rows[self.label][:]
        if any(value is None or (isinstance(value, int) and value < 0) for value in values):
            raise DataError(
                f"{self.name} has rows without a label", fix="name another split: ?split=NAME"
            )
        if isinstance(features[self.image], ImageFeature):
            self.rows = self.rows.cast_column(self.image, ImageFeature(decode=False))
        names = getattr(features[self.label], "names", None)
        self.labels = [compose_name(str(names[value] if names else value)) for value in values]
        self.classes = tuple(dict.fromkeys(map(compose_name, names or sorted(set(self.labels)))))

    def list_images(self, classes: tuple[str, ...]) -> list[SourceImage]:
        """List the images, labelled by position in `classes`. Raise DataError for other labels."""
        names = match_names(sorted(set(self.labels)), classes, self.name)
        if other := sorted(set(self.labels) - set(names)):
            raise DataError(
                f"{self.name} has labels that are not classes: {', '.join(other[:5])}",
                fix="train and validation must have the same classes",
            )
        ids = {name: classes.index(label) for name, label in names.items()}
        stamp = f"{self.rows._fingerprint} {self.reference}"
        return [
            SourceImage(ids[name], partial(self.open, row), stamp)
            for row, name in enumerate(self.labels)
        ]

    def open(self, row: str | int) -> Image.Image:
        """Decode an image as RGB. Raise DataError if it cannot be read.

        row: its number, or the canonical id of an image of a target, which ends with it.
        """
        return decode_rgb(self.read(row), f"{self.name}, row {row}", self.reference.bits)

    def read(self, row: str | int) -> bytes:
        """Return the encoded bytes of an image, empty if the row has none."""
        value = self.rows[int(str(row).rpartition("/")[2])][self.image]
        data: bytes | None = value["bytes"] if isinstance(value, dict) else value
        if data is None and isinstance(value, dict) and value.get("path"):
            data = self._read_file(Path(value["path"]), f"{self.name}, row {row}")
        return data or b""

    def _read_file(self, path: Path, where: str) -> bytes:
        """Read an image file of the download or folder. Raise DataError for any other file."""
        folder = self.reference.folder
        inside = folder and path.is_relative_to(folder) and ".." not in path.parts
        downloads = (root.resolve() for root in self.downloads)
        if not inside and not any(path.resolve().is_relative_to(root) for root in downloads):
            raise DataError(
                f"{where} names a file elsewhere: {path}",
                fix="put the bytes of the images into the table",
            )
        with files.refuse_unreadable(path):
            return path.resolve().read_bytes()

    def _find_column(
        self, what: str, features: dict[str, Any], usual: tuple[str, ...], kind: type
    ) -> str:
        """Return the named column, else one of a usual name, else the only one of its type."""
        named = getattr(self.reference, what)
        typed = [name for name, feature in features.items() if isinstance(feature, kind)]
        candidates = [name for name in ((named,) if named else usual) if name in features]
        if not candidates and not named and len(typed) == 1:
            candidates = typed
        if not candidates:
            raise DataError(
                f"{self.name} has the columns {', '.join(features)}; which is the {what}?",
                fix=f"name it: {HUB}ORG/NAME?{what}=COLUMN; parquet files need `image` and `label`",
            )
        return candidates[0]


def load_hub_target(ref: str, cache: Path) -> TargetDataset:
    """Load one split of a data set of the hub as a target, flagged `custom`.

    Raises DataError for several splits of which none is named.
    """
    parts = HubReference.parse(ref)
    splits = parts.load_splits(cache)
    split = parts.split or ("" if len(splits) > 1 else str(next(iter(splits))))
    if split not in splits:
        fault = f"no split {split}" if split else "several splits"
        raise DataError(
            f"{HUB}{parts.repo} has {fault}: {', '.join(splits)}",
            fix=f"name one: '{HUB}{parts.repo}?split={next(iter(splits))}'",
        )
    table = HubTable(splits, split, parts, cache)
    layout = f"split {split}, columns {table.image} and {table.label}"
    images = table.list_images(table.classes)
    ids = [(i.label, f"{table.classes[i.label]}/{row:08d}") for row, i in enumerate(images)]
    rows = [ImageRow(label, image, image) for label, image in ids]
    notes = (f"{len(rows)} images of {len(set(table.labels))} classes, {layout}",)
    dataset = assemble_custom(ref, table.classes, rows, layout, notes, label_rule=LABEL_RULE)
    return replace(dataset, bits=parts.bits, draw=table.open, read=table.read)


def read_hub_tables(ref: str, cache: Path) -> tuple[HubTable, HubTable]:
    """Read train and validation split. Raise DataError if unavailable or without a split."""
    parts = HubReference.parse(ref)
    if parts.split:
        raise UsageError(f"{ref} names a split", fix="leave it out: a source has train and val")
    splits = parts.load_splits(cache)
    val = next((name for name in VAL if name in splits), None)
    if "train" not in splits or val is None:
        raise DataError(
            f"{HUB}{parts.repo} has the splits {', '.join(splits)}",
            fix=f"a source needs train and one of {', '.join(VAL)}",
        )
    return HubTable(splits, "train", parts, cache), HubTable(splits, val, parts, cache)
