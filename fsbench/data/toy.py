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
SHAPES = ("disc", "bar", "triangle", "square", "star", "flower")
TEXTURES = ("plain", "stripes", "rings", "checks", "spokes", "dots")
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


def _edge(angle: Array, shape: str) -> Array:
    """Return the radius of the figure in each direction, about 1."""
    if shape in {"triangle", "square"}:
        sector = 2 * np.pi / {"triangle": 3, "square": 4}[shape]
        folded = np.mod(angle, sector) - sector / 2
        return np.asarray(0.8 * np.cos(sector / 2) / np.cos(folded) + 0.25)
    if shape == "bar":
        return np.minimum(1.3, 0.38 / np.maximum(np.abs(np.sin(angle)), 1e-3))
    lobes, depth = {"disc": (0, 0.0), "star": (5, 0.35), "flower": (8, 0.2)}[shape]
    return np.asarray(0.9 + depth * np.cos(lobes * angle))


def _texture(x: Array, y: Array, texture: str) -> Array:
    """Return the pattern inside the figure, in [-1, 1]."""
    waves: dict[str, Callable[[], Array]] = {
        "plain": lambda: np.ones_like(x),
        "stripes": lambda: np.sin(9 * x),
        "rings": lambda: np.sin(10 * np.hypot(x, y)),
        "checks": lambda: np.sin(8 * x) * np.sin(8 * y) * 2,
        "spokes": lambda: np.sin(6 * np.arctan2(y, x)),
        "dots": lambda: 3 * (np.cos(10 * x) + np.cos(10 * y)) - 3,
    }
    return np.clip(2 * waves[texture](), -1, 1)


def draw_image(pair: str, style: Style, numbers: Array, side: int = SIDE) -> NDArray[np.uint8]:
    """Draw one image, uint8 (side, side, 3), from uniforms in [0, 1) of shape (16 + side²,)."""
    shape, texture = pair.split("-")
    u, speckle = numbers[:16], numbers[16:].reshape(side, side)
    x, y = _grid(u, style.tiles, side)
    radius = np.hypot(x, y)
    edge = _edge(np.arctan2(y, x), shape)
    inside = 1 / (1 + np.exp(np.clip(-14 * (edge - radius), -30, 30)))
    if style.rim:
        inside = inside * np.clip(np.abs(radius - 0.75 * edge) * 6, 0, 1)
    tone = 0.5 + 0.5 * _texture(x, y, texture)
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
        homepage="fsbench/data/toy.py",
    )


def toy_image(name: str, style: Style, pair: str, rank: int, side: int = SIDE) -> NDArray[np.uint8]:
    """Draw image `rank` of a class, uint8 (side, side, 3), from the names alone."""
    return draw_image(pair, style, uniforms((16 + side * side,), "toy", name, pair, rank), side)


def draw_toy(name: str, style: Style, canonical_id: str) -> Image.Image:
    """Draw an image of a toy data set by its canonical id, `PAIR/RANK`."""
    pair, _, rank = canonical_id.partition("/")
    return Image.fromarray(toy_image(name, style, pair, int(rank)))


def make_toy(name: str, title: str, style: Style, pairs: tuple[str, ...]) -> Dataset:
    """Return a toy target of 40 images of each pair."""
    facts = toy_facts(name, title, pairs, 40)
    ids = [(label, f"{pair}/{rank:03d}") for label, pair in enumerate(pairs) for rank in range(40)]

    def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
        """Return all images; folder and splits are not used. Raise DataError for another pool."""
        rows = [ImageRow(label, image, f"{image}.png") for label, image in ids]
        dataset = assemble(facts, Path(), rows, pool=pool)
        return replace(dataset, draw=partial(draw_toy, name, style))

    return Dataset(facts, load)


SCAN = Style(colour=0.0, contrast=0.5, noise=0.06)
TOY_TARGETS = {
    name: make_toy(name, f"Toy: {title}", style, pairs)
    for name, title, style, pairs in (
        ("toy_photo", "new shapes, style of the source", Style(), TARGET_PAIRS[0::2]),
        ("toy_rims", "figures with a rim", Style(rim=True), TARGET_PAIRS[:8]),
        ("toy_scan", "grey, faint and noisy scans", SCAN, TARGET_PAIRS[1::2]),
        ("toy_tiles", "many small figures", Style(tiles=2), TARGET_PAIRS[8:]),
    )
}
"""Toy targets by name. Scans are like X-rays, tiles like aerial pictures."""

TRAIN, VAL = 150, 30
"""Images per class of the toy source."""
SOURCE_FACTS = toy_facts("toy_source", "Toy: source", SOURCE_PAIRS, TRAIN)


def load_toy_source(folder: Path, cache: Path) -> SourceListing:
    """Return all images; folder and cache are not used. A CPU trains on them in seconds."""
    draw = partial(draw_toy, SOURCE_FACTS.name, Style())
    train, val = (
        [
            SourceImage(label, partial(draw, f"{pair}/{rank}"))
            for rank in ranks
            for label, pair in enumerate(SOURCE_PAIRS)
        ]
        for ranks in (range(TRAIN), range(TRAIN, TRAIN + VAL))
    )
    return SourceListing(SOURCE_FACTS, train, val, stamp=None)


TOY_SOURCES = {"toy_source": Dataset(SOURCE_FACTS, load_toy_source)}
