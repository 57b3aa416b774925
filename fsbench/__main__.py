"""`python -m fsbench`."""

from fsbench.cli.main import run

run()
