"""Sweeps: recipes x methods x seeds, evaluated on targets, as a graph of content-addressed jobs.

`file` reads the sweep file, `graph` builds the jobs (`training`, `evaluation`, `analysis`,
`submission`), `plan` says which remain, `costs` what they cost, `schedule` runs them on `engines`,
`status` keeps their states.
"""
