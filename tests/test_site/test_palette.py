"""The scale of cells: readable text, even steps, an order that colour-blind readers see too."""

import numpy as np
import pytest
from support.colours import RGB, compute_contrast, read_colours, read_scales

SCALES = pytest.mark.parametrize(
    ("sign", "scale"),
    list(zip((-1, 1, 1), read_scales(), strict=True)),
    ids=["light", "system", "dark"],
)
"""sign: whether higher steps are lighter or darker."""
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
def test_text_on_every_step_is_the_more_readable(sign: int, scale: list[tuple[RGB, RGB]]) -> None:
    assert len(scale) == 9
    for cell, text in scale:
        assert compute_contrast(cell, text) >= 4.5
        assert compute_contrast(cell, text) >= max(
            compute_contrast(cell, (c, c, c)) for c in (0.0, 1.0)
        )


@SCALES
@pytest.mark.parametrize("blind", BLIND)
def test_lightness_tells_every_step_from_the_next(
    sign: int, scale: list[tuple[RGB, RGB]], blind: str
) -> None:
    lightness_of_steps = [lightness(colour, blind) for colour, _ in scale]
    steps = np.diff(lightness_of_steps) * sign
    assert steps.min() > 2
    assert steps.max() < 2.5 * np.median(steps)
