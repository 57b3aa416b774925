"""A board as one self-contained page: no network, no server, opens from disk.

data: what the page knows; packing: its compact encodings; page: template, style sheets, scripts and
data in one file.
"""
