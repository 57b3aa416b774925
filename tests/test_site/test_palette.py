"""The scale of cells: readable text, even steps, an order that colour-blind readers see too."""

import math

import numpy as np
import pytest
from support.colours import RGB, compute_contrast, read_colours, read_scales

LIGHT, DARK = (0.965, 0.60), (0.28, 0.62)
"""Lightness of the lowest and the highest step on a light and on a dark page."""
CHROMA, HUES = (0.035, 0.105), (100.0, 245.0)
STEPS = 9
PAGES = (LIGHT, DARK, DARK)
SCALES = pytest.mark.parametrize(
    ("ends", "scale"), list(zip(PAGES, read_scales(), strict=True)), ids=["light", "system", "dark"]
)
# G. Machado et al., A physiologically-based model for simulation of color vision deficiency, 2009,
# severity 1.0, on linear RGB.
BLIND = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lightness(colour: RGB, blind: str = "none") -> float:
    """CIE L* of what such a reader sees."""
    c = np.array(colour)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    y = float(np.array([0.2126, 0.7152, 0.0722]) @ (np.array(BLIND[blind]) @ linear))
    return float(116 * np.cbrt(max(y, 0.0)) - 16)


def to_srgb(lightness: float, chroma: float, hue: float) -> list[float]:
    """OKLCH as sRGB, clipped (B. Ottosson, A perceptual color space for image processing, 2020)."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    lms = np.array(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ]
    )
    to_rgb = [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
    linear = np.clip(np.array(to_rgb) @ lms**3, 0, 1)
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return [float(c) for c in curve]


def test_contrast_is_that_of_wcag() -> None:
    black, white, grey = (0.0,) * 3, (1.0,) * 3, (0x77 / 255,) * 3
    assert compute_contrast(black, white) == pytest.approx(21)
    assert compute_contrast(white, grey) == pytest.approx(4.48, abs=0.005)


def test_lines_and_text_are_readable_in_both_schemes() -> None:
    light, system, dark = read_colours("base")
    assert system == dark
    for colours in (light, dark):
        assert compute_contrast(colours["bg"], colours["fg"]) >= 7
        series = [colours[f"chart-{i}"] for i in range(1, 9)]
        assert min(compute_contrast(colours["bg"], colour) for colour in series) >= 3


@SCALES
def test_the_sheet_states_even_steps_of_oklch(
    ends: tuple[float, float], scale: list[tuple[RGB, RGB]]
) -> None:
    assert len(scale) == STEPS
    for part, (cell, _) in zip(np.linspace(0, 1, STEPS), scale, strict=True):
        parameters = [a + part * (b - a) for a, b in (ends, CHROMA, HUES)]
        assert [round(255 * c) for c in to_srgb(*parameters)] == [round(255 * c) for c in cell]


@SCALES
def test_text_on_every_step_is_the_more_readable(
    ends: tuple[float, float], scale: list[tuple[RGB, RGB]]
) -> None:
    for cell, text in scale:
        assert compute_contrast(cell, text) >= 4.5
        assert compute_contrast(cell, text) >= max(
            compute_contrast(cell, (c, c, c)) for c in (0.0, 1.0)
        )


@SCALES
@pytest.mark.parametrize("blind", BLIND)
def test_lightness_tells_every_step_from_the_next(
    ends: tuple[float, float], scale: list[tuple[RGB, RGB]], blind: str
) -> None:
    lightness_of_steps = [lightness(colour, blind) for colour, _ in scale]
    steps = np.diff(lightness_of_steps) * np.sign(ends[1] - ends[0])
    assert steps.min() > 2
    assert steps.max() < 2.5 * np.median(steps)
