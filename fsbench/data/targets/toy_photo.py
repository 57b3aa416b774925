"""Toy target: new pairs of shape and texture in the style of the toy source; made in memory."""

from fsbench.data.toy import TARGET_PAIRS, Style, make_toy

FACTS, load = make_toy(
    "toy_photo", "Toy: new shapes, style of the source", Style(), TARGET_PAIRS[0::2]
)
