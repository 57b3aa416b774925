"""Toy target: new pairs of shape and texture in the style of the toy source; made in memory."""

from fsbench.data.toy import Style, make_toy, target_pairs

FACTS, load = make_toy(
    "toy_photo", "Toy: new shapes, style of the source", Style(), target_pairs()[0::2]
)
