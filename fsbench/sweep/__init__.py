"""Sweeps: recipes x methods x seeds, evaluated on targets, as a graph of content-addressed jobs.

`file` reads the sweep file, `graph` builds the jobs (`backbones`, `evaluation`, `analysis`,
`submission`) and computes which remain, `costs` estimates them, `schedule` runs them by `engines`.
"""
