"""Toy target: figures whose rim is set off by an inner ring; made in memory."""

from fsbench.data.toy import Style, make_toy, target_pairs

FACTS, load = make_toy("toy_rims", "Toy: figures with a rim", Style(rim=True), target_pairs()[:8])
