"""Published entries equal what the papers print; measured ones keep every rule of a board."""

import re
from functools import cache
from pathlib import Path

import pytest

from fsbench.core.tasks import ColumnId
from fsbench.data import dataset_groups
from fsbench.data.catalog import SOURCES, TARGETS
from fsbench.results.entry import ENTRY_FILE, EntryFile
from leaderboard.published import (
    PUBLISHED,
    PublishedCell,
    PublishedEntry,
    load_published,
    select_published,
)
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
    assert PublishedEntry.model_validate_json(entry.model_dump_json()) == entry


def test_every_file_is_a_published_entry_that_states_each_task_once() -> None:
    assert sorted(path.stem for path in PUBLISHED.iterdir()) == [e.name for e in load_published()]
    for entry in load_published():
        assert len({cell.task for cell in entry.cells}) == len(entry.cells)


@pytest.mark.parametrize(("study", "entries"), [("pilot", 35), ("regime", 62)])
def test_the_measured_entries_keep_every_rule_of_a_board(study: str, entries: int) -> None:
    inspection = inspect_board(STUDIES / study / "entries")
    assert not inspection.problems
    assert len(inspection.entries) == entries


@cache
def committed() -> dict[Path, str]:
    """The text of every committed entry.json."""
    return {path: path.read_text("utf8") for path in STUDIES.glob(f"*/entries/*/{ENTRY_FILE}")}


def test_no_committed_record_names_a_path_of_somebodys_machine() -> None:
    """Results keep the command as it was typed; those of this repository were typed in a clone."""
    typed = {p: re.findall(r'"(?:command|ref)": "(.*)"', text) for p, text in committed().items()}
    assert sum(len(texts) for texts in typed.values()) > 400
    of_a_machine = re.compile(r"(^|[ =]|run:)(/|~)")
    assert [p for p, texts in typed.items() if any(map(of_a_machine.search, texts))] == []


def test_every_entry_is_written_as_it_is_read() -> None:
    """Columns are read and printed byte for byte, and so is all else."""
    for path, text in committed().items():
        file = EntryFile.model_validate_json(text)
        assert file.to_text() == text, path
        assert all(str(ColumnId.parse(line.column)) == line.column for line in file.results)


def seal(method: str) -> PublishedEntry:
    return ENTRIES[f"seal-paper-{method}"]


@pytest.mark.parametrize("method", ["normal", "normal-long", "llf", "seal"])
def test_seal_has_every_cell_of_its_tables(method: str) -> None:
    few = {f"{d}:5w{k}s/{m}" for d in CDFSL for k in (1, 5, 20, 50) for m in ("linear", "affine")}
    probes = {f"{d}:probe" for d in dataset_groups()["transfer"]}
    assert {c.task for c in seal(method).cells} == few | probes | {"tinyimagenet:in-domain"}


@pytest.mark.parametrize(
    ("method", "shots", "mode", "row"),
    [  # SEAL (CVPR 2023), Tables 4 and 5
        ("normal", 1, "linear", (21.01, 25.70, 53.41, 50.31)),
        ("normal", 5, "affine", (20.82, 28.57, 53.35, 63.22)),
        ("normal", 50, "linear", (26.55, 46.29, 82.20, 90.51)),
        ("seal", 1, "affine", (21.30, 29.14, 55.68, 67.87)),
        ("seal", 5, "linear", (24.42, 37.58, 74.61, 85.00)),
        ("seal", 20, "affine", (26.99, 55.12, 87.70, 95.67)),
        ("seal", 50, "affine", (27.13, 60.59, 91.94, 97.91)),
        ("normal-long", 1, "linear", (20.40, 22.59, 36.60, 27.50)),
        ("llf", 5, "affine", (20.44, 22.01, 30.83, 28.06)),
        ("llf", 20, "linear", (22.54, 32.26, 67.79, 68.43)),
        ("normal-long", 50, "affine", (24.62, 56.98, 85.17, 89.80)),
    ],
)
def test_few_shot_rows(method: str, shots: int, mode: str, row: tuple[float, ...]) -> None:
    cells = [find(seal(method), f"{target}:5w{shots}s/{mode}") for target in CDFSL]
    assert [round(100 * cell.mean, 2) for cell in cells] == list(row)
    assert {cell.table for cell in cells} == {"Table 4" if shots < 20 else "Table 5"}


@pytest.mark.parametrize(
    ("method", "task", "ci"),
    [
        ("normal", "cropdisease:5w5s/affine", 2.35),
        ("llf", "isic:5w50s/linear", 0.5),
        ("llf", "cropdisease:5w50s/affine", 2.92),
        ("normal-long", "cropdisease:5w50s/affine", 1.9),
        ("seal", "eurosat:5w1s/linear", 0.88),
        ("seal", "cropdisease:5w50s/affine", 0.40),
    ],
)
def test_intervals(method: str, task: str, ci: float) -> None:
    cell = find(seal(method), task)
    assert cell.ci95 == pytest.approx(ci / 100)


@pytest.mark.parametrize(
    ("method", "row"),
    [
        ("normal", (54.37, 34.31, 6.49, 6.24, 25.67, 8.99)),
        ("normal-long", (49.27, 26.96, 8.07, 6.30, 24.85, 11.53)),
        ("llf", (56.92, 22.84, 5.33, 4.65, 23.8, 8.69)),
        ("seal", (59.22, 45.68, 8.49, 9.81, 35.37, 12.61)),
    ],
)
def test_probe_rows(method: str, row: tuple[float, ...]) -> None:
    """SEAL Table 1, TinyImageNet first; single runs without interval."""
    cells = [cell for cell in seal(method).cells if "/" not in cell.task]
    assert cells[0].task == "tinyimagenet:in-domain"
    assert [round(100 * cell.mean, 2) for cell in cells] == list(row)
    assert all(cell.ci95 is None for cell in cells)


def test_the_probable_copy_error_is_marked() -> None:
    cell = find(seal("seal"), "cropdisease:5w1s/affine")
    assert "copy error" in cell.note


def printed(name: str, task: str) -> tuple[str, float, float | None]:
    """Table, mean and what follows the ± in percent."""
    cell = find(ENTRIES[name], task)
    spread = None if cell.spread is None else round(100 * cell.spread, 2)
    return cell.table, round(100 * cell.mean, 2), spread


@pytest.mark.parametrize(
    ("name", "expected"),
    [  # read by hand in the papers
        ("weight-compander-paper-normal", ("Table IV", 65.08, 0.38)),
        ("weight-compander-paper-wc", ("Table IV", 65.93, 0.12)),
        ("swr-paper-vanilla", ("Table 1", 39.12, 1.42)),
        ("swr-paper-l2", ("Table 1", 39.15, 1.08)),
        ("swr-paper-l2-init", ("Table 1", 38.70, 1.43)),
        ("swr-paper-swr", ("Table 1", 43.48, 0.25)),
        ("swr-paper-vanilla-decay", ("Table 5", 41.26, 2.36)),
        ("swr-paper-l2-decay", ("Table 5", 40.80, 1.24)),
        ("swr-paper-l2-init-decay", ("Table 5", 41.99, 0.48)),
        ("swr-paper-swr-decay", ("Table 5", 52.21, 1.23)),
        ("swr-paper-swr-reinit-decay", ("Table 5", 51.65, 0.70)),
        ("seal-paper-freeze", ("Table 7", 51.17, None)),
        ("seal-paper-reinit", ("Table 7", 58.87, None)),
        ("seal-paper-reverse", ("Table 7", 41.05, None)),
    ],
)
def test_accuracies_in_the_domain(name: str, expected: tuple[str, float, float | None]) -> None:
    assert printed(name, "tinyimagenet:in-domain") == expected


@pytest.mark.parametrize(
    ("name", "task", "mean", "spread"),
    [  # The Impact of Reinitialization, Table 2
        ("baseline-scnn", "pets:in-domain", 13.7, 0.9),
        ("fc-vgg16", "pets:in-domain", 29.7, 0.8),
        ("lw-vgg16", "pets:in-domain", 25.6, 0.9),
        ("lw-resnet50", "pets:in-domain", 28.5, 0.1),
        ("dsd-resnet50", "pets:in-domain augmented", 39.1, 0.2),
        ("lw-mobilenet", "pets:in-domain augmented", 41.7, 0.1),
        ("welsr-resnet50", "pets:in-domain augmented dropout", 35.2, 0.2),
        ("welsr-scnn", "caltech101:in-domain", 49.9, 0.1),
        ("wels-mobilenet", "caltech101:in-domain", 40.9, 0.3),
        ("wels-resnet50", "caltech101:in-domain augmented", 57.5, 0.1),
        ("fc-scnn", "caltech101:in-domain augmented dropout", 52.4, 0.4),
        ("lw-resnet50", "caltech101:in-domain augmented dropout", 50.3, 0.1),
    ],
)
def test_reinitialization_rows(name: str, task: str, mean: float, spread: float) -> None:
    assert printed(f"reinit-paper-{name}", task) == ("Table 2", mean, spread)


def test_every_method_of_the_study_stands_on_every_architecture() -> None:
    names = {e.name.removeprefix("reinit-paper-") for e in load_published() if "reinit-p" in e.name}
    archs = ("scnn", "vgg16", "mobilenet", "resnet50")
    assert names == {
        f"{m}-{a}" for m in ("baseline", "welsr", "dsd", "wels", "fc", "lw") for a in archs
    }


def test_a_row_is_cut_to_what_a_table_shows() -> None:
    def cut(column: str, *sources: str) -> list[str]:
        rows = select_published(None, [ColumnId.parse(column)], sources)
        return [c.task for row in rows if row.name == "seal-paper-seal" for c in row.cells]

    assert cut("flowers102:probe 64px", "tinyimagenet") == [
        "tinyimagenet:in-domain",
        "flowers102:probe",
    ]
    assert cut("flowers102:probe 64px", "isic") == ["flowers102:probe"]
    assert cut("tinyimagenet:probe 64px") == []
