"""Charts as inline SVG: pure functions from plain numbers to a string.

A chart is one file with a frozen dataclass of its numbers and `draw(chart, name, width)`. `name`
begins every id of the drawing, so it must be unique in its page; `width` is in CSS pixels: draw
once for a phone (358) and once for a desk (720 or more), text is never below 11 px in either. A
heat map of very many columns is wider than asked. Lines and text take the colour of the page
(currentColor), marks take --chart-gain, --chart-loss and --chart-1 to --chart-8 where it sets them.
All accuracies are fractions in [0, 1] and are shown in percent.
"""
