"""Targets with one folder per class."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from fsbench.core.errors import DataError
from fsbench.core.specs import Frozen, Pool
from fsbench.data.assembly import ImageRow, assemble, list_tree_rows
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree, find_class_tree, match_names
from fsbench.data.images import open_rgb


class ClassFolders(Frozen):
    """One folder per class; the canonical id of an image is `Class/file`.

    trees: where the class folders may lie, see `find_class_tree`; synonyms: class by another name
    of its folder; ignored: folders that are no class; unreadable: another data set in the same
    folders, whose TIFF files no RGB image can be read from.
    """

    trees: tuple[str, ...]
    synonyms: Mapping[str, str] = Field({})
    ignored: tuple[str, ...] = ()
    unreadable: str = ""

    def load(
        self, facts: DatasetFacts, folder: Path, pool: Pool = "full", splits: Path | None = None
    ) -> TargetDataset:
        rows, notes = self.list_rows(facts, folder)
        tiff = next((row.path for row in rows if row.path.lower().endswith((".tif", ".tiff"))), "")
        if self.unreadable and tiff:
            try:
                open_rgb(folder / tiff)
            except DataError as error:
                raise DataError(
                    f"{folder / tiff} belongs to {self.unreadable}, not to {facts.title}",
                    fix=f"get {facts.title}: {facts.download}",
                ) from error
        return assemble(facts, folder, rows, pool=pool, splits=splits, notes=notes)

    def list_rows(
        self, facts: DatasetFacts, folder: Path
    ) -> tuple[list[ImageRow], tuple[str, ...]]:
        """List the images, and notes on other files.

        Raises DataError if there is no class folder, or a folder that is not a class.
        """
        root = find_class_tree(folder, self.trees, (*facts.classes, *self.synonyms))
        if root is None:
            raise DataError(
                f"{folder} holds no class folder of {facts.name}, such as {facts.classes[0]}",
                fix=f"expected below it: {facts.layout}",
            )
        tree = ClassTree.read(root, self.synonyms, self.ignored)
        names = match_names(tree.images, facts.classes, root)
        if unknown := [name for name in tree.images if name not in names]:
            raise DataError(
                f"{root} holds folders that are no class of {facts.name}: {', '.join(unknown[:5])}",
                fix=f"move them away; its {len(facts.classes)} classes start with "
                f"{facts.classes[0]}",
            )
        return list_tree_rows(tree, folder, facts.classes), tree.notes
