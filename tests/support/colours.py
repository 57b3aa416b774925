"""Contrast of two colours, and the steps of the page's scale as its style sheet has them."""

import re
from pathlib import Path

import leaderboard.site

RGB = tuple[float, float, float]
SHEETS = Path(leaderboard.site.__file__).parent / "css"


def compute_contrast(a: RGB, b: RGB) -> float:
    """Return the contrast ratio (WCAG 2.2), 1 to 21."""
    low, high = sorted((compute_luminance(a), compute_luminance(b)))
    return (high + 0.05) / (low + 0.05)


def compute_luminance(colour: RGB) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def parse_hex(colour: str) -> RGB:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def read_scales() -> list[list[tuple[RGB, RGB]]]:
    """Return (ground, text) of every step: the light scale, then both forms of the dark one."""
    return [[(c[f"q{i}"], c[f"t{i}"]) for i in range(len(c) // 2)] for c in read_colours("scale")]


def read_colours(sheet: str) -> list[dict[str, RGB]]:
    """Return the colours by variable of a sheet: light, then both forms of dark."""
    text = (SHEETS / f"{sheet}.css").read_text(encoding="utf8")
    blocks = text.partition("*/")[2].split(":root")[1:]
    colours = [re.findall(r"--([\w-]+): (#\w{6})", block) for block in blocks]
    return [{name: parse_hex(colour) for name, colour in pairs} for pairs in colours]
