"""Progress lines carry rate and time left; tables and JSON go to stdout whole."""

import io
import re

import pytest
from rich.console import Console

from fsbench.cli.console import emit_json, table
from fsbench.core.progress import ConsoleReporter


def test_plain_progress_is_sparse_and_counts_only_new_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", iter([0.0, 1.0, 31.0, 32.0, 0.0, 1.0, 1.0]).__next__)
    with ConsoleReporter().task("episodes", 40, "episodes", done=10) as advance:
        advance(10)
        advance(10)
    with ConsoleReporter().task("images", 2500, "images") as advance:
        advance(2500)
    first, last, fast = capsys.readouterr().err.splitlines()
    assert fast == "images: 2500/2500, 2500 images/s, 1.0 s"
    assert first == "episodes: 30/40, 0.645 episodes/s, 16 s left"
    assert last == "episodes: 30/40, 0.625 episodes/s, 16 s left, 32.0 s"


@pytest.mark.parametrize("name", ["isic:5w5s linear", "cropdisease:5w50s soft_kmeans " * 3])
def test_a_bar_shows_rate_and_time_left_at_80_columns(name: str) -> None:
    out = io.StringIO()
    bars = ConsoleReporter(Console(file=out, width=80, force_terminal=True))
    with bars.task(f"[12/128] {name}", 600, "episodes", done=10) as advance:
        advance(110)
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", out.getvalue()))
    assert all(len(text) <= 80 for text in lines)
    assert re.search(r"\[12/128\] .* 120/600, \S+ episodes/s, \d+ s left", "\n".join(lines))


def test_a_table_never_reads_markup_and_never_folds_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table("t", ("name", "x"), [("[red]" + "a" * 120, "1.0")])
    assert "[red]" + "a" * 120 in capsys.readouterr().out


def test_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        emit_json([float("nan")])
