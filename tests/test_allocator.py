"""Memory that a process has freed is used again, not asked for anew."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fsbench.allocator import keep_freed_memory

FAULTS = """
import resource, torch
from fsbench.allocator import keep_freed_memory
{choice}
def layers(n):
    for _ in range(n):
        torch.ones(10 * 2**20)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
layers(20)
before = faults()
layers(20)
print(faults() - before)
"""
"""Page faults of 20 activations of 40 MiB, which have 10,240 pages each, after 20 others."""


def faults(choice: str) -> int:
    command = [sys.executable, "-c", FAULTS.format(choice=choice)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_activations_take_the_memory_of_those_before_them() -> None:
    if not keep_freed_memory():
        pytest.skip("this C library has no mallopt")
    assert faults("keep_freed_memory()") < 10_240
