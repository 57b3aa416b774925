"""One episode as image tensors, and its picture with what heads take the queries for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fsbench.core.plotting import LINE, LOSS, clean_text, create_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TILE, ROW, NAMES = 64.0, 80.0, 180.0
"""Width of an image, height of a row with its captions, and width of the names of classes."""
SIDE = 0.92
"""Side of an image as a part of TILE."""
MOST = 15
"""Classes, and images of a class, that a picture shows."""


@dataclass(frozen=True, eq=False)
class EpisodeImages:
    """One episode: images, labels 0..n_way-1 and paths, ordered by class.

    support (n_way * n_shot, 3, H, W), query (n_way * n_query, 3, H, W): uint8, or what `transform`
    returned; class_names: of the labels; paths are relative to the folder of the data set.
    """

    index: int
    class_names: tuple[str, ...]
    support: Tensor
    support_labels: Tensor
    support_paths: tuple[str, ...]
    query: Tensor
    query_labels: Tensor
    query_paths: tuple[str, ...]

    @style()
    def draw(self, title: str, answers: Mapping[str, NDArray[np.int64]]) -> "Figure":
        """Return a grid of the support and, for each answer, one of the queries.

        answers: heading -> label that each query is taken for, -1 for an unknown wrong one.
        """
        grids = {"support": (self.support, self.support_labels.numpy())}
        grids |= {heading: (self.query, taken) for heading, taken in answers.items()}
        n_way = len(self.class_names)
        rows = min(n_way, MOST)
        columns = min(max(len(self.support), len(self.query)) // n_way, MOST)
        title += f" ({rows} of {n_way} classes shown)" * (n_way > rows)
        height = (rows * ROW + 2 * LINE) * len(grids)
        figure = create_figure(NAMES + columns * TILE, height, title)
        for number, (heading, (images, taken)) in enumerate(grids.items(), 1):
            axes = figure.add_subplot(len(grids), 1, number)
            self._draw_grid(axes, images, taken)
            axes.set(xlim=(-0.03, columns), ylim=(rows * ROW / TILE, 0), anchor="W")
            count = len(images) // n_way
            cut = f" ({MOST} of {count} images of each class shown)" * (count > MOST)
            axes.set_title(clean_text(heading) + cut, loc="left")
        return figure

    def _draw_grid(self, axes: "Axes", images: Tensor, taken: NDArray[np.int64]) -> None:
        """Draw a row of images for each class, with a frame and a cross at those taken wrongly."""
        from matplotlib.patches import Rectangle

        names, count = self.class_names[:MOST], len(images) // len(self.class_names)
        for row, column in np.ndindex(len(names), min(count, MOST)):
            i, top = row * count + column, row * ROW / TILE
            extent = column, column + SIDE, top + SIDE, top
            axes.imshow(images[i].permute(1, 2, 0).numpy(), extent=extent)
            if taken[i] != row:
                box = Rectangle((column, top), SIDE, SIDE, fill=False, color=LOSS, linewidth=3)
                axes.add_patch(box)
                name = clean_text(self.class_names[taken[i]], 9)
                text = "×" if taken[i] < 0 else f"× {taken[i]} {name}"
                axes.text(column, top + SIDE + 0.05, text, size=8, va="top")
        labels = [f"{label}  {clean_text(name, 24)}" for label, name in enumerate(names)]
        axes.set_yticks(np.arange(len(names)) * ROW / TILE + SIDE / 2, labels)
        axes.set(frame_on=False, xticks=[])
        axes.tick_params(length=0)
