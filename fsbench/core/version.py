"""The version of fsbench, as results and runs record it."""

__version__ = "0.1.0"
