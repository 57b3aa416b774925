"""--data ROOT, --data NAME=DIR, FSBENCH_DATA."""

import os
from pathlib import Path

import pytest

from fsbench.core.errors import DataError, UnknownName, UsageError
from fsbench.data import DataRoots, catalog, resolve_alias
from fsbench.data.catalog import all_facts

EUROSAT = all_facts()["eurosat"]


def test_a_named_folder_beats_the_root_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("root/eurosat", "own", "env/EuroSAT"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("FSBENCH_DATA", str(tmp_path / "env"))
    root = str(tmp_path / "root")
    assert DataRoots.parse().folder(EUROSAT) == tmp_path / "env" / "EuroSAT"
    assert DataRoots.parse([root]).folder(EUROSAT) == tmp_path / "root" / "eurosat"
    named = DataRoots.parse([root, f"EuroSAT={tmp_path / 'own'}"])
    assert named.folder(EUROSAT) == tmp_path / "own"


def test_the_environment_takes_several_and_named_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    value = os.pathsep.join([str(tmp_path), f"isic={tmp_path / 'a'}"])
    monkeypatch.setenv("FSBENCH_DATA", value)
    assert DataRoots.parse() == DataRoots((tmp_path,), {"isic": tmp_path / "a"})
    assert DataRoots.parse([f"isic={tmp_path}"]).named == {"isic": tmp_path}


def test_a_root_that_is_the_data_set_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "eurosat").mkdir()
    assert DataRoots.parse([str(tmp_path / "eurosat")]).folder(EUROSAT) == tmp_path / "eurosat"


def test_missing_data_names_folder_layout_and_command(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        DataRoots.parse([str(tmp_path)]).folder(EUROSAT)
    text = str(caught.value)
    assert str(tmp_path / "eurosat") in text
    assert "2750/<Class>" in text
    assert "fsbench data download eurosat" in text


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere is not a folder"):
        DataRoots.parse([str(tmp_path / "nowhere")])
    with pytest.raises(DataError, match="--data isic="):
        DataRoots.parse([f"isic={tmp_path / 'nowhere'}"])


def test_an_unknown_name_is_a_usage_error_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'eurosat'"):
        DataRoots.parse([f"eurosatt={tmp_path}"])


def test_a_path_with_an_equals_sign_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "a=b" / "eurosat").mkdir(parents=True)
    assert DataRoots.parse([str(tmp_path / "a=b")]).folder(EUROSAT).name == "eurosat"


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("ISIC", "isic"),
        ("isic2018", "isic"),
        ("plant-disease", "cropdisease"),
        ("PlantVillage", "cropdisease"),
        ("tiny-imagenet-200", "tinyimagenet"),
        ("ChestX", "chestx"),
        ("toy-scan", "toy_scan"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert resolve_alias(alias) == name


def test_a_download_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder for eurosat"):
        DataRoots().destination(EUROSAT)
    new = DataRoots.parse([str(tmp_path / "new")], must_exist=False)
    assert new.destination(EUROSAT) == tmp_path / "new" / "eurosat"


def test_a_name_as_it_is_written_comes_before_its_spellings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = catalog.all_facts(plugins=False)["eurosat"].model_copy(update={"aliases": ()})
    named = {name: facts.model_copy(update={"name": name}) for name in ("mine", "mine-dataset")}
    monkeypatch.setattr(catalog, "all_facts", lambda plugins: named)
    for name in named:
        assert catalog.resolve_alias(name) == name
    assert catalog.resolve_alias("Mine Dataset") == "mine"
