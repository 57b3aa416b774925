"""A board as one self-contained page: no network, no server, opens from disk.

source (a board's views and entries) -> data (what the page knows) + pairs, histograms (packed) +
panels (charts) + downloads -> page (template, css, js, one hash each) -> build (by rename).
"""
