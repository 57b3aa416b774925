"""What every data set of the registries must keep."""

import re

import pytest

from fsbench.data import SOURCES, TARGETS, dataset_groups, resolve_alias
from fsbench.data.cards import DatasetFacts
from fsbench.data.catalog import all_facts
from fsbench.data.download import PACKED

ALL = all_facts()
CDFSL_TOTALS = {"chestx": 25_848, "isic": 10_015, "eurosat": 27_000, "cropdisease": 43_456}


@pytest.mark.parametrize("name", ALL)
def test_facts_are_complete(name: str) -> None:
    facts = ALL[name]
    assert facts.name == name
    assert len(facts.classes) == len(set(facts.classes)) >= 5
    if facts.split is None:
        assert len(facts.images_per_class) == len(facts.classes)
    assert min(facts.images_per_class or facts.split or (0,)) > 0
    assert facts.n_images == sum(facts.images_per_class or facts.split or ())
    for field in ("title", "label_rule", "dropped", "layout", "download", "license", "citation"):
        assert len(getattr(facts, field)) >= 3, field
    assert facts.folders
    for archive in facts.archives:
        assert archive.file.endswith((*PACKED, ".txt", ".mat", "-ubyte.gz"))
        assert archive.url.startswith("https:")
        assert re.match("(md5|sha1|sha256):[0-9a-f]+$", archive.known_hash)
    assert DatasetFacts.model_validate_json(facts.model_dump_json()) == facts


@pytest.mark.parametrize("name", ALL)
def test_every_alias_and_folder_name_leads_to_one_data_set(name: str) -> None:
    for spelling in (name, *ALL[name].aliases):
        assert resolve_alias(spelling) == resolve_alias(spelling.upper()) == name
    others = [facts for facts in ALL.values() if facts.name != name]
    lower = {folder.lower() for folder in ALL[name].folders}
    assert not any(lower & {folder.lower() for folder in facts.folders} for facts in others)


@pytest.mark.parametrize("name", [*CDFSL_TOTALS])
def test_cdfsl_counts_are_the_official_ones(name: str) -> None:
    facts = ALL[name]
    assert sum(facts.images_per_class) == CDFSL_TOTALS[name]
    assert min(facts.images_per_class) >= 65, "50 shots and 15 queries"
    lists = facts.startup
    assert lists is not None
    assert re.fullmatch("[0-9a-f]{64}", lists.labeled_80_hash)
    assert re.fullmatch("[0-9a-f]{64}", lists.full_hash)


@pytest.mark.parametrize(
    ("name", "classes", "split"),
    [  # SEAL (CVPR 2023), Table 3
        ("flowers102", 102, (1020, 6149)),
        ("cub200", 200, (5994, 5794)),
        ("aircraft", 100, (3334, 3333)),
        ("mit67", 67, (5360, 1340)),
        ("dogs", 120, (12_000, 8_580)),
    ],
)
def test_transfer_counts_are_the_official_ones(
    name: str, classes: int, split: tuple[int, int]
) -> None:
    assert (len(ALL[name].classes), ALL[name].split) == (classes, split)
    whole = dict.fromkeys(range(classes - 1), 1) | {classes - 1: sum(split) - classes + 1}
    assert ALL[name].complete(whole)
    assert not ALL[name].complete(whole | {0: 2})
    assert not ALL[name].complete({0: sum(split)})


def test_groups_name_targets_and_classes_stand_in_the_official_order() -> None:
    """ISIC's is that of its columns; the others sort texts."""
    groups = dataset_groups()
    assert set(groups) == {"cdfsl", "cdfsl-small", "transfer", "toy"}
    assert set(groups["cdfsl"]) - set(groups["cdfsl-small"]) == {"chestx"}
    assert set(groups["transfer"]) == {n for n in TARGETS.names() if ALL[n].split}
    assert {name for names in groups.values() for name in names} <= set(TARGETS.names())
    assert {ALL[name].domain for name in SOURCES.names()} == {"source", "toy"}
    for name in ("eurosat", "cropdisease", "chestx", "mit67", "dogs", "cub200"):
        assert list(ALL[name].classes) == sorted(ALL[name].classes), name
    assert " ".join(ALL["isic"].classes) == "MEL NV BCC AKIEC BKL DF VASC"
