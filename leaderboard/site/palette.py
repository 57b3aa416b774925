"""The colours of cells: nine steps of even lightness, from pale yellow to blue, in OKLCH.

Lightness alone carries the order, so it survives every kind of colour blindness and a grey print;
hue runs from yellow to blue, the pair that the common kinds keep apart. Text on a step is black or
white, whichever is the stronger.
"""

from __future__ import annotations

import math

STEPS = 9
LIGHT, DARK = (0.965, 0.60), (0.28, 0.62)
"""Lightness of the lowest and the highest step on a light and on a dark page."""
HUES = (100.0, 245.0)
CHROMA = (0.035, 0.105)

RGB = tuple[float, float, float]


def make_color_scale(ends: tuple[float, float]) -> list[RGB]:
    """Return the steps from the lowest value to the highest, sRGB in [0, 1]."""
    parts = [i / (STEPS - 1) for i in range(STEPS)]
    return [to_srgb(mix(ends, t), mix(CHROMA, t), mix(HUES, t)) for t in parts]


def mix(ends: tuple[float, float], t: float) -> float:
    return ends[0] + t * (ends[1] - ends[0])


def to_srgb(lightness: float, chroma: float, hue: float) -> RGB:
    """Convert OKLCH to clipped sRGB.

    B. Ottosson, A perceptual color space for image processing, 2020.
    """
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        compand(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        compand(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        compand(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
    )


def compand(linear: float) -> float:
    value = min(max(linear, 0.0), 1.0)
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def compute_luminance(colour: RGB) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def compute_contrast(a: RGB, b: RGB) -> float:
    """Return the contrast ratio (WCAG 2.2), 1 to 21."""
    low, high = sorted((compute_luminance(a), compute_luminance(b)))
    return (high + 0.05) / (low + 0.05)


def choose_text_color(colour: RGB) -> RGB:
    """Return black or white, whichever has the higher contrast."""
    black, white = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    return black if compute_contrast(colour, black) >= compute_contrast(colour, white) else white


def to_hex(colour: RGB) -> str:
    return "#" + "".join(f"{round(255 * c):02x}" for c in colour)


def write_palette_variables(ends: tuple[float, float]) -> str:
    """Return CSS variables: --q0..--q8 for cells, --t0..--t8 for the text on them."""
    steps = enumerate(make_color_scale(ends))
    return "".join(f"--q{i}:{to_hex(c)};--t{i}:{to_hex(choose_text_color(c))};" for i, c in steps)
