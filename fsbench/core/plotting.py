"""Figures in one style, files of them that repeat byte for byte, and figures of views.

A figure is a matplotlib `Figure`, drawn inside `style()` by the object-oriented interface, for a
screen or for one or two columns of a paper. Sizes are in points of a figure whose text has 11
points; a figure for a paper is smaller as a whole. What a colour says, a shape or a text says too.
matplotlib is imported when something is drawn.
"""

import io
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic
from fsbench.core.schema import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Properties = dict[str, Any]
"""Properties of a line, as matplotlib names them."""
Columns = Literal[1, 2]
"""Columns of a paper that a figure is as wide as."""
WIDTHS = {None: 22.6, 1: 8.0, 2: 17.0}
"""Width in cm on a screen, and in a paper by columns."""
SCREEN, PRINT = 11.0, 8.0
"""Sizes of text on a screen and in a paper."""
PAPER, INK = "#ffffff", "#1b1c1e"
SERIES = ("#0072b2", "#c04d00", "#00805d", "#b05a8c", "#8a6d00", "#3c3f43", "#4a9ad4", "#7a4fb0")
"""The hues of Okabe and Ito, darkened for white paper."""
GAIN, LOSS = SERIES[:2]
DASHES = ("-", (0, (6, 3)), (0, (2, 2)), (0, (8, 3, 2, 3)))
MARKERS = "osD^vPX*"
"""Shapes of the marks of the series, which black and white prints tell apart."""
GUIDE: Properties = {"color": INK, "alpha": 0.6, "linewidth": 1, "linestyle": (0, (3, 3))}
"""Look of the dashed lines that mark a value."""
RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": SCREEN,
    **dict.fromkeys(("axes.titlesize", "figure.titlesize"), "medium"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("text.parse_math", "axes.formatter.useoffset"), False),
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "lines.linewidth": 2,
    "lines.markersize": 5.5,
    "figure.dpi": 72,
    "svg.fonttype": "none",
    "svg.hashsalt": "fsbench",
    "pdf.fonttype": 42,
}
PRINTED = {"font.size": PRINT, "lines.linewidth": 1.3, "lines.markersize": 4, "axes.linewidth": 0.6}
"""Sizes of a figure for a paper, in points."""
METADATA = {
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""What matplotlib writes beside a figure and differs by day or version."""
LINE = 16.0
"""Height of a line of a legend or title."""

PANEL = 380.0, 230.0
"""Width and height of a panel on a screen."""
MARKED = 12
"""Most values of a curve that each have a mark."""
MOST_NAMED = 8
"""Most positions that an axis names one by one."""


@contextmanager
def style(columns: Columns | None = None) -> Iterator[None]:
    """Draw and save in the style of the project, whatever the user's matplotlibrc says.

    Also a decorator. columns: of a paper; None for a screen. Browsers have the scripts that the
    font of matplotlib lacks.
    """
    import matplotlib.style

    settings = RC | PRINTED if columns else RC
    with matplotlib.style.context(["default", settings]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def find_width(columns: Columns | None) -> float:
    """Return the width of a figure for a screen (None), or for one or two columns of a paper."""
    return WIDTHS[columns] / 2.54 * 72 * (SCREEN / PRINT if columns else 1)


def create_figure(
    width: float, height: float, title: str, legend: Mapping[str, Properties] | None = None
) -> "Figure":
    """Return an empty figure of this size below its title and legend. legend: label -> line."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    heading = textwrap.fill(clean_text(title), int(width / 8))
    labels = [clean_text(label, 60) for label in legend or {}]
    across = int(width // (6.4 * max(map(len, labels), default=0) + 45)) or 1
    above = LINE * (len(heading.splitlines()) - (-len(labels) // across))
    scale = rcParams["font.size"] / SCREEN / 72
    figure = Figure(figsize=(width * scale, (height + above) * scale), layout="constrained")
    figure.set_label(" ".join(heading.split()))
    bold: Properties = {"weight": "bold"}
    if legend:
        handles = [Line2D([], [], **line) for line in legend.values()]
        dots = ["."] * len(labels)  # older matplotlib leaves out a label that begins with _
        more: Properties = {"title": heading or None, "title_fontproperties": bold}
        more |= {"alignment": "left", "ncols": across, "borderpad": 0}
        drawn = figure.legend(handles, dots, loc="outside upper left", **more)
        for text, label in zip(drawn.get_texts(), labels, strict=True):
            text.set_text(label)
    elif heading:
        figure.suptitle(heading, x=0.01, ha="left", **bold)
    vars(figure)["_repr_png_"] = partial(render_figure, figure, "png")  # what a notebook shows
    return figure


def check_format(path: Path) -> str:
    """Return svg, png or pdf, the format of a figure file. Raise UsageError for another suffix."""
    if (suffix := path.suffix.lower()[1:]) not in METADATA:
        raise UsageError(f"{path.name}: no figure format", fix=f"use .{', .'.join(METADATA)}")
    return suffix


def write_figure(figure: "Figure", path: Path) -> None:
    """Write an SVG, PNG or PDF file. Raise UsageError for any other suffix."""
    write_atomic(path, render_figure(figure, check_format(path)))


@style()
def render_figure(figure: "Figure", file_format: str) -> bytes:
    """Return the bytes of a figure, equal for equal figures. file_format: svg, png or pdf."""
    buffer = io.BytesIO()
    metadata: dict[str, str | None] = dict.fromkeys(METADATA[file_format])
    if figure.get_label():
        metadata["Title"] = str(figure.get_label())
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


def draw_views(views: Sequence[View], title: str = "", columns: Columns | None = None) -> "Figure":
    """Return panels below one legend; a label has one style in all of them.

    Views of single values are bars. columns: of a paper; None for a screen.
    """
    panels: dict[str, list[View]] = {}
    for view in views:
        panels.setdefault(view.title, []).append(view)
    across = max(1, min(2 * columns if columns else 3, len(panels)))
    width, height = PANEL if columns is None else (find_width(columns) / across, 150.0)
    rows = max(1, -(-len(panels) // across))
    curves = [view for panel in panels.values() if not _is_bars(panel) for view in panel]
    labels = dict.fromkeys(view.label for view in curves)
    styles = {label: style_curve(i) for i, label in enumerate(labels)}
    with style(columns):
        legend = styles if any(styles) else None
        figure = create_figure(width * across, (height + LINE) * rows, title, legend)
        for i, (name, panel) in enumerate(panels.items()):
            axes = figure.add_subplot(rows, across, i + 1)
            axes.set(xlabel=clean_text(panel[0].x, 55), ylabel=clean_text(panel[0].y, 40))
            axes.grid(axis="y")
            axes.set_title(textwrap.fill(clean_text(name), int((width - 45) / 7)), loc="left")
            if _is_bars(panel):
                _draw_bars(axes, panel)
            else:
                _draw_curves(axes, panel, styles)
    return figure


def style_curve(number: int) -> Properties:
    """Return how the curve of a number is drawn; 32 of them differ, also in grey."""
    cycle = number // len(SERIES)
    dashes, marker = DASHES[(number + cycle) % len(DASHES)], MARKERS[number % len(MARKERS)]
    return {"color": SERIES[number % len(SERIES)], "linestyle": dashes, "marker": marker}


def _is_bars(panel: Sequence[View]) -> bool:
    return all(len(view.at) == 1 and not view.low for view in panel)


def _draw_curves(axes: "Axes", panel: Sequence[View], styles: Mapping[str, Properties]) -> None:
    """Draw a line for each view and its range, on axes as the first view states.

    Ranges of few values are bars side by side, others shaded. styles: by label.
    """
    from matplotlib.transforms import ScaledTranslation

    for i, view in enumerate(panel):
        is_marked = len(view.at) <= MARKED
        properties = styles[view.label] | ({} if is_marked else {"marker": ""})
        [line] = axes.plot(view.at, view.values, **properties)
        colour = properties["color"]
        if view.low and not is_marked:
            axes.fill_between(view.at, view.low, view.high, alpha=0.15, color=colour, lw=0)
        elif view.low:
            bars = axes.vlines(view.at, view.low, view.high, color=colour, linewidth=1)
            aside = 0.03 * (i - (len(panel) - 1) / 2)
            moved = axes.transData + ScaledTranslation(aside, 0, axes.figure.dpi_scale_trans)
            line.set_transform(moved)
            bars.set_transform(moved)
            axes.margins(x=0.12)
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


def _draw_bars(axes: "Axes", panel: Sequence[View]) -> None:
    """Draw one bar for each view, with its value above and its label below."""
    bars = axes.bar(range(len(panel)), [view.values[0] for view in panel], color=SERIES[0])
    axes.bar_label(bars, fmt="{:.3g}", padding=2)
    _name_ticks(axes, range(len(panel)), [view.label for view in panel])


def _name_ticks(axes: "Axes", positions: Sequence[int], names: Sequence[str]) -> None:
    labels = [clean_text(name, 24) for name in names]
    axes.set_xticks(positions, labels, rotation=30, rotation_mode="anchor", ha="right")
