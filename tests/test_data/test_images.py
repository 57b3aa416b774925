"""From files to pixels."""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from fsbench.core.errors import DataError
from fsbench.core.seeding import words
from fsbench.core.specs import ImageSpec
from fsbench.data.images import decode_rgb, largest_value, open_rgb, resize_square, to_array


def noise(width: int, height: int) -> Image.Image:
    raw = words(width * height, "noise").view(np.uint8)[: width * height * 3]
    return Image.fromarray(raw.reshape(height, width, 3))


@pytest.mark.parametrize(("width", "height"), [(600, 450), (64, 64), (257, 300)])
@pytest.mark.parametrize("size", [224, 84, 64, 32])
def test_geometry_is_that_of_torchvision(width: int, height: int, size: int) -> None:
    image = noise(width, height)
    resize = int(1.15 * size)
    reference = v2.Compose([v2.Resize((resize, resize)), v2.CenterCrop(size), v2.PILToTensor()])
    pixels = torch.from_numpy(to_array(image, ImageSpec(input_size=size)))
    assert pixels.shape == (3, size, size)
    assert torch.equal(pixels, reference(image))


def test_shrinking_is_antialiased() -> None:
    checks = np.indices((64, 64)).sum(axis=0) % 2 * 255
    image = Image.fromarray(np.repeat(checks[..., None], 3, axis=2).astype(np.uint8))
    shrunk = np.asarray(resize_square(image, 8))
    assert abs(float(shrunk.mean()) - 127.5) < 1
    assert shrunk.std() < 4


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    Image.new("RGB", (4, 4), (250, 250, 250)).convert(mode).save(path)
    pixels = np.asarray(open_rgb(path))
    assert pixels.shape == (4, 4, 3)
    assert pixels.min() >= 240


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 0x40FF], [0x8000, 0xFFFF]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    assert np.asarray(open_rgb(tmp_path / "a.png"))[..., 1].tolist() == [[0, 0x40], [0x80, 0xFF]]


@pytest.mark.parametrize(
    ("bits", "value", "level"),
    [(None, 0xFFF, 15), (12, 0xFFF, 255), (12, 0x810, 129), (8, 200, 200)],
)
def test_bits_in_use_scale_sixteen_bit_grey(
    tmp_path: Path, bits: int | None, value: int, level: int
) -> None:
    Image.fromarray(np.full((2, 2), value, dtype=np.uint16)).save(tmp_path / "a.png")
    pixels = np.asarray(open_rgb(tmp_path / "a.png", bits=bits))
    assert pixels.shape == (2, 2, 3)
    assert set(pixels.ravel().tolist()) == {level}
    data = (tmp_path / "a.png").read_bytes()
    assert np.array_equal(np.asarray(decode_rgb(data, "row 1", bits)), pixels)


def test_a_value_beyond_the_bits_in_use_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2), 4096, dtype=np.uint16)).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="its value 4096 has more than the 12 bits"):
        open_rgb(tmp_path / "a.png", bits=12)


def test_eight_bit_images_are_read_as_they_are_whatever_the_bits(
    tmp_path: Path, draw: Callable[..., Path]
) -> None:
    path = draw(tmp_path / "a.png")
    assert np.array_equal(np.asarray(open_rgb(path, bits=12)), np.asarray(open_rgb(path)))


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
    Image.fromarray(np.array([[7, 3000], [4095, 0]], dtype=np.uint16)).save(
        stream, kind, **({"irreversible": False} if kind == "JPEG2000" else {})
    )
    stream.seek(0)
    assert largest_value(stream) == 4095


def test_other_images_have_no_largest_value(tmp_path: Path, draw: Callable[..., Path]) -> None:
    for name in ("a.png", "a.jpg", "a.tif", "a.bmp", "a.pgm"):
        with draw(tmp_path / name).open("rb") as stream:
            assert largest_value(stream) == -1, name
    for data in (b"", b"P5", b"II*\0", colour16(1)[:40]):
        assert largest_value(BytesIO(data)) == -1
    assert largest_value(BytesIO(colour16(0xFFF))) == 0xFFF


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
STAND_INS = [
    (POINTER, "a pointer of Git LFS(.|\n)*git lfs pull"),
    (b"/annex/objects/SHA256E-s1--00.png\n", "a pointer of git-annex(.|\n)*git annex get"),
    (b"../../.git/annex/objects/0f/SHA256E-s1--00.png", "a pointer of git-annex"),
    (b"<!DOCTYPE html><title>404</title>", "a web page"),
]


@pytest.mark.parametrize(("content", "message"), STAND_INS)
def test_a_pointer_in_place_of_an_image_says_what_to_run(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.png is {message}"):
        open_rgb(tmp_path / "a.png")
    with pytest.raises(DataError, match=message):
        decode_rgb(content, "row 3")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("../.git/annex/objects/x/y.png", "git annex get"),
        ("../../.git/annex/objects/0f/2/SHA256E-s1--00/SHA256E-s1--00.png", "git annex get"),
        ("/nowhere/a.png", "which is missing"),
    ],
)
def test_a_broken_link_says_what_to_run(tmp_path: Path, target: str, message: str) -> None:
    (tmp_path / "a.png").symlink_to(target)
    with pytest.raises(DataError, match=rf"a\.png is a link to .*{message}"):
        open_rgb(tmp_path / "a.png")


def test_pre_resize_is_a_square(tmp_path: Path, draw: Callable[..., Path]) -> None:
    assert open_rgb(draw(tmp_path / "a.png"), 16).size == (16, 16)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-60])


def scribble(path: Path) -> None:
    path.write_bytes(b"no image at all")


@pytest.mark.parametrize("damage", [cut, scribble, Path.unlink])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_a_broken_file_is_named(
    tmp_path: Path, draw: Callable[..., Path], suffix: str, damage: Callable[[Path], None]
) -> None:
    path = draw(tmp_path / f"broken.{suffix}", side=64)
    damage(path)
    with pytest.raises(DataError, match="broken"):
        open_rgb(path)
    with pytest.raises(DataError, match="row 7"):
        decode_rgb(path.read_bytes() if path.exists() else b"", "table, row 7")
