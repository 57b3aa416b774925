"""The scale of cells: readable text, even steps, an order that colour-blind readers see too."""

from __future__ import annotations

import numpy as np
import pytest

from leaderboard.site import palette
from leaderboard.site.palette import RGB

SCALES = pytest.mark.parametrize("ends", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
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


def test_contrast_is_that_of_wcag() -> None:
    black, white, grey = (0.0,) * 3, (1.0,) * 3, (0x77 / 255,) * 3
    assert palette.compute_contrast(black, white) == pytest.approx(21)
    assert palette.compute_contrast(white, grey) == pytest.approx(4.48, abs=0.005)


@SCALES
def test_text_on_every_step_is_readable(ends: tuple[float, float]) -> None:
    assert (
        min(
            palette.compute_contrast(c, palette.choose_text_color(c))
            for c in palette.make_color_scale(ends)
        )
        >= 4.5
    )


@SCALES
@pytest.mark.parametrize("blind", BLIND)
def test_lightness_tells_every_step_from_the_next(ends: tuple[float, float], blind: str) -> None:
    seen = [lightness(colour, blind) for colour in palette.make_color_scale(ends)]
    steps = np.diff(seen) * np.sign(ends[1] - ends[0])
    assert steps.min() > 2
    assert steps.max() < 2.5 * np.median(steps)


def test_variables_hold_cell_and_text_of_every_step() -> None:
    text = palette.write_palette_variables(palette.LIGHT)
    assert text.startswith(
        f"--q0:{palette.to_hex(palette.make_color_scale(palette.LIGHT)[0])};--t0:#0"
    )
    assert text.count("--q") == text.count("--t") == palette.STEPS
