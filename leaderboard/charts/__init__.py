"""Charts of a board: pure functions from plain numbers to a drawing.

A chart is one file with a frozen dataclass of its numbers and `draw(chart, width)`, in the style of
fsbench/core/plotting.py. `width` is in CSS pixels: draw once for a phone (358) and once for a desk
(590 or more); a heat map of very many columns is wider than `width`. Accuracies are fractions in
[0, 1] and are drawn in percent.
"""
