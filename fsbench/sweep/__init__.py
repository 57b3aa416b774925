"""Sweeps: recipes x methods x seeds, evaluated on targets, as a graph of content-addressed jobs.

file.py: what a sweep file says; graph.py: the jobs that follow; training.py, evaluating.py,
analyzing.py, entry.py: the kinds of jobs, each with its key, whether it is done and how it runs;
plan.py: what is missing; schedule.py: runs it on an engine (local.py, cluster.py), keeps states.py.
"""
