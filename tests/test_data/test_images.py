"""From files to pixels."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from fsbench.core.errors import DataError
from fsbench.core.seeding import words
from fsbench.core.specs import ImageSpec
from fsbench.data.images import decode_rgb, open_rgb, resize_square, to_array


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
