"""Cards of data sets, --data ROOT, --data NAME=DIR and FSBENCH_DATA, and aliases."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.cases import read_cases

from fsbench.core.errors import DataError, FsbenchError, UnknownName
from fsbench.data import DataRoots, catalog
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


@pytest.mark.parametrize("more", read_cases("data")["cards"])
def test_a_wrong_field_is_refused(write: Write, more: str) -> None:
    with pytest.raises(ValidationError):
        write(more)


EUROSAT = catalog.all_facts()["eurosat"]


def test_a_named_folder_beats_the_root_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("root/eurosat", "x", "env/EuroSAT", "a=b/eurosat"):
        (tmp_path / name).mkdir(parents=True)
    environment = os.pathsep.join([str(tmp_path / "env"), f"isic={tmp_path / 'x'}"])
    monkeypatch.setenv("FSBENCH_DATA", environment)
    assert DataRoots.parse() == DataRoots((tmp_path / "env",), {"isic": tmp_path / "x"})
    for values, folder in (
        ((), "env/EuroSAT"),
        (("root",), "root/eurosat"),
        (("root/eurosat",), "root/eurosat"),
        (("a=b",), "a=b/eurosat"),
    ):
        roots = DataRoots.parse([str(tmp_path / value) for value in values])
        assert roots.folder(EUROSAT) == tmp_path / folder
    named = DataRoots.parse([str(tmp_path / "root"), f"EuroSAT={tmp_path / 'x'}"])
    assert named.folder(EUROSAT) == tmp_path / "x"
    assert DataRoots.parse([f"isic={tmp_path}"]).named == {"isic": tmp_path}


def test_missing_data_names_folder_layout_and_command(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        DataRoots.parse([str(tmp_path)]).folder(EUROSAT)
    for text in (str(tmp_path / "eurosat"), "2750/<Class>", "fsbench data download eurosat"):
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("nowhere", DataError, "nowhere is not a folder"),
        ("isic=nowhere", DataError, "--data isic="),
        ("eurosatt=.", UnknownName, "did you mean 'eurosat'"),
        ("n" * 300, DataError, "is not a folder"),
    ],
)
def test_wrong_values_are_named(value: str, kind: type[FsbenchError], message: str) -> None:
    with pytest.raises(kind, match=message):
        DataRoots.parse([value])


def test_a_name_as_it_is_written_comes_before_its_spellings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = EUROSAT.model_copy(update={"aliases": ()})
    named = {name: facts.model_copy(update={"name": name}) for name in ("mine", "mine-dataset")}
    monkeypatch.setattr(catalog, "all_facts", lambda plugins: named)
    for name in named:
        assert catalog.resolve_alias(name) == name
    assert catalog.resolve_alias("Mine Dataset") == "mine"
