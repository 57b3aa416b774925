"""Provenance: versions and settings, without torch and without anything private."""

import platform
import subprocess
import sys

import numpy as np
from support import fakes

from fsbench import __version__
from fsbench.core.schema import Provenance
from fsbench.results.provenance import (
    describe_differences,
    describe_software,
    environment_of,
    git_commit,
)


def test_the_software_is_stated_beside_what_a_run_states() -> None:
    provenance = Provenance(
        **describe_software(),
        command="fsbench probe -m timm/resnet18 --data ~/data",
        device="cpu",
        cpu_capability="AVX2",
        threads=2,
        started="2026-01-01T00:00:00+00:00",
        seconds=3.5,
    )
    assert provenance.command == "fsbench probe -m timm/resnet18 --data ~/data"
    assert (provenance.fsbench, provenance.python) == (__version__, platform.python_version())
    assert provenance.packages["numpy"] == np.__version__
    assert platform.node() not in provenance.platform
    assert environment_of(provenance)["threads"] == "2"


def test_differences_name_fields_and_values() -> None:
    a, b = fakes.provenance(), fakes.provenance(threads=4, seconds=9.0)
    assert describe_differences(a, b) == "threads 1 and 4"
    assert describe_differences(a, fakes.provenance(seconds=9.0)) == ""


def test_commit_is_a_full_hash_or_nothing() -> None:
    commit = git_commit()
    assert commit is None or len(commit.removesuffix("-dirty")) == 40


def test_it_needs_no_torch() -> None:
    check = "import fsbench.results.provenance, fsbench.results, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
