"""Checks of printed tables: numbers stay whole, lines fit the width."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from rich.cells import cell_len

WIDTHS = (80, 100, 120, 200)


def numbers(text: str) -> Counter[str]:
    """Return every number of a text and how often it occurs."""
    return Counter(re.findall(r"\d+(?:[.,]\d+)*", text))


def assert_whole(printed: str, complete: str, width: int) -> None:
    """Fail if a line is too long, a number broken, or a text cut by an ellipsis."""
    for line in printed.splitlines():
        assert cell_len(line) <= width, line
    assert not numbers(printed) - numbers(complete), "a broken number reads as another one"
    assert "…" not in printed


@contextmanager
def columns(width: int | None) -> Iterator[None]:
    """Set the width of the terminal; None: a pipe."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        if width is not None:
            patch.setenv("COLUMNS", str(width))
        yield


def printed(
    show: Callable[[], object], capture: pytest.CaptureFixture[str]
) -> dict[int | None, str]:
    """Return what is printed at each width, and None in a pipe; each checked to be whole."""
    shown: dict[int | None, str] = {}
    capture.readouterr()
    for width in (None, *WIDTHS):
        with columns(width):
            show()
        shown[width] = capture.readouterr().out
        if width is not None:
            assert_whole(shown[width], shown[None], width)
    return shown
