"""From files to pixels."""

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.images import draw_images, write_pixels
from torchvision.transforms import v2

from fsbench.core.errors import DataError
from fsbench.core.seeding import words
from fsbench.core.specs import ImageSpec
from fsbench.data.images import crop_centres, decode_rgb, largest_value, open_rgb


@pytest.mark.parametrize(("width", "height"), [(600, 450), (64, 64), (257, 300)])
@pytest.mark.parametrize("size", [224, 84, 64, 32])
def test_geometry_is_that_of_torchvision(width: int, height: int, size: int) -> None:
    raw = words(width * height, "noise").view(np.uint8)[: width * height * 3]
    image = Image.fromarray(raw.reshape(height, width, 3))
    resize = int(1.15 * size)
    reference = v2.Compose([v2.Resize((resize, resize)), v2.CenterCrop(size), v2.PILToTensor()])
    pixels = torch.from_numpy(crop_centres([image], ImageSpec(input_size=size), 1)[0])
    assert pixels.shape == (3, size, size)
    assert torch.equal(pixels, reference(image))


@pytest.mark.parametrize(
    ("bits", "value", "level"),
    [
        *((None, 0x40FF, 0x40), (None, 0x8000, 0x80), (None, 0xFFFF, 0xFF)),
        *((None, 0xFFF, 15), (12, 0xFFF, 255), (12, 0x810, 129), (8, 200, 200), (12, 4096, None)),
    ],
)
def test_sixteen_bit_grey_is_scaled_by_the_bits_in_use(
    tmp_path: Path, bits: int | None, value: int, level: int | None
) -> None:
    path = write_pixels(tmp_path / "a.png", np.full((2, 2), value, np.uint16))
    if level is None:
        with pytest.raises(DataError, match="its value 4096 has more than the 12 bits"):
            open_rgb(path, bits=bits)
        return
    for image in (open_rgb(path, bits=bits), decode_rgb(path.read_bytes(), "row 1", bits)):
        assert np.asarray(image).tolist() == [[[level] * 3] * 2] * 2


def test_eight_bit_images_are_read_as_they_are_whatever_the_bits(tmp_path: Path) -> None:
    path = draw_images(tmp_path, "a.png") / "a.png"
    assert np.array_equal(np.asarray(open_rgb(path, bits=12)), np.asarray(open_rgb(path)))
    assert open_rgb(path, 16).size == (16, 16)


def colour16(value: int) -> bytes:
    """A 1 x 1 PNG of 16-bit colour, which Pillow reads but does not write."""

    def chunk(name: bytes, body: bytes) -> bytes:
        data = name + body
        return struct.pack(">I", len(body)) + data + struct.pack(">I", zlib.crc32(data))

    header = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" + struct.pack(">HHH", value, value, value))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def test_sixteen_bit_colour_has_no_bits_to_scale() -> None:
    assert decode_rgb(colour16(0x4000), "a").getpixel((0, 0)) == (0x40,) * 3
    with pytest.raises(DataError, match="does not scale 16-bit colour"):
        decode_rgb(colour16(0xFFF), "a", 12)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM", "JPEG2000"])
def test_the_largest_value_of_a_sixteen_bit_image(kind: str) -> None:
    stream = BytesIO()
    options = {"irreversible": False} if kind == "JPEG2000" else {}
    values = np.array([[7, 3000], [4095, 0]], dtype=np.uint16)
    Image.fromarray(values).save(stream, kind, **options)
    stream.seek(0)
    assert largest_value(stream) == 4095
    assert largest_value(BytesIO(colour16(0xFFF))) == 0xFFF


def test_other_images_have_no_largest_value(tmp_path: Path) -> None:
    draw_images(tmp_path, *(f"a.{suffix}" for suffix in ("png", "jpg", "tif", "bmp", "pgm")))
    broken = [b"", b"P5", b"II*\0", colour16(1)[:40]]
    for data in [*(path.read_bytes() for path in tmp_path.iterdir()), *broken]:
        assert largest_value(BytesIO(data)) == -1


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (POINTER, "a pointer of Git LFS(.|\n)*git lfs pull"),
        (b"/annex/objects/SHA256E-s1--00.png\n", "a pointer of git-annex(.|\n)*git annex get"),
        (b"../../.git/annex/objects/0f/SHA256E-s1--00.png", "a pointer of git-annex"),
        (b"<!DOCTYPE html><title>404</title>", "a web page"),
        ("../.git/annex/objects/x/y.png", "a link to .*git annex get"),
        ("/nowhere/a.png", "a link to .*which is missing"),
    ],
)
def test_a_pointer_or_broken_link_in_place_of_an_image_says_what_to_run(
    tmp_path: Path, content: bytes | str, message: str
) -> None:
    path = tmp_path / "a.png"
    with pytest.raises(DataError, match=r"cannot read .*a\.png: No such file"):
        open_rgb(path)
    if isinstance(content, str):
        path.symlink_to(content)
    else:
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"row 3: it is {message}"):
            decode_rgb(content, "row 3")
    with pytest.raises(DataError, match=rf"a\.png is {message}"):
        open_rgb(path)
