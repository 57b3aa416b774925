"""`fsbench report` from results and boards to files."""

import csv
import io
import re
from pathlib import Path

import pytest
from support import fakes
from support.cli import CommandLine
from support.reading import read

import fsbench
from fsbench.api.submit import submit
from fsbench.core.plotting import PAPER


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models at one and five shots, and a probe of one of them."""
    root = tmp_path / "results"
    for name, accuracy in (("weak", 0.3), ("strong", 0.8)):
        for shots in (1, 5):
            fakes.write(root, accuracy, name=name, shots=shots)
    fakes.write_probe(root, name="strong")
    return root


def lines(text: str) -> dict[tuple[str, str], dict[str, str]]:
    read_back = csv.DictReader(io.StringIO(text, newline=""))
    return {(row["entry"], row["column"]): row for row in read_back}


def test_numbers_are_those_of_the_results(results: Path, cli: CommandLine) -> None:
    table = lines(cli("report", results, "--format", "csv", "--control", "weak").out)
    for result in read(results):
        row = table[result.backbone.ref.rpartition("/")[2], str(result.column)]
        assert (float(row["mean"]), float(row["ci95"])) == (result.score.mean, result.score.ci95)
        assert int(row["n"]) == result.score.n
        assert row["flags"] == ", ".join(result.flags) != ""
    column = "folder-blobs:5w1s/linear@ibm 32px n_query=5"
    assert table["strong", column]["best"] == "1"
    assert float(table["strong", column]["p"]) < 1e-6
    assert table["weak", column]["best"] == "0"
    assert float(table["strong", "source"]["mean"]) == 0.25
    assert ("weak", "overall") in table, "it lacks the probe, which has a table of its own"


SIGNS = {
    "md": "### results",
    "latex": r"\toprule",
    "html": "<!doctype",
    "json": "[",
    "csv": "table,",
}


@pytest.mark.parametrize("shape", SIGNS)
def test_every_format_reaches_its_file(
    results: Path, tmp_path: Path, shape: str, cli: CommandLine
) -> None:
    path, command = tmp_path / "new" / f"paper.{shape}", ("--format", shape, "--control", "weak")
    assert cli("report", results, *command, "-o", path).out == ""
    with path.open(encoding="utf8", newline="") as file:
        written = file.read()
    assert SIGNS[shape] in written
    assert cli("report", results, *command).out == written
    if shape not in {"json", "csv"}:
        assert "custom" in written
        assert "†" in written or r"\dagger" in written


@pytest.mark.parametrize("gap", [-0.2, -0.06, -0.05, 0.0, 0.03, 0.04, 0.05, 0.06, 0.07, 0.2])
def test_daggers_of_two_models_say_what_compare_says(
    gap: float, tmp_path: Path, cli: CommandLine
) -> None:
    """Both after Holm over the tasks, here by Student's t and there by random swaps."""
    for name, accuracy in (("control", 0.5), ("other", 0.5 + gap)):
        for shots in (1, 5, 20):
            fakes.write(tmp_path / name, accuracy, name=name, shots=shots)
    folders = tmp_path / "other", tmp_path / "control"
    shown = cli("report", *folders, "--format", "latex", "--control", "control").out
    (row,) = (line for line in shown.splitlines() if line.startswith("other & "))
    signs = {"A": r"\dagger", "B": r"\ddagger", None: None}
    (comparison,) = fsbench.compare(*folders)
    gaps = [*comparison.tasks, comparison.overall]
    daggers = [re.search(r"\\d+agger", text) for text in row.split(" & ")[1:5]]
    assert [sign and sign[0] for sign in daggers] == [signs[gap.better] for gap in gaps]


def test_a_board_reports_as_its_results_do(results: Path, tmp_path: Path, cli: CommandLine) -> None:
    board = tmp_path / "board"
    for name in ("weak", "strong"):
        submit(results, board, fakes.DECLARATION, name=name, models=[name])
    shown = cli("report", "--board", board, "--format", "csv", "--control", "weak").out
    own_lines = lines(cli("report", results, "--format", "csv", "--control", "weak").out)
    reported = lines(shown)
    for key, row in own_lines.items():
        unsigned = "" if key[1] == "source" else "self-reported"  # no badge vouches for it
        flags = ", ".join(filter(None, (row["flags"], unsigned)))
        assert reported[key] == {**row, "table": "board", "flags": flags}
    assert reported.keys() == own_lines.keys()


def test_the_same_cell_twice_counts_once_unless_its_outcomes_differ(
    results: Path, tmp_path: Path, cli: CommandLine
) -> None:
    twice = cli("report", results, results, "--format", "csv").out
    assert cli("report", results, "--format", "csv").out == twice
    fakes.write(tmp_path / "other", 0.5, name="weak")
    assert (
        "folder-blobs:5w1s/linear@ibm 32px n_query=5"
        in cli("report", results, tmp_path / "other", code=5).err
    )


def test_what_is_no_report_is_refused_with_a_way_out(
    results: Path, tmp_path: Path, cli: CommandLine
) -> None:
    for arguments, words in (
        ((results, "--control", "week"), "did you mean 'weak'"),
        ((results, "--format", "latx"), "did you mean 'latex'"),
        ((results, "--board", tmp_path), "name results, or --board"),
    ):
        assert words in cli("report", *arguments, code=2).err
    assert not list(tmp_path.glob("**/*.md"))


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A control, a model like it and a better one, at 1, 5 and 20 shots."""
    for name, accuracy in (("control", 0.5), ("like", 0.501), ("better", 0.7)):
        for shots in (1, 5, 20):
            fakes.write(tmp_path / "three", accuracy, name=name, shots=shots)
    return tmp_path / "three"


def test_figures_have_the_numbers_of_the_tables(three: Path, cli: CommandLine) -> None:
    """Accuracy by shots with intervals of paired gaps, and the gaps over a control."""
    command = ("report", three, "--format", "csv", "--control")
    over_best, over_control = (lines(cli(*command, n).out) for n in ("better", "control"))
    columns = [f"folder-blobs:5w{n}s/linear@ibm 32px n_query=5" for n in (1, 5, 20)]
    results = fsbench.load_results(three)
    (axes,) = results.plot().axes
    shown = [text.get_text() for text in results.plot().legends[0].get_texts()]
    assert shown == sorted(shown, key=lambda n: -float(over_best[n, columns[0]]["mean"]))
    for name, line, bars in zip(shown, axes.get_lines(), axes.collections, strict=True):
        rows = [over_best[name, column] for column in columns]
        assert line.get_ydata().tolist() == pytest.approx([100 * float(r["mean"]) for r in rows])
        assert line.get_xdata().tolist() == [1, 5, 20]
        halves = [(high - low) / 2 for (_, low), (_, high) in bars.get_segments()]
        assert halves == pytest.approx([100 * float(row["gap_ci95"] or 0) for row in rows])
    axes = results.plot("control", columns=1).axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[1:] == ["5-shot", "20-shot", "mean"]
    marks = [bar[0] for bar in axes.containers]
    rows = [over_control[name, c] for c in (*columns, "overall") for name in ("better", "like")]
    gaps = [mark.get_xdata()[0] for mark in marks]
    assert gaps == pytest.approx([100 * float(row["gap"]) for row in rows])
    hollow = [mark.get_markerfacecolor() == PAPER for mark in marks]
    assert hollow == [not row["mark"] for row in rows]
    assert hollow[:2] == [False, True]
    (comparison,) = fsbench.compare(three / "better", three / "control")
    (axes,) = comparison.plot().axes
    drawn = [bar[0].get_xdata()[0] for bar in axes.containers]
    assert drawn == pytest.approx([100 * gap.gap for gap in comparison.gaps()])
    assert {bar[0].get_marker() for bar in axes.containers} == {"^"}


def test_a_board_is_drawn_by_tiers(three: Path, tmp_path: Path, cli: CommandLine) -> None:
    board, figures = tmp_path / "board", tmp_path / "figures"
    for name in ("control", "like", "better"):
        submit(three, board, fakes.DECLARATION, name=name, models=[name])
    ranked = fsbench.leaderboard(board)
    (axes,) = ranked.plot().axes
    tiers = [e.tier for tier in ranked.tracks[0].ranking.tiers for e in tier]
    assert [text.get_text()[-6:] for text in axes.texts] == [f"tier {tier}" for tier in tiers]
    assert (tiers, axes.get_yticklabels()[0].get_text()) == ([1, 2, 2], "better")
    assert len({bar[0].get_marker() for bar in axes.containers}) == 2, "shapes tell tiers in grey"
    cli("leaderboard", "show", "--board", board, "--figures", figures)
    assert [path.name[-10:] for path in figures.iterdir()] == ["-tiers.svg"]
    for suffix, control in (("pdf", ()), ("png", ("--control", "control"))):
        path = tmp_path / f"new/figure.{suffix}"
        cli("report", "--board", board, "--figure", path, "--columns", "1", *control)
        assert path.stat().st_size > 1000
    refused = ("report", tmp_path / "absent", "--figure", "a.bmp")
    assert "no figure format" in cli(*refused, code=2).err, "before results are read"
