"""Critical-difference diagram: mean ranks, bars join entries that a post-hoc test cannot separate.

scikit-posthocs draws it with matplotlib; both come with the `report` extra.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from importlib.util import find_spec
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from leaderboard.charts._svg import SMALL, Drawing, fitted

LINK = "{http://www.w3.org/1999/xlink}href"
DROPPED = ("metadata", "style")
"""Facts of the file, and rules that would reach the page around the drawing."""
LINE, FRAME = 17.0, 70.0
"""Height of a label, and of all that is no label."""
SHARE = 0.3
"""Of the width, for the labels of one side."""
BLACK, FAMILY, OWN_ID = "#000000", re.compile(r"font-family:[^;]*;?"), re.compile(r"#([\w.-]+)")
INK = {"color": "black"}


@dataclass(frozen=True)
class Critical:
    """names: entries; ranks: their mean ranks, 1 is best; p: adjusted, symmetric, a row a name."""

    title: str
    names: tuple[str, ...]
    ranks: tuple[float, ...]
    p: tuple[tuple[float, ...], ...]
    alpha: float = 0.05


def available() -> bool:
    """Whether the `report` extra is installed."""
    return all(find_spec(name) is not None for name in ("matplotlib", "scikit_posthocs"))


def draw(chart: Critical, name: str, width: float = 720) -> str | None:
    """The diagram, None where the `report` extra is missing. Equal input gives equal bytes."""
    if not available():
        return None
    drawn = ElementTree.fromstring(plotted(chart, width))
    size = [float(drawn.attrib[side].removesuffix("pt")) for side in ("width", "height")]
    drawing = Drawing(name, chart.title, describe(chart), *size)
    adopt(drawing, drawing.root, drawn)
    return drawing.svg()


def describe(chart: Critical) -> str:
    order = sorted(zip(chart.ranks, chart.names, strict=True))
    ranks = ", ".join(f"{name} {rank:.2f}" for rank, name in order)
    return f"Mean ranks, bars join what alpha {chart.alpha:g} does not separate: {ranks}."


def plotted(chart: Critical, width: float) -> bytes:
    """SVG by matplotlib at 72 dpi, so that its points are pixels."""
    import matplotlib
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from scikit_posthocs import critical_difference_diagram

    keys = [str(i) for i in range(len(chart.names))]
    labels = dict(zip(keys, chart.names, strict=True))
    settings = {"svg.hashsalt": "fsbench", "svg.fonttype": "none", "font.size": SMALL}
    with matplotlib.rc_context(settings):
        height = FRAME + LINE * (len(keys) / 2 + 3)
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        axes = figure.add_axes((SHARE, 0.02, 1 - 2 * SHARE, 0.8))
        found = critical_difference_diagram(
            dict(zip(keys, chart.ranks, strict=True)),
            DataFrame(chart.p, index=keys, columns=keys),
            alpha=chart.alpha,
            ax=axes,
            label_props={"parse_math": False},
            elbow_props={**INK, "linewidth": 1},
            label_fmt_left="{label}",
            label_fmt_right="{label}",
        )
        for text in found["labels"]:
            i = text.get_text()
            room = SHARE * width - 44
            text.set_text(f"{fitted(labels[i], room, SMALL)} {chart.ranks[int(i)]:.2f}")
        out = io.BytesIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def adopt(drawing: Drawing, parent: Element, drawn: Element) -> None:
    """Children of `drawn` below `parent`: black becomes the page's colour, ids this drawing's."""
    for child in drawn:
        tag = child.tag.rpartition("}")[2]
        if tag in DROPPED:
            continue
        ours = drawing.add(tag, parent, child.text or "", **attributes(drawing, tag, child))
        adopt(drawing, ours, child)


def attributes(drawing: Drawing, tag: str, child: Element) -> dict[str, object]:
    found: dict[str, object] = {} if tag != "text" else {"fill": "currentColor"}
    for key, value in child.attrib.items():
        if key == "id":
            found[key] = f"{drawing.name}-{value}"
        elif key == LINK:
            found["href"] = OWN_ID.sub(rf"#{drawing.name}-\1", value)
        elif key == "clip-path":
            found[key] = OWN_ID.sub(rf"#{drawing.name}-\1", value)
        else:
            found[key] = FAMILY.sub("", value).replace(BLACK, "currentColor")
    return found
