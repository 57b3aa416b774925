"""Toy target: grey, low-contrast and noisy images, like X-rays; made in memory."""

from fsbench.data.toy import TARGET_PAIRS, Style, make_toy

FACTS, load = make_toy(
    "toy_scan",
    "Toy: grey, faint and noisy scans",
    Style(colour=0.0, contrast=0.5, noise=0.06),
    TARGET_PAIRS[1::2],
)
