"""Provenance: versions and settings, without anything private."""

import platform

import numpy as np

from fsbench import __version__
from fsbench.results.provenance import describe_software


def test_the_software_is_stated_without_the_name_of_the_machine() -> None:
    software = describe_software()
    assert (software["fsbench"], software["python"]) == (__version__, platform.python_version())
    assert software["packages"]["numpy"] == np.__version__
    assert platform.node() not in software["platform"]
    commit = software["git_commit"]
    assert commit is None or len(commit.removesuffix("-dirty")) == 40
