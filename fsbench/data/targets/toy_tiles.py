"""Toy target: four figures per image, like aerial pictures; made in memory."""

from fsbench.data.toy import TARGET_PAIRS, Style, make_toy

FACTS, load = make_toy("toy_tiles", "Toy: many small figures", Style(tiles=2), TARGET_PAIRS[8:])
