"""Toy target: figures whose rim is set off by an inner ring; made in memory."""

from fsbench.data.toy import TARGET_PAIRS, Style, make_toy

FACTS, load = make_toy("toy_rims", "Toy: figures with a rim", Style(rim=True), TARGET_PAIRS[:8])
