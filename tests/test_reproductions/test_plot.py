"""Pictures of claims: every panel and curve is drawn, the same outcome gives the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsbench.reproductions import _plot
from fsbench.reproductions._outcome import Curve, Outcome, Panel

pytest.importorskip("matplotlib", reason="pictures need the report extra")

PANEL = Panel(
    title="norms",
    x="epoch",
    y="norm",
    curves=(
        Curve(label="ours", x=(1, 2), y=(3, 4)),
        Curve(label="paper", x=(1, 2), y=(2, 5), published=True),
    ),
)
OUTCOME = Outcome(
    source="a paper",
    claim="c",
    rule="r",
    seeds=1,
    figures=(),
    verdict="reproduced",
    panels=(PANEL,) * 4,
)


def test_a_panel_shows_its_curves_published_ones_dashed() -> None:
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    _plot.fill(axis, PANEL)
    ours, paper = axis.get_lines()
    assert list(ours.get_ydata()) == [3, 4]
    assert (ours.get_linestyle(), paper.get_linestyle()) == ("-", "--")
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["ours", "paper"]
    assert axis.get_xlabel() == "epoch"


def test_an_outcome_is_drawn_to_a_file_that_repeats(tmp_path: Path) -> None:
    _plot.draw(OUTCOME, tmp_path / "a.png")
    _plot.draw(OUTCOME, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").stat().st_size > 10_000
