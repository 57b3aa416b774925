"""Every published entry: complete, plausible, and equal to what the papers print."""

import json
import re
from pathlib import Path

import pytest
from leaderboard.submission.chain import build_chain

from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId, TaskId
from fsbench.data import dataset_groups
from fsbench.data.catalog import SOURCES, TARGETS
from fsbench.results.names import file_stem
from leaderboard.badges import read_badges
from leaderboard.official import BOARD_FILE
from leaderboard.published import ENTRIES, PublishedEntry, load_published, read_published
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board

REGIME = ENTRIES.parent / "regime" / "entries"
CDFSL = ("chestx", "isic", "eurosat", "cropdisease")


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


def test_every_file_is_a_published_entry_and_every_folder_a_measured_one() -> None:
    files = [path for path in ENTRIES.iterdir() if path.is_file()]
    folders = [path for path in ENTRIES.iterdir() if path.is_dir()]
    published = {f"{entry.name}.json" for entry in load_published()}
    assert {path.name for path in files} == published | {BOARD_FILE}
    assert sorted(path.name for path in folders) == Board.open(ENTRIES).names()


@pytest.mark.parametrize("board", [ENTRIES, REGIME], ids=["pilot", "regime"])
def test_the_measured_entries_keep_every_rule_of_a_board(board: Path) -> None:
    inspection = inspect_board(board)
    assert not inspection.problems
    assert inspection.entries > 0


def test_every_measured_entry_was_run_again_in_every_cell() -> None:
    """Together its badges cover every result without a flip; unsigned, they stay claims."""
    board = Board.open(ENTRIES)
    for name in board.names():
        entry = board.entry(name)
        badges = [badge for _, badge in read_badges(ENTRIES / name)]
        assert badges, f"{name} was never verified"
        verified = {cell.cell for badge in badges for cell in badge.cells}
        assert verified == {str(cell.result.column) for cell in entry.cells}, name
        for badge in badges:
            assert badge.chain == build_chain(entry.cells).end
            assert badge.verdict == "verified", name
        assert entry.verification.words == "unsigned claim", name


def test_no_committed_record_names_a_path_of_somebodys_machine() -> None:
    """Results keep the command as it was typed; those of this repository were typed in a clone."""
    files = {path: path.read_text("utf8") for path in ENTRIES.parent.rglob("*.json")}
    typed = {p: re.findall(r'"(?:command|ref)": "(.*)"', text) for p, text in files.items()}
    assert sum(len(texts) for texts in typed.values()) > 10_000
    of_a_machine = re.compile(r"(^|[ =]|run:)(/|~)")
    assert [p for p, texts in typed.items() if any(map(of_a_machine.search, texts))] == []


def test_every_identity_and_digest_is_what_its_file_says() -> None:
    """Task, column and spec digest are read and printed byte for byte."""
    files = [path for path in ENTRIES.rglob("*.json") if '"spec_digest"' in path.read_text("utf8")]
    assert len(files) > 500
    for path in files:
        raw = json.loads(path.read_text("utf8"))
        result = Result.model_validate(raw)
        assert str(TaskId.parse(raw["task"])) == str(result.task) == raw["task"]
        assert ColumnId.parse(str(result.column)) == result.column
        assert result.spec.digest() == raw["spec_digest"]
        assert result.model_dump(mode="json") == raw
        assert path.stem == file_stem(result.spec)


def seal(method: str) -> PublishedEntry:
    return read_published(ENTRIES / f"seal-paper-{method}.json")


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
    cells = [seal(method).cell(f"{target}:5w{shots}s/{mode}") for target in CDFSL]
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
    cells = [cell for cell in seal(method).cells if "/" not in cell.task]
    assert cells[0].task == "tinyimagenet:in-domain"
    assert [round(100 * cell.mean, 2) for cell in cells] == list(row)
    assert all(cell.ci95 is None for cell in cells)


def test_the_probable_copy_error_is_marked() -> None:
    cell = seal("seal").cell("cropdisease:5w1s/affine")
    assert cell is not None
    assert "copy error" in cell.note


def printed(name: str, task: str) -> tuple[str, float, float | None]:
    """Table, mean and what follows the ± in percent."""
    cell = read_published(ENTRIES / f"{name}.json").cell(task)
    assert cell is not None
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
    entry = seal("seal")
    assert {c.task for c in entry.about({"isic"}, (), "affine").cells} == {
        f"isic:5w{k}s/affine" for k in (1, 5, 20, 50)
    }
    parts = entry.about({"flowers102"}, {"tinyimagenet"})
    assert [c.task for c in parts.cells] == ["tinyimagenet:in-domain", "flowers102:probe"]
    assert parts.transfers
    assert not entry.about((), {"tinyimagenet"}).transfers
    assert not entry.about({"tinyimagenet"}, {"isic"}).cells


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(seal("llf").model_dump_json())
    with pytest.raises(ValidationFailed, match=r"other\.json"):
        read_published(path)
