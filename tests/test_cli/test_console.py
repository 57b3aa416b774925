"""Progress lines carry rate and time left; tables and JSON go to stdout whole."""

from __future__ import annotations

import pytest

from fsbench.cli.console import emit_json, table
from fsbench.core.progress import Lines, line


def test_a_progress_line_has_count_rate_and_time_left() -> None:
    assert line("features", 50, 200, "images", 25.0) == "features: 50/200, 25 images/s, 6 s left"


def test_plain_progress_is_sparse_and_counts_only_new_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = iter([0.0, 1.0, 11.0, 12.0])
    with Lines(clock=lambda: next(now)).task("episodes", 40, "episodes", done=10) as advance:
        advance(10)
        advance(10)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "episodes: 30/40, 1.82 episodes/s, 6 s left"
    assert len(lines) == 2


def test_a_table_never_reads_markup_and_never_folds_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table("t", ("name", "x"), [("[red]" + "a" * 120, "1.0")])
    assert "[red]" + "a" * 120 in capsys.readouterr().out


def test_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        emit_json([float("nan")])
