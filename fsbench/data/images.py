"""Image decoding and resizing to RGB pixels (geometry: fsbench.core.specs.ImageSpec).

Animations give their first frame; EXIF rotation is ignored, as in torchvision's loaders.
"""

from collections.abc import Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import UNREADABLE, DataError
from fsbench.core.specs import ImageSpec, Interpolation
from fsbench.data.files import identify_stand_in, refuse_placeholder, stamp_file
from fsbench.data.formats import readable_formats

BROKEN = (*UNREADABLE, Image.DecompressionBombError)
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
"""Modes of at most 8 bits per channel, whose conversion to RGB is unambiguous."""
MAX_PIXELS = 89_478_485
"""Pillow's limit for decompression bomb warnings: 0.25 GiB as RGB."""


def open_rgb(path: Path, pre_resize: int | None = None, bits: int | None = None) -> Image.Image:
    """Read an image as 8-bit RGB, resized to a square of `pre_resize` px if set.

    bits: of each value of a 16-bit image that are in use, by default all. The pre-resize is
    bicubic, as in the Pillow versions of IBM's ChestX loader. Raises DataError naming the file.
    """
    stamp_file(path)  # a pipe would be waited for
    rgb = decode_rgb(path, str(path), bits)
    return rgb if pre_resize is None else resize_square(rgb, pre_resize, "bicubic")


def decode_rgb(source: Path | bytes, name: str, bits: int | None = None) -> Image.Image:
    """Decode an image as 8-bit RGB, see `open_rgb`. Raise DataError naming it by `name`."""
    file = BytesIO(source) if isinstance(source, bytes) else source
    try:
        with Image.open(file, formats=readable_formats()) as image:
            return _rgb(image, bits)
    except BROKEN as error:
        reason = str(error)
        if isinstance(source, Path):
            refuse_placeholder(source)
        elif stand_in := identify_stand_in(source[:200]):
            reason = f"it is {stand_in[0]} ({stand_in[1] or 'no image'})"
        raise DataError(
            f"cannot read the image {name}: {reason}", fix="fetch it again, or move it away"
        ) from error


def largest_value(stream: IO[bytes]) -> int:
    """Return the largest value of a 16-bit image, 0 to 65535; -1 for others and broken files."""
    with suppress(*BROKEN), Image.open(stream, formats=readable_formats()) as image:
        if _is_deep(image) and image.width * image.height <= MAX_PIXELS:
            image.load()
            top = int(np.asarray(image).max())
            return top if image.mode.startswith("I") else top << 8 | 255
    return -1


def _is_deep(image: Image.Image) -> bool:
    """Return whether an image that is not decoded yet has 16 bits per channel."""
    grey = image.mode.startswith("I;16") or (image.mode == "I" and image.format in {"PPM", "PNG"})
    return grey or any(";16" in str(tile[3]) for tile in getattr(image, "tile", ()))


def _rgb(image: Image.Image, bits: int | None) -> Image.Image:
    """Convert to RGB. Raise ValueError for too many pixels or an undefined value range."""
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(f"{image.width} x {image.height} px are more than {MAX_PIXELS}")
    deep = _is_deep(image)
    image.load()
    if deep and image.mode.startswith("I"):
        # Pillow clips 16-bit grey at 255; keep the highest eight of the bits in use instead.
        values = np.asarray(image).astype(np.int32)
        if bits and values.max() >= 1 << bits:
            raise ValueError(f"its value {values.max()} has more than the {bits} bits of ?bits=")
        image = Image.fromarray((values >> (bits or 16) - 8).astype(np.uint8))
    elif deep and bits:
        raise ValueError("?bits= does not scale 16-bit colour: save it with 8 bits per channel")
    if image.mode not in MODES:
        raise ValueError(f"pixels of mode {image.mode} state no range; save it with 8 or 16 bits")
    return image.convert("RGB")


def resize_square(
    image: Image.Image, side: int, interpolation: Interpolation = "bilinear"
) -> Image.Image:
    """Resize to side x side px, antialiased, ignoring the aspect ratio."""
    if image.size == (side, side):
        return image
    return image.resize((side, side), Image.Resampling[interpolation.upper()])


def to_channels_first(image: Image.Image) -> NDArray[np.uint8]:
    """Return RGB pixels as uint8 (3, height, width)."""
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


def crop_centres(images: Iterable[Image.Image], spec: ImageSpec, n: int) -> NDArray[np.uint8]:
    """Resize and centre-crop up to n images: (n, 3, s, s), channels last, padded with black images.

    The crop offset is rounded like torchvision's CenterCrop. Copying all pixels out of Pillow at
    once takes half the time of copying small images one by one.
    """
    size, side = spec.input_size, spec.resize
    strip = Image.new("RGB", (side, side * n))
    for row, image in enumerate(images):
        strip.paste(resize_square(image, side, spec.interpolation), (0, row * side))
    rows = np.frombuffer(strip.tobytes(), np.uint8).reshape(n, side, side, 3)
    corner = round((side - size) / 2.0)
    inside = slice(corner, corner + size)
    return rows[:, inside, inside].copy().transpose(0, 3, 1, 2)
