"""Cards of data sets: what they state, and that a wrong one is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from fsbench.core.errors import DataError
from fsbench.data.cards import Archive, DatasetFacts
from fsbench.data.catalog import read_card

CARD = """\
title: Three birds
label_rule: class id = rank of the name
layout: <class>/*.jpg
folders: [birds]
download: nothing to fetch
license: MIT
citation: none
homepage: none
reader: {class_folders.ClassFolders: {trees: [.]}}
"""

Write = Callable[[str], DatasetFacts]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Read a card of the common fields and some more, as that of the set `birds`."""

    def read(more: str) -> DatasetFacts:
        path = tmp_path / "targets" / "birds.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(CARD + more)
        read_card.cache_clear()
        return read_card(path).FACTS

    return read


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ("classes: {owl: 3, wren: 2}", (3, 2)),
        ("classes: [owl, wren]\nimages_per_class: 7", (7, 7)),
        ("classes: [owl, wren]\nsplit: [3, 4]", ()),
    ],
)
def test_class_counts_are_the_official_numbers(
    write: Write, more: str, counts: tuple[int, ...]
) -> None:
    line = "archives:\n  - {url: 'https://x.org/a.zip', known_hash: 'md5:0', official: false}\n"
    card = write(f"{more}\n{line}")
    assert (card.name, card.domain, card.classes) == ("birds", "target", ("owl", "wren"))
    assert card.images_per_class == counts
    assert card.archives == (Archive("https://x.org/a.zip", "md5:0", official=False),)
    assert card.archives[0].file == "a.zip"
    with pytest.raises(DataError, match="birds has no pool labeled_80"):
        card.listed_ids("labeled_80", None)


@pytest.mark.parametrize(
    "more",
    [
        "classes: [owl, no]\nimages_per_class: 1",  # YAML reads a truth value
        "classes: [1, 2]\nimages_per_class: 1",
        "classes: {owl: many}",
        "classes: [owl]\nimages_per_class: 1\nlicence: MIT",
        "classes: [owl]\nimages_per_class: 1\narchives: [{url: a.zip, hash: 'md5:0'}]",
        "classes: [owl]\nimages_per_class: 1\narchives: [{known_hash: 'md5:0'}]",
        "classes: [owl]\nimages_per_class: 1\nstartup: {prefix: Birds}",
        "classes: {owl: 1}\nreader: {class_folders.ClassFolders: {tree: .}}",
    ],
)
def test_a_wrong_field_is_refused(write: Write, more: str) -> None:
    with pytest.raises(ValidationError):
        write(more)
