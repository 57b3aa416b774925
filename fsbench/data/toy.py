"""Toy data sets: textured shapes drawn by formula when they are read, without files.

A class is a pair (shape, texture). Pose, size, colours, light and noise vary in every image, so
colour carries no label and features must be learned. Source and targets share shapes and textures
but no pair; each target has its own drawing style, its domain shift. All random numbers derive from
the names (data set, class, rank), so the images are the same on every machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.seeding import uniforms
from fsbench.core.specs import Pool
from fsbench.data.assembly import ImageRow, assemble
from fsbench.data.base import TargetDataset
from fsbench.data.cards import Dataset, DatasetFacts
from fsbench.data.source import SourceImage, SourceListing

Array = NDArray[np.float64]
SIDE = 32


def _polygon(corners: int) -> Callable[[Array], Array]:
    half = np.pi / corners
    return lambda angle: 0.8 * np.cos(half) / np.cos(np.mod(angle, 2 * half) - half) + 0.25


def _lobes(n: int, depth: float) -> Callable[[Array], Array]:
    return lambda angle: 0.9 + depth * np.cos(n * angle)


SHAPES: dict[str, Callable[[Array], Array]] = {
    "disc": _lobes(0, 0.0),
    "bar": lambda angle: np.minimum(1.3, 0.38 / np.maximum(np.abs(np.sin(angle)), 1e-3)),
    "triangle": _polygon(3),
    "square": _polygon(4),
    "star": _lobes(5, 0.35),
    "flower": _lobes(8, 0.2),
}
"""Radius of the figure, about 1, by direction."""
TEXTURES: dict[str, Callable[[Array, Array], Array]] = {
    "plain": lambda x, y: np.ones_like(x),
    "stripes": lambda x, y: np.sin(9 * x),
    "rings": lambda x, y: np.sin(10 * np.hypot(x, y)),
    "checks": lambda x, y: np.sin(8 * x) * np.sin(8 * y) * 2,
    "spokes": lambda x, y: np.sin(6 * np.arctan2(y, x)),
    "dots": lambda x, y: 3 * (np.cos(10 * x) + np.cos(10 * y)) - 3,
}
"""Pattern inside the figure."""
PAIRS = tuple(f"{shape}-{texture}" for shape in SHAPES for texture in TEXTURES)
NEW = [6 * row + (row * 2 + step) % 6 for row in range(6) for step in (0, 1, 3)]
TARGET_PAIRS = tuple(PAIRS[position] for position in NEW[:16])
SOURCE_PAIRS = tuple(pair for pair in PAIRS if pair not in TARGET_PAIRS)
"""The 20 pairs of the source, which cover every shape and texture; targets have the others."""


@dataclass(frozen=True)
class Style:
    """Drawing style of a domain.

    colour: saturation in [0, 1] (0 is grey); contrast: of all colours around mid grey; noise:
    standard deviation of pixel noise; tiles: figures along a side; rim: a ring of ground colour
    sets the rim of the figure apart.
    """

    colour: float = 1.0
    contrast: float = 1.0
    noise: float = 0.03
    tiles: int = 1
    rim: bool = False


def toy_image(name: str, style: Style, pair: str, rank: int, side: int = SIDE) -> NDArray[np.uint8]:
    """Draw image `rank` of a class, uint8 (side, side, 3), from the names alone."""
    shape, texture = pair.split("-")
    numbers = uniforms((16 + side * side,), "toy", name, pair, rank)
    u, speckle = numbers[:16], numbers[16:].reshape(side, side)
    x, y = _grid(u, style.tiles, side)
    radius = np.hypot(x, y)
    edge = SHAPES[shape](np.arctan2(y, x))
    inside = 1 / (1 + np.exp(np.clip(-14 * (edge - radius), -30, 30)))
    if style.rim:
        inside = inside * np.clip(np.abs(radius - 0.75 * edge) * 6, 0, 1)
    tone = 0.5 + 0.5 * np.clip(2 * TEXTURES[texture](x, y), -1, 1)
    ground, light, dark = _colours(u[5:14], style)
    figure = tone[..., None] * light + (1 - tone[..., None]) * dark
    pixels = ground + inside[..., None] * (figure - ground)
    pixels = pixels + (speckle - 0.5)[..., None] * style.noise * np.sqrt(12)
    return np.asarray(np.clip(np.rint(pixels * 255), 0, 255), dtype=np.uint8)


def _grid(u: Array, tiles: int, side: int) -> tuple[Array, Array]:
    """Return pixel coordinates in the frame of the figure: rotated, scaled, shifted, tiled."""
    axis = (np.arange(side) + 0.5) / side * 2 - 1
    x, y = np.meshgrid(axis, axis)
    if tiles > 1:
        x, y = (np.mod((v + 1) * tiles / 2 + s, 1) * 2 - 1 for v, s in ((x, u[3]), (y, u[4])))
    else:
        x, y = x - 0.5 * (u[3] - 0.5), y - 0.5 * (u[4] - 0.5)
    turn, zoom = 2 * np.pi * u[0], 1 / (0.55 + 0.35 * u[1])
    cosine, sine = np.cos(turn) * zoom, np.sin(turn) * zoom
    return x * cosine - y * sine, x * sine + y * cosine


def _colours(u: Array, style: Style) -> list[Array]:
    """Return ground, light and dark colour, (3,) each; light and dark differ clearly."""
    ground, light, dark = u.reshape(3, 3)
    tones = [ground, 0.65 + 0.35 * light, 0.35 * dark]
    if ground[0] < 0.5:
        tones[1], tones[2] = tones[2], tones[1]
    mixed = [tone.mean() + style.colour * (tone - tone.mean()) for tone in tones]
    return [0.5 + style.contrast * (tone - 0.5) for tone in mixed]


def toy_facts(name: str, title: str, pairs: tuple[str, ...], per_class: int) -> DatasetFacts:
    return DatasetFacts(
        name=name,
        title=title,
        domain="toy",
        classes=pairs,
        images_per_class=(per_class,) * len(pairs),
        label_rule="class id = place in the list of classes, a shape and a texture each",
        layout="no files: images are drawn when they are read",
        folders=(name,),
        download="nothing to fetch",
        license="Apache-2.0",
        citation="generated by fsbench (fsbench/data/toy.py)",
    )


def draw_toy(name: str, style: Style, canonical_id: str) -> Image.Image:
    """Draw an image of a toy data set by its canonical id, `PAIR/RANK`."""
    pair, _, rank = canonical_id.partition("/")
    return Image.fromarray(toy_image(name, style, pair, int(rank)))


def make_toy(name: str, title: str, style: Style, pairs: tuple[str, ...]) -> Dataset:
    """Return a toy target of 40 images of each pair."""
    facts = toy_facts(name, f"Toy: {title}", pairs, 40)

    def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
        """Return all images; folder and splits are not used. Raise DataError for another pool."""
        ids = [(c, f"{pair}/{rank:03d}") for c, pair in enumerate(pairs) for rank in range(40)]
        rows = [ImageRow(label, image, f"{image}.png") for label, image in ids]
        return replace(
            assemble(facts, Path(), rows, pool=pool), draw=partial(draw_toy, name, style)
        )

    return Dataset(facts, load)


SCAN = Style(colour=0.0, contrast=0.5, noise=0.06)
TOYS = (
    make_toy("toy_photo", "new shapes, style of the source", Style(), TARGET_PAIRS[0::2]),
    make_toy("toy_rims", "figures with a rim", Style(rim=True), TARGET_PAIRS[:8]),
    make_toy("toy_scan", "grey, faint and noisy scans", SCAN, TARGET_PAIRS[1::2]),
    make_toy("toy_tiles", "many small figures", Style(tiles=2), TARGET_PAIRS[8:]),
)
TOY_TARGETS = {toy.FACTS.name: toy for toy in TOYS}
"""Toy targets by name. Scans are like X-rays, tiles like aerial pictures."""

TRAIN, VAL = 150, 30
"""Images per class of the toy source."""
SOURCE_FACTS = toy_facts("toy_source", "Toy: source", SOURCE_PAIRS, TRAIN)


def load_toy_source(folder: Path, cache: Path) -> SourceListing:
    """Return all images; folder and cache are not used. A CPU trains on them in seconds."""
    draw = partial(draw_toy, SOURCE_FACTS.name, Style())
    images = [
        SourceImage(label, partial(draw, f"{pair}/{rank}"), stamp="")
        for rank in range(TRAIN + VAL)
        for label, pair in enumerate(SOURCE_PAIRS)
    ]
    n_train = TRAIN * len(SOURCE_PAIRS)
    return SourceListing(SOURCE_FACTS, {"train": images[:n_train], "val": images[n_train:]})


TOY_SOURCES = {"toy_source": Dataset(SOURCE_FACTS, load_toy_source)}
