"""Image decoding and resizing to RGB pixels (geometry: fsbench.core.specs.ImageSpec).

A file that Pillow cannot decode in full raises a DataError that names it. Animations give their
first frame; EXIF rotation is ignored, as in torchvision's loaders.
"""

import struct
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.core.specs import ImageSpec, Interpolation
from fsbench.data.files import stamp_file

BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    MemoryError,
    struct.error,
    Image.DecompressionBombError,
)
"""Exceptions of Pillow for missing, truncated, corrupt or oversized files."""

FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")
"""Formats, recognised by content. Others can start programs, e.g. Ghostscript for EPS."""
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
"""Modes of at most 8 bits per channel, whose conversion to RGB is unambiguous."""
MAX_PIXELS = 89_478_485
"""Pillow's limit for decompression bomb warnings: 0.25 GiB as RGB."""


def open_rgb(path: Path, pre_resize: int | None = None) -> Image.Image:
    """Read an image as 8-bit RGB, resized to a square of `pre_resize` px if set.

    The pre-resize is bicubic, the default of `Image.resize` in the Pillow versions that projects
    with IBM's ChestX loader pin. Raises DataError naming the file.
    """
    try:
        stamp_file(path)  # a pipe would be waited for
        with Image.open(path, formats=FORMATS) as image:
            rgb = _rgb(image)
    except BROKEN as error:
        raise _unreadable(str(path), error) from error
    if pre_resize is not None and rgb.size != (pre_resize, pre_resize):
        rgb = rgb.resize((pre_resize, pre_resize), Image.Resampling.BICUBIC)
    return rgb


def decode_rgb(data: bytes, name: str) -> Image.Image:
    """Decode an image as 8-bit RGB. Raise DataError naming it by `name`."""
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            return _rgb(image)
    except BROKEN as error:
        raise _unreadable(name, error) from error


def _rgb(image: Image.Image) -> Image.Image:
    """Convert to RGB. Raise ValueError for too many pixels or an undefined value range."""
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(f"{image.width} x {image.height} px are more than {MAX_PIXELS}")
    image.load()
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in {"PPM", "PNG"}):
        # Pillow clips 16-bit grey at 255; keep the high byte instead.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode not in MODES:
        raise ValueError(f"pixels of mode {image.mode} state no range; save it with 8 or 16 bits")
    return image.convert("RGB")


def _unreadable(name: str, error: BaseException) -> DataError:
    return DataError(
        f"cannot read the image {name}: {error}", fix="fetch it again, or move it away"
    )


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


def to_array(image: Image.Image, spec: ImageSpec) -> NDArray[np.uint8]:
    """Resize to a square of spec.resize px and crop the centre: uint8 (3, s, s)."""
    return np.ascontiguousarray(crop_centres((image,), spec, 1)[0])


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
