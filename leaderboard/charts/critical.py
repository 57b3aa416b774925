"""Critical-difference diagram: mean ranks, bars join entries that a post-hoc test cannot separate.

scikit-posthocs draws it with matplotlib; both come with the `report` extra.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from leaderboard.charts._svg import SMALL, Drawing, fitted

LINK = "{http://www.w3.org/1999/xlink}href"
DROPPED = ("metadata", "style")
"""Facts of the file, and rules that would reach the page around the drawing."""
LINE, FRAME = 17.0, 70.0
"""Height of a label, and of all that is no label."""
SHARE, PHONE, PHONE_SHARE = 0.3, 500.0, 0.52
"""Part of the width for the labels of one side; below PHONE pixels they all stand on the left."""
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
    adopt(drawing, drawing.root, drawn, labels(chart, width))
    return drawing.svg()


def describe(chart: Critical) -> str:
    order = sorted(zip(chart.ranks, chart.names, strict=True))
    ranks = ", ".join(f"{name} {rank:.2f}" for rank, name in order)
    return f"Mean ranks, bars join what alpha {chart.alpha:g} does not separate: {ranks}."


def plotted(chart: Critical, width: float) -> bytes:
    """SVG by matplotlib at 72 dpi, so that its points are pixels; entry i is called `entry-i`."""
    import matplotlib
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from scikit_posthocs import critical_difference_diagram

    keys = [key(i) for i in range(len(chart.names))]
    narrow = width < PHONE
    left, right = (PHONE_SHARE, 0.04) if narrow else (SHARE, SHARE)
    height = FRAME + LINE * (len(keys) / (1 if narrow else 2) + 3)
    settings: dict[Any, Any] = {
        "svg.hashsalt": "fsbench",
        "svg.fonttype": "none",
        "font.size": SMALL,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        critical_difference_diagram(
            dict(zip(keys, chart.ranks, strict=True)),
            DataFrame(chart.p, index=keys, columns=keys),
            alpha=chart.alpha,
            ax=figure.add_axes((left, 0.02, 1 - left - right, 0.96 - 30 / height)),
            label_fmt_left="{label}",
            label_fmt_right="{label}",
            elbow_props={**INK, "linewidth": 1},
            left_only=narrow,
        )
        out = io.BytesIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def key(i: int) -> str:
    return f"entry-{i}"


def labels(chart: Critical, width: float) -> dict[str, str]:
    """What stands for each key: as much of the name as has room, and its mean rank."""
    room = width * (PHONE_SHARE if width < PHONE else SHARE) - 48
    return {
        key(i): f"{fitted(name, room, SMALL)} {rank:.2f}"
        for i, (name, rank) in enumerate(zip(chart.names, chart.ranks, strict=True))
    }


def adopt(drawing: Drawing, parent: Element, drawn: Element, names: Mapping[str, str]) -> None:
    """Children of `drawn` below `parent`: black becomes the page's colour, ids this drawing's."""
    for child in drawn:
        tag = child.tag.rpartition("}")[2]
        if tag in DROPPED:
            continue
        text = (child.text or "").strip()
        text = names.get(text, text)
        ours = drawing.add(tag, parent, text, **attributes(drawing, tag, child))
        adopt(drawing, ours, child, names)


def attributes(drawing: Drawing, tag: str, child: Element) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in child.attrib.items():
        if key == "id":
            found[key] = f"{drawing.name}-{value}"
        elif key in (LINK, "clip-path"):
            found["href" if key == LINK else key] = OWN_ID.sub(rf"#{drawing.name}-\1", value)
        else:
            found[key] = FAMILY.sub("", value).replace(BLACK, "currentColor")
    if tag == "text":
        found |= {"fill": "currentColor", "dx": shift(str(found.get("style")))}
    return found


def shift(style: str) -> float | None:
    """Pixels between a label and the line that leads to it."""
    return -4.0 if "text-anchor: end" in style else 4.0 if "text-anchor: start" in style else None
