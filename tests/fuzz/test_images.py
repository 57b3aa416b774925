"""Image files of every kind and with every fault: the very pixels, or a refusal by name."""

import struct
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.cases import DAMAGE, SIZES, Tally, damage
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.data.images import decode_rgb, open_rgb

Pixels = NDArray[np.uint8]
Made = tuple[bytes, Pixels]
"""A file, and the RGB pixels that it stands for."""


def noise(width: int, height: int, seed: int) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def saved(image: Image.Image | NDArray[Any], kind: str, **options: Any) -> bytes:
    out = BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(out, kind, **options)
    return out.getvalue()


def grey(pixels: Pixels) -> Pixels:
    return np.repeat(pixels[..., :1], 3, axis=2)


def sixteen(pixels: Pixels) -> NDArray[np.uint16]:
    """16-bit grey whose high byte is the grey."""
    return pixels[..., 0].astype(np.uint16) * 256 + pixels[..., 1]


def converted(pixels: Pixels, mode: str, kind: str) -> Made:
    """A file of another mode, and what it is as RGB."""
    image = Image.fromarray(pixels)
    image = image.quantize(16) if mode == "P" else image.convert(mode)
    data = saved(image, kind)
    return data, np.asarray((Image.open(BytesIO(data)) if kind == "JPEG" else image).convert("RGB"))


def turned(pixels: Pixels) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(pixels, "PNG", exif=exif)


def animated(pixels: Pixels) -> bytes:
    later = [Image.fromarray(255 - pixels), Image.fromarray(pixels // 2)]
    return saved(pixels, "PNG", save_all=True, append_images=later)


def pgm(pixels: Pixels) -> bytes:
    head = f"P5 {pixels.shape[1]} {pixels.shape[0]} 65535\n".encode()
    return head + sixteen(pixels).astype(">u2").tobytes()


MODES = {"RGB": "JPEG", "CMYK": "JPEG", "P": "PNG", "1": "PNG", "LA": "PNG"}
GOOD: dict[str, Callable[[Pixels], Made]] = {
    **{kind: partial(lambda kind, p: (saved(p, kind), p), kind) for kind in ("PNG", "BMP", "PPM")},
    **{mode: partial(converted, mode=mode, kind=kind) for mode, kind in MODES.items()},
    "cmyk tiff": partial(converted, mode="CMYK", kind="TIFF"),
    "tiff": lambda p: (saved(p, "TIFF", compression="tiff_lzw"), p),
    "webp": lambda p: (saved(p, "WEBP", lossless=True), p),
    "grey": lambda p: (saved(p[..., 0], "PNG"), grey(p)),
    "alpha": lambda p: (saved(np.dstack([p, p[..., :1]]), "PNG"), p),
    "16 bits": lambda p: (saved(sixteen(p), "PNG"), grey(p)),
    "16-bit tiff": lambda p: (saved(sixteen(p), "TIFF"), grey(p)),
    "16-bit pgm": lambda p: (pgm(p), grey(p)),
    "turned": lambda p: (turned(p), p),
    "animated png": lambda p: (animated(p), p),
    "animated webp": lambda p: (saved(p, "WEBP", lossless=True, save_all=True), p),
}


def huge(pixels: Pixels) -> bytes:
    """A small PNG whose header states 50,000 x 50,000 px, with the right checksum."""
    data = bytearray(saved(pixels, "PNG"))
    data[16:24] = struct.pack(">II", 50_000, 50_000)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


BAD: dict[str, Callable[[Pixels], bytes]] = {
    "empty": lambda p: b"",
    "zeros": lambda p: bytes(500),
    "text": lambda p: b"<html>404</html>",
    "huge png": huge,
    "large": lambda p: b"P5 10000 9000 255\n" + bytes(500),
    "huge bmp": lambda p: saved(p, "BMP")[:18] + b"\xff\xff\x00\x00" * 2 + bytes(99),
    "floats": lambda p: saved(p[..., 0].astype(np.float32), "TIFF"),
    "32 bits": lambda p: saved(p[..., 0].astype(np.int32), "TIFF"),
    "lab": lambda p: saved(Image.new("LAB", (3, 3)), "TIFF"),
    **{kind: partial(lambda kind, p: saved(p, kind), kind) for kind in ("EPS", "PDF", "ICO")},
}
SUFFIXES = st.sampled_from([".png", ".jpg", ".jpeg", ".tif", ".webp", ".bmp", ".pgm"])
SIDES = st.tuples(st.integers(1, 40), st.integers(1, 40))


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_every_kind_under_every_name(size: int, tmp_path: Path, tally: Tally) -> None:
    def check(sides: tuple[int, int], seed: int, suffix: str) -> None:
        pixels, path = noise(*sides, seed), tmp_path / f"a{suffix}"
        for kind in (*GOOD, *BAD):
            data, meant = GOOD[kind](pixels) if kind in GOOD else (BAD[kind](pixels), None)
            path.write_bytes(data)
            outcome = tally.attempt(lambda: np.asarray(open_rgb(path)), DataError, str(path))
            assert (outcome is None) == (kind in BAD), kind
            if outcome is not None:
                np.testing.assert_array_equal(outcome, meant)

    tally.explore(size // 10, check, SIDES, st.integers(0, 2**32), SUFFIXES)


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_damaged_images(size: int, tally: Tally) -> None:
    """A cut file gives the very pixels or none; a changed byte never more than other pixels."""

    def check(kind: str, seed: int, how: str, position: int, more: bytes) -> None:
        whole, meant = GOOD[kind](noise(1 + seed % 40, 1 + seed % 37, seed))
        data = damage(whole, how, position, more)
        outcome = tally.attempt(lambda: np.asarray(decode_rgb(data, "row 7")), DataError, "row 7")
        if outcome is not None and how in {"as it is", "cut"}:
            np.testing.assert_array_equal(outcome, meant)
        assert outcome is None or (outcome.dtype == np.uint8 and outcome.shape[2] == 3)

    tally.explore(size, check, st.sampled_from([*GOOD]), st.integers(0, 10**4), *DAMAGE)
