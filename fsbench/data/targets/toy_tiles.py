"""Toy target: four figures per image, like aerial pictures; made in memory."""

from fsbench.data.toy import Style, make_toy, target_pairs

FACTS, load = make_toy("toy_tiles", "Toy: many small figures", Style(tiles=2), target_pairs()[8:])
