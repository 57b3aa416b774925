"""--data ROOT, --data NAME=DIR, FSBENCH_DATA, and aliases."""

import os
from pathlib import Path

import pytest

from fsbench.core.errors import DataError, FsbenchError, UnknownName
from fsbench.data import DataRoots, catalog

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
