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


@pytest.mark.parametrize("method", ["normal", "normal-long", "llf", "seal"])
def test_seal_has_every_column_of_its_tables(method: str) -> None:
    cells = ENTRIES[f"seal-paper-{method}"].cells
    few = {f"{d}:5w{k}s/{m}" for d in CDFSL for k in (1, 5, 20, 50) for m in ("linear", "affine")}
    probes = {f"{d}:probe" for d in dataset_groups()["transfer"]}
    assert {c.task for c in cells} == few | probes | {"tinyimagenet:in-domain"}
    assert cells[0].task == "tinyimagenet:in-domain"
    assert all(cell.ci95 is None for cell in cells if "/" not in cell.task), "single runs"


PROBES = ("tinyimagenet:in-domain", *(f"{d}:probe" for d in dataset_groups()["transfer"]))


def few_shot(shots: int, head: str) -> tuple[str, ...]:
    return tuple(f"{target}:5w{shots}s/{head}" for target in CDFSL)


@pytest.mark.parametrize(
    ("method", "table", "tasks", "row"),
    [  # SEAL (CVPR 2023)
        ("normal", "Table 4", few_shot(1, "linear"), (21.01, 25.70, 53.41, 50.31)),
        ("normal", "Table 4", few_shot(5, "affine"), (20.82, 28.57, 53.35, 63.22)),
        ("normal", "Table 5", few_shot(50, "linear"), (26.55, 46.29, 82.20, 90.51)),
        ("seal", "Table 4", few_shot(1, "affine"), (21.30, 29.14, 55.68, 67.87)),
        ("seal", "Table 4", few_shot(5, "linear"), (24.42, 37.58, 74.61, 85.00)),
        ("seal", "Table 5", few_shot(20, "affine"), (26.99, 55.12, 87.70, 95.67)),
        ("normal-long", "Table 4", few_shot(1, "linear"), (20.40, 22.59, 36.60, 27.50)),
        ("normal-long", "Table 5", few_shot(50, "affine"), (24.62, 56.98, 85.17, 89.80)),
        ("llf", "Table 4", few_shot(5, "affine"), (20.44, 22.01, 30.83, 28.06)),
        ("llf", "Table 5", few_shot(20, "linear"), (22.54, 32.26, 67.79, 68.43)),
        ("normal", "Table 1", PROBES, (54.37, 34.31, 6.49, 6.24, 25.67, 8.99)),
        ("normal-long", "Table 1", PROBES, (49.27, 26.96, 8.07, 6.30, 24.85, 11.53)),
        ("llf", "Table 1", PROBES, (56.92, 22.84, 5.33, 4.65, 23.8, 8.69)),
        ("seal", "Table 1", PROBES, (59.22, 45.68, 8.49, 9.81, 35.37, 12.61)),
    ],
)
def test_rows_of_seal(
    method: str, table: str, tasks: tuple[str, ...], row: tuple[float, ...]
) -> None:
    cells = [find(ENTRIES[f"seal-paper-{method}"], task) for task in tasks]
    assert [round(100 * cell.mean, 2) for cell in cells] == list(row)
    assert {cell.table for cell in cells} == {table}


@pytest.mark.parametrize(
    ("method", "task", "ci"),
    [
        ("normal", "cropdisease:5w5s/affine", 2.35),
        ("llf", "isic:5w50s/linear", 0.5),
        ("normal-long", "cropdisease:5w50s/affine", 1.9),
        ("seal", "eurosat:5w1s/linear", 0.88),
    ],
)
def test_intervals(method: str, task: str, ci: float) -> None:
    assert find(ENTRIES[f"seal-paper-{method}"], task).ci95 == pytest.approx(ci / 100)


def test_the_probable_copy_error_is_marked() -> None:
    assert "copy error" in find(ENTRIES["seal-paper-seal"], "cropdisease:5w1s/affine").note


@pytest.mark.parametrize(
    ("name", "task", "table", "mean", "spread"),
    [  # read by hand in the papers
        ("weight-compander-paper-normal", "tinyimagenet:in-domain", "Table IV", 65.08, 0.38),
        ("weight-compander-paper-wc", "tinyimagenet:in-domain", "Table IV", 65.93, 0.12),
        ("swr-paper-vanilla", "tinyimagenet:in-domain", "Table 1", 39.12, 1.42),
        ("swr-paper-l2", "tinyimagenet:in-domain", "Table 1", 39.15, 1.08),
        ("swr-paper-l2-init", "tinyimagenet:in-domain", "Table 1", 38.70, 1.43),
        ("swr-paper-swr", "tinyimagenet:in-domain", "Table 1", 43.48, 0.25),
        ("swr-paper-vanilla-decay", "tinyimagenet:in-domain", "Table 5", 41.26, 2.36),
        ("swr-paper-swr-decay", "tinyimagenet:in-domain", "Table 5", 52.21, 1.23),
        ("swr-paper-swr-reinit-decay", "tinyimagenet:in-domain", "Table 5", 51.65, 0.70),
        ("seal-paper-freeze", "tinyimagenet:in-domain", "Table 7", 51.17, None),
        ("seal-paper-reinit", "tinyimagenet:in-domain", "Table 7", 58.87, None),
        ("seal-paper-reverse", "tinyimagenet:in-domain", "Table 7", 41.05, None),
        ("reinit-paper-baseline-scnn", "pets:in-domain", "Table 2", 13.7, 0.9),
        ("reinit-paper-fc-vgg16", "pets:in-domain", "Table 2", 29.7, 0.8),
        ("reinit-paper-lw-mobilenet", "pets:in-domain augmented", "Table 2", 41.7, 0.1),
        ("reinit-paper-welsr-resnet50", "pets:in-domain augmented dropout", "Table 2", 35.2, 0.2),
        ("reinit-paper-wels-mobilenet", "caltech101:in-domain", "Table 2", 40.9, 0.3),
        ("reinit-paper-dsd-resnet50", "pets:in-domain augmented", "Table 2", 39.1, 0.2),
    ],
)
def test_accuracies_in_the_domain(
    name: str, task: str, table: str, mean: float, spread: float | None
) -> None:
    cell = find(ENTRIES[name], task)
    assert (cell.table, round(100 * cell.mean, 2)) == (table, mean)
    assert cell.spread == (None if spread is None else pytest.approx(spread / 100))


def test_every_method_of_the_study_is_there_on_every_architecture() -> None:
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
