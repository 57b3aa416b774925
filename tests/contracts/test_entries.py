"""Published entries equal what the papers print; measured ones keep every rule of a board."""

import csv
import re
from pathlib import Path

import pytest

from fsbench.core.tasks import ColumnId
from fsbench.data import dataset_groups
from fsbench.data.catalog import SOURCES, TARGETS
from fsbench.results.entry import ENTRY_FILE, EntryFile
from leaderboard.published import PUBLISHED, PublishedCell, PublishedEntry, load_published
from leaderboard.rules.board import inspect_board

STUDIES = PUBLISHED.parent / "studies"
ENTRIES = {entry.name: entry for entry in load_published()}
CDFSL = ("chestx", "isic", "eurosat", "cropdisease")


def find(entry: PublishedEntry, task: str) -> PublishedCell:
    (cell,) = (cell for cell in entry.cells if cell.task == task)
    return cell


@pytest.mark.parametrize("entry", load_published(), ids=lambda e: e.name)
def test_entry_is_apart_referenced_and_a_fraction(entry: PublishedEntry) -> None:
    assert entry.kind == "published"
    assert entry.link.startswith("https://") or entry.link == "no public code"
    assert entry.cells
    for cell in entry.cells:
        assert cell.table.startswith("Table ")
        assert 0 < cell.mean < 1
        assert cell.ci95 is None or 0.001 < cell.ci95 < 0.05
        assert cell.spread is None or (cell.in_domain and cell.ci95 is None)
        assert cell.dataset in (SOURCES if cell.in_domain else TARGETS).names()
        assert cell is find(entry, cell.task), "stated once"
    assert PublishedEntry.model_validate_json(entry.model_dump_json()) == entry
    assert (PUBLISHED / f"{entry.name}.json").is_file()


@pytest.mark.parametrize(("study", "entries"), [("pilot", 38), ("real", 19), ("regime", 71)])
def test_the_measured_entries_keep_every_rule_of_a_board(study: str, entries: int) -> None:
    inspection = inspect_board(STUDIES / study / "entries")
    assert not inspection.problems
    assert len(inspection.entries) == entries


def test_committed_entries_are_written_as_read_and_name_no_path_of_a_machine() -> None:
    """Results keep the command as it was typed; those of this repository were typed in a clone."""
    files = {path: path.read_text("utf8") for path in STUDIES.glob(f"*/entries/*/{ENTRY_FILE}")}
    typed = {p: re.findall(r'"(?:command|ref)":"([^"\\]*)', text) for p, text in files.items()}
    assert sum(len(texts) for texts in typed.values()) > 400
    of_a_machine = re.compile(r"(^|[ =]|run:)(/|~)")
    assert [p for p, texts in typed.items() if any(map(of_a_machine.search, texts))] == []
    for path, text in files.items():
        file = EntryFile.model_validate_json(text)
        assert file.to_text() == text, path
        assert all(str(ColumnId.parse(line.column)) == line.column for line in file.results)


@pytest.mark.parametrize("method", ["normal", "normal-long", "llf", "seal"])
def test_seal_has_every_column_of_its_tables(method: str) -> None:
    cells = ENTRIES[f"seal-paper-{method}"].cells
    few = {f"{d}:5w{k}s/{m}" for d in CDFSL for k in (1, 5, 20, 50) for m in ("linear", "affine")}
    probes = {f"{d}:probe" for d in dataset_groups()["transfer"]}
    assert {c.task for c in cells} == few | probes | {"tinyimagenet:in-domain"}
    assert cells[0].task == "tinyimagenet:in-domain"
    assert all(cell.ci95 is None for cell in cells if "/" not in cell.task), "single runs"


with (Path(__file__).parents[1] / "golden" / "published.csv").open(newline="") as file:
    PRINTED = list(csv.DictReader(file))
"""Numbers (%) as they were read by hand in the papers."""


@pytest.mark.parametrize("printed", PRINTED, ids=lambda row: f"{row['entry']} {row['task']}")
def test_entries_have_the_numbers_of_the_papers(printed: dict[str, str]) -> None:
    cell = find(ENTRIES[printed["entry"]], printed["task"])
    assert cell.table == printed["table"]
    for field in ("mean", "ci95", "spread"):
        if printed[field]:
            assert round(100 * getattr(cell, field), 2) == float(printed[field]), field


def test_every_method_of_the_study_is_there_on_every_architecture() -> None:
    methods, archs = (
        ["baseline", "welsr", "dsd", "wels", "fc", "lw"],
        ["scnn", "vgg16", "mobilenet", "resnet50"],
    )
    names = {f"reinit-paper-{method}-{arch}" for method in methods for arch in archs}
    assert {name for name in ENTRIES if name.startswith("reinit-paper-")} == names
    assert "copy error" in find(ENTRIES["seal-paper-seal"], "cropdisease:5w1s/affine").note
