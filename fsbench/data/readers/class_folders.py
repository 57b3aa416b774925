"""Targets with one folder per class."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from fsbench.core.errors import DataError
from fsbench.data.assembly import ImageRow, Notes, list_tree_rows, missing_error
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree, find_class_tree
from fsbench.data.readers.base import TargetReader


class ClassFolders(TargetReader):
    """One folder per class; the canonical id of an image is `Class/file`.

    trees: where the class folders may lie, see `find_class_tree`; synonyms: class by another name
    of its folder; ignored: folders that are no class.
    """

    trees: tuple[str, ...]
    synonyms: Mapping[str, str] = Field({})
    ignored: tuple[str, ...] = ()

    def list_rows(self, facts: DatasetFacts, folder: Path) -> tuple[list[ImageRow], Notes]:
        """List the images, and notes on other files. Raise DataError for other folders."""
        root = find_class_tree(folder, self.trees, (*facts.classes, *self.synonyms))
        if root is None:
            what = f"class folders of {facts.name}, such as {facts.classes[0]}"
            raise missing_error(folder, what, facts)
        tree = ClassTree.read(root, facts.classes, self.synonyms, self.ignored)
        if tree.unknown:
            raise DataError(
                f"{root} has folders of no class of {facts.name}: {', '.join(tree.unknown[:5])}",
                fix=f"move them away; expected: {facts.layout}",
            )
        return list_tree_rows(tree, folder), tree.notes
