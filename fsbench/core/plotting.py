"""Figures in one style, files of them that repeat byte for byte, and figures of views.

A figure is a matplotlib `Figure`, drawn inside `style()` by the object-oriented interface. Sizes
are in points. matplotlib is imported when something is drawn.
"""

import io
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic
from fsbench.core.schema import View

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
METADATA = {
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""What matplotlib writes beside a figure and differs by day or version."""
LINE = 16.0
"""Height of a line of a legend or title."""

PANEL = 380.0, 230.0
"""Width and height of a panel without its legend."""
MARKED = 12
"""Most values of a curve that each have a mark."""
MOST_NAMED = 8
"""Most positions that an axis names one by one."""


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
    """Return printable text on one line, cut in its middle to `longest` characters.

    XML contains no control characters, and marks of direction turn the text around them.
    """
    text = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
    if longest is None or len(text) <= longest:
        return text
    return f"{text[: longest - 6]}…{text[-5:]}"  # names often differ in their last characters


def short_number(value: float) -> str:
    """Return e.g. 500, 20k, 1.5M, 2e+15."""
    size, letter = 1.0, ""
    for larger, name in ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        if larger <= abs(value) < 1e15:
            size, letter = larger, name
    return f"{value / size:.3g}{letter}".replace("-", "−")


def set_scale(axes: "Axes", side: Literal["x", "y"], scale: Literal["log", "symlog"]) -> None:
    """Make an axis logarithmic, with short numbers, after all is drawn.

    symlog: also below 0, and linear up to 0.1.
    """
    from matplotlib.ticker import LogLocator

    axis = axes.xaxis if side == "x" else axes.yaxis
    options = {"linthresh": 0.1} if scale == "symlog" else {}
    (axes.set_xscale if side == "x" else axes.set_yscale)(scale, **options)
    is_narrow = axis.get_data_interval()[1] < 100 * axis.get_minpos()
    if scale == "log" and is_narrow:  # powers of ten alone would be one label or none
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: short_number(value))
    axis.minorticks_off()


@style()
def draw_views(views: Sequence[View], title: str = "") -> "Figure":
    """Return panels in up to three columns, each with its title and legend above.

    Views of single values are bars.
    """
    panels: dict[str, list[View]] = {}
    for view in views:
        panels.setdefault(view.title, []).append(view)
    columns = max(1, min(3, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    above = LINE * max((1 + len(p) * (not _is_bars(p)) for p in panels.values()), default=0)
    figure = create_figure(PANEL[0] * columns, (PANEL[1] + above) * rows, title)
    for i, (name, panel) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.set(xlabel=clean_text(panel[0].x, 55), ylabel=clean_text(panel[0].y, 40))
        axes.grid(axis="y")
        heading = "\n".join(textwrap.wrap(clean_text(name), 50))
        (_draw_bars if _is_bars(panel) else _draw_curves)(axes, panel, heading)
    return figure


def _is_bars(panel: Sequence[View]) -> bool:
    return all(len(view.at) == 1 for view in panel)


def _draw_curves(axes: "Axes", panel: Sequence[View], heading: str) -> None:
    """Draw a line for each view on axes as the first one states, its range shaded around it."""
    for i, view in enumerate(panel):
        colour, dashes = SERIES[i % len(SERIES)], DASHES[i // len(SERIES) % len(DASHES)]
        if view.low:
            axes.fill_between(view.at, view.low, view.high, alpha=0.15, color=colour, lw=0)
        marker = "o" if len(view.at) <= MARKED else ""
        axes.plot(view.at, view.values, color=colour, linestyle=dashes, marker=marker, markersize=5)
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderpad": 0}
    labels = ["."] * len(panel)  # older matplotlib leaves out a label that begins with _
    legend = axes.legend(axes.get_lines(), labels, title=heading, alignment="left", **above)
    for text, view in zip(legend.get_texts(), panel, strict=True):
        text.set_text(clean_text(view.label, 48))
    positions = sorted({at for view in panel for at in view.at})
    first, names = panel[0], {view.places for view in panel}
    if first.log_x:
        set_scale(axes, "x", "log")
        if len(positions) <= MARKED:
            axes.set_xticks(positions)
    elif all(at == round(at) for at in positions):
        axes.locator_params(axis="x", integer=True)
    if first.y_scale != "linear":
        set_scale(axes, "y", first.y_scale)
    if first.from_zero:
        axes.set_ylim(bottom=0)
    if len(names) == 1 and 0 < len(first.places) <= MOST_NAMED:
        _name_ticks(axes, range(1, len(first.places) + 1), first.places)


def _draw_bars(axes: "Axes", panel: Sequence[View], heading: str) -> None:
    """Draw one bar for each view, with its value above and its label below."""
    bars = axes.bar(range(len(panel)), [view.values[0] for view in panel], color=SERIES[0])
    axes.bar_label(bars, fmt="{:.3g}", padding=2)
    axes.set_title(heading, loc="left")
    _name_ticks(axes, range(len(panel)), [view.label for view in panel])


def _name_ticks(axes: "Axes", positions: Sequence[int], names: Sequence[str]) -> None:
    labels = [clean_text(name, 24) for name in names]
    axes.set_xticks(positions, labels, rotation=30, rotation_mode="anchor", ha="right")
