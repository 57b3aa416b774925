"""Toy target: grey, low-contrast and noisy images, like X-rays; made in memory."""

from fsbench.data.toy import Style, make_toy, target_pairs

FACTS, load = make_toy(
    "toy_scan",
    "Toy: grey, faint and noisy scans",
    Style(colour=0.0, contrast=0.5, noise=0.06),
    target_pairs()[1::2],
)
