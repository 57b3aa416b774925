"""Every published entry: complete, plausible, and equal to what the papers print."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsbench.data import groups
from fsbench.errors import ValidationFailed
from leaderboard.published import ENTRIES, PublishedEntry, published, read_published

TARGETS = ("chestx", "isic", "eurosat", "cropdisease")


@pytest.mark.parametrize("entry", published(), ids=lambda e: e.name)
def test_entry_is_apart_referenced_and_a_fraction(entry: PublishedEntry) -> None:
    assert entry.kind == "published"
    assert entry.link.startswith("https://")
    assert entry.cells
    for cell in entry.cells:
        assert cell.table.startswith("Table ")
        assert 0 < cell.mean < 1
        assert cell.ci95 is None or 0.001 < cell.ci95 < 0.05
    assert PublishedEntry.model_validate_json(entry.model_dump_json()) == entry


def test_every_file_is_an_entry() -> None:
    assert sorted(path.stem for path in ENTRIES.iterdir()) == [e.name for e in published()]


def seal(method: str) -> PublishedEntry:
    return read_published(ENTRIES / f"seal-paper-{method}.json")


@pytest.mark.parametrize("method", ["normal", "normal-long", "llf", "seal"])
def test_seal_has_every_cell_of_its_tables(method: str) -> None:
    few = {f"{d}:5w{k}s/{m}" for d in TARGETS for k in (1, 5, 20, 50) for m in ("linear", "affine")}
    probes = {f"{d}:probe" for d in groups()["transfer"]}
    assert {cell.task for cell in seal(method).cells} == few | probes


@pytest.mark.parametrize(
    ("method", "shots", "mode", "row"),
    [  # protocol.md 7c
        ("normal", 1, "linear", (21.01, 25.70, 53.41, 50.31)),
        ("normal", 5, "affine", (20.82, 28.57, 53.35, 63.22)),
        ("normal", 50, "linear", (26.55, 46.29, 82.20, 90.51)),
        ("seal", 1, "affine", (21.30, 29.14, 55.68, 67.87)),
        ("seal", 5, "linear", (24.42, 37.58, 74.61, 85.00)),
        ("seal", 20, "affine", (26.99, 55.12, 87.70, 95.67)),
        ("seal", 50, "affine", (27.13, 60.59, 91.94, 97.91)),
        # SEAL Tables 4 and 5, read by hand
        ("normal-long", 1, "linear", (20.40, 22.59, 36.60, 27.50)),
        ("llf", 5, "affine", (20.44, 22.01, 30.83, 28.06)),
        ("llf", 20, "linear", (22.54, 32.26, 67.79, 68.43)),
        ("normal-long", 50, "affine", (24.62, 56.98, 85.17, 89.80)),
    ],
)
def test_few_shot_rows(method: str, shots: int, mode: str, row: tuple[float, ...]) -> None:
    cells = [seal(method).cell(f"{target}:5w{shots}s/{mode}") for target in TARGETS]
    assert [round(100 * cell.mean, 2) for cell in cells if cell] == list(row)
    assert {cell.table for cell in cells if cell} == {"Table 4" if shots < 20 else "Table 5"}


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
    cell = seal(method).cell(task)
    assert cell is not None
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
    entry = seal(method)
    probes = [cell for cell in entry.cells if cell.task.endswith(":probe")]
    found = [entry.source_accuracy, *(cell.mean for cell in probes)]
    assert [round(100 * (value or 0), 2) for value in found] == list(row)
    assert all(cell.ci95 is None for cell in probes)


def test_the_probable_copy_error_is_marked() -> None:
    cell = seal("seal").cell("cropdisease:5w1s/affine")
    assert cell is not None
    assert "copy error" in cell.note


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(seal("llf").model_dump_json())
    with pytest.raises(ValidationFailed, match=r"other\.json"):
        read_published(path)
