"""Plain-text tables for the `repr` of results, comparisons and boards."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns, numbers to the right, without trailing spaces.

    Examples
    --------
    >>> print(text_table(("task", "n"), [("eurosat:5w1s", "600"), ("isic:5w1s", "7")]))
    task            n
    eurosat:5w1s  600
    isic:5w1s       7
    """
    columns = []
    for texts in zip(header, *rows, strict=True):
        width = max(map(len, texts))
        numeric = len(texts) > 1 and all(is_number(text) for text in texts[1:])
        columns.append([text.rjust(width) if numeric else text.ljust(width) for text in texts])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def is_number(text: str) -> bool:
    """Return whether a cell reads as a number, '-' for a missing one included."""
    return text[:1] in tuple("0123456789-+<")
