"""Provenance: versions and settings, without anything private."""

import platform

import numpy as np
from support import fakes

from fsbench import __version__
from fsbench.results.provenance import describe_changes, describe_software, environment_of


def test_the_software_is_stated_without_the_name_of_the_machine() -> None:
    software = describe_software()
    assert (software["fsbench"], software["python"]) == (__version__, platform.python_version())
    assert software["packages"]["numpy"] == np.__version__
    assert platform.node() not in software["platform"]
    commit = software["git_commit"]
    assert commit is None or len(commit.removesuffix("-dirty")) == 40


def test_changes_name_parts_and_values() -> None:
    before, now, later = (
        environment_of(fakes.provenance(**changes))
        for changes in ({}, {"threads": 4, "batch_size": 8}, {"seconds": 9.0})
    )
    assert describe_changes(before, now) == ["threads: 1 -> 4", "batch size: default -> 8"]
    assert describe_changes(before, later) == []
