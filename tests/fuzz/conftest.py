"""The canary that no input may wake, and a table of the cases that ran."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fuzz.cases import Tally


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    """A file that code hidden in an input would make."""
    path = tmp_path / "canary"
    yield path
    assert not path.exists(), "code from an input was run"


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Iterator[Tally]:
    """Counts the cases of a test, for the table at the end."""
    tally = Tally()
    yield tally
    record_property("cases", dict(tally.ended))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [
        (report.nodeid, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for key, value in report.user_properties
        if key == "cases"
    ]
    if rows:
        terminalreporter.section("fuzzed inputs: cases, taken, refused")
    for name, ended in sorted(rows):
        taken, refused = ended.get("taken", 0), ended.get("refused", 0)
        terminalreporter.write_line(f"{taken + refused:6} {taken:6} {refused:6}  {name}")
