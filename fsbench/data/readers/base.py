"""Base of the readers of targets, and what readers share: files by name, labels, damaged files."""

from functools import cache
from pathlib import Path

from fsbench.core.specs import Frozen, Pool
from fsbench.data.assembly import ImageRow, Notes, assemble, missing_error
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path, refuse_placeholder, refuse_unreadable


class TargetReader(Frozen):
    """Base of the readers of targets; a card names a reader and sets its fields."""

    def load(
        self, facts: DatasetFacts, folder: Path, pool: Pool = "full", splits: Path | None = None
    ) -> TargetDataset:
        """Load the images of a pool. Raise DataError for missing or wrong files."""
        rows, notes = self.list_rows(facts, folder)
        return assemble(facts, folder, rows, pool=pool, splits=splits, notes=notes)

    def list_rows(self, facts: DatasetFacts, folder: Path) -> tuple[list[ImageRow], Notes]:
        """Return all images, and notes on files that are missing or left out."""
        raise NotImplementedError


def require_path(folder: Path, name: str, facts: DatasetFacts) -> Path:
    """Return the file or folder of this name. Raise DataError if it is missing or a pointer."""
    path = find_path(folder, name)
    if path is None:
        raise missing_error(folder, name, facts)
    refuse_placeholder(path)
    return path


def read_lines(path: Path) -> list[str]:
    """Read the non-empty lines, stripped of outer spaces. Raise DataError naming the file."""
    with refuse_unreadable(path):
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


@cache
def number_classes(classes: tuple[str, ...]) -> dict[str, int]:
    """Return the id of each class by `fold_label` of its name."""
    return {fold_label(name): class_id for class_id, name in enumerate(classes)}


def fold_label(text: str) -> str:
    """Return a label as tables spell it: case counts for nothing, `_` for a space."""
    return text.replace("_", " ").casefold()
