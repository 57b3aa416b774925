"""Small images on disk."""

import hashlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def write_pixels(path: Path, pixels: NDArray[Any], mode: str = "", kind: str = "") -> Path:
    """Write an image of these pixels, by default in the format of its suffix or as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    kind = kind or Image.registered_extensions().get(path.suffix.lower(), "PNG")
    (image.convert(mode) if mode else image).save(path, kind)
    return path


def draw_images(folder: Path, *names: str, side: int = 8, mode: str = "") -> Path:
    """Write an image of one colour under each name below the folder: names differ, so do images."""
    for name in names:
        colour = tuple(hashlib.sha256(name.encode()).digest()[:3])
        write_pixels(folder / name, np.full((side, side, 3), colour, np.uint8), mode)
    return folder


def draw_grey(folder: Path, *names: str, value: int, top: int = 0) -> Path:
    """Write 16-bit grey images of one value; top: the value of one of the four pixels."""
    for name in names:
        values = np.array([[value, value], [value, top or value]], np.uint16)
        write_pixels(folder / name, values)
    return folder


def join_names(*parts: Sequence[str] | str) -> list[str]:
    """join_names("a b", "c d", "1.png"): the paths a/c/1.png, a/d/1.png, b/c/1.png, b/d/1.png."""
    names = [""]
    for part in parts:
        words = part.split() if isinstance(part, str) else part
        names = [f"{name}/{word}".lstrip("/") for name in names for word in words]
    return names


def encode_grey(level: int) -> bytes:
    """A grey PNG of 64 x 64 px."""
    buffer = BytesIO()
    Image.new("L", (64, 64), level).save(buffer, "png")
    return buffer.getvalue()


def write_table(path: Path, columns: dict[str, Any], kinds: dict[str, Any]) -> None:
    """Write a parquet file with columns of these features of the package datasets."""
    from datasets import Dataset, Features

    path.parent.mkdir(parents=True, exist_ok=True)
    Dataset.from_dict(columns, features=Features(kinds)).to_parquet(str(path))
