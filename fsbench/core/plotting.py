"""Figures in one style, and files of them that repeat byte for byte.

A figure is a matplotlib `Figure`, drawn inside `style()` by the object-oriented interface. Sizes
are in points. matplotlib is imported when something is drawn.
"""

import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, INK = "#ffffff", "#1b1c1e"
SERIES = ("#0072b2", "#c04d00", "#00805d", "#b05a8c", "#8a6d00", "#3c3f43", "#4a9ad4", "#7a4fb0")
"""The hues of Okabe and Ito, darkened for white paper."""
GAIN, LOSS = SERIES[:2]
DASHES = ("-", (0, (6, 3)), (0, (2, 2)), (0, (8, 3, 2, 3)))
GUIDE: dict[str, Any] = {"color": INK, "alpha": 0.6, "linewidth": 1, "linestyle": (0, (3, 3))}
"""Look of the dashed lines that mark a value."""
RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 11,
    **dict.fromkeys(("axes.titlesize", "figure.titlesize"), 11),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("text.parse_math", "axes.formatter.useoffset"), False),
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "lines.linewidth": 2,
    "figure.dpi": 72,
    "svg.fonttype": "none",
    "svg.hashsalt": "fsbench",
    "pdf.fonttype": 42,
}
UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)
"""Characters that XML cannot contain, and marks that turn the direction of the text around them."""
METADATA = {
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""What matplotlib writes beside a figure and differs by day or version."""
LINE = 16.0
"""Height of a line of a legend or title."""


@contextmanager
def style() -> Iterator[None]:
    """Draw and save in the style of the project, whatever the user's matplotlibrc says.

    Also a decorator. Browsers have the scripts that the font of matplotlib lacks.
    """
    import matplotlib.style

    with matplotlib.style.context(["default", RC]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def create_figure(width: float, height: float, title: str) -> "Figure":
    """Return an empty figure of this size whose title is folded to its width."""
    from matplotlib.figure import Figure

    lines = textwrap.wrap(clean_text(title), int(width / 8))
    size = width / 72, (height + LINE * len(lines)) / 72
    figure = Figure(figsize=size, layout="constrained")
    if lines:
        figure.suptitle("\n".join(lines), x=0.01, ha="left", weight="bold")
    return figure


def write_figure(figure: "Figure", path: Path) -> None:
    """Write an SVG, PNG or PDF file. Raise UsageError for any other suffix."""
    if (suffix := path.suffix.lower()[1:]) not in METADATA:
        raise UsageError(f"{path.name}: no figure format", fix=f"use .{', .'.join(METADATA)}")
    write_atomic(path, render_figure(figure, suffix))


@style()
def render_figure(figure: "Figure", file_format: str) -> bytes:
    """Return the bytes of a figure, equal for equal figures. file_format: svg, png or pdf."""
    buffer = io.BytesIO()
    metadata: dict[str, str | None] = dict.fromkeys(METADATA[file_format])
    if title := " ".join(figure.get_suptitle().split()):
        metadata["Title"] = title
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # a second layout would move everything a little
    figure.savefig(buffer, format=file_format, metadata=metadata, dpi=144)
    return buffer.getvalue()


def clean_text(text: str, longest: int | None = None) -> str:
    """Return text on one line that XML can contain, cut in its middle to `longest` characters."""
    text = " ".join(UNPRINTABLE.sub("\ufffd", text).split())
    if longest is None or len(text) <= longest:
        return text
    return f"{text[: longest - 6]}…{text[-5:]}"  # names often differ in their last characters


def short_number(value: float) -> str:
    """Return e.g. 500, 20k, 1.5M, 2e+15."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000 * size:
            return f"{value / size:.3g}{letter}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def set_scale(
    axes: "Axes", side: Literal["x", "y"], scale: Literal["log", "symlog"], linear: float = 0.1
) -> None:
    """Make an axis logarithmic, with short numbers, after all is drawn. symlog: also below 0.

    linear: up to this size, a symlog axis is linear.
    """
    from matplotlib.ticker import LogLocator

    axis = axes.xaxis if side == "x" else axes.yaxis
    options = {"linthresh": linear} if scale == "symlog" else {}
    (axes.set_xscale if side == "x" else axes.set_yscale)(scale, **options)
    is_narrow = axis.get_data_interval()[1] < 100 * axis.get_minpos()
    if scale == "log" and is_narrow:  # powers of ten alone would be one label or none
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: short_number(value))
    axis.minorticks_off()
