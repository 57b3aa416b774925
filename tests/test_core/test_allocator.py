"""Memory that a process has freed is used again, not asked for anew; peaks are its own."""

import subprocess
import sys

import numpy as np
import pytest

from fsbench.cli import main
from fsbench.core.process import peak_resident_memory

FAULTS = """
import resource, sys, torch
from fsbench.core.process import keep_freed_memory
if not keep_freed_memory():
    sys.exit("none")
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


def test_activations_take_the_memory_of_those_before_them() -> None:
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stderr.strip() == "none":
        pytest.skip("this C library has no mallopt")
    assert int(done.stdout) < 10_240


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts memory by program")
def test_the_peak_of_a_process_is_not_that_of_the_one_that_started_it() -> None:
    numbers = np.ones(40 * 2**20)  # 320 MiB, all in use
    code = "from fsbench.core.process import peak_resident_memory; print(peak_resident_memory())"
    started = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert 2**20 < int(started) < numbers.nbytes < peak_resident_memory()


def test_the_command_makes_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    monkeypatch.setattr(main, "keep_freed_memory", lambda: made.append(True))
    with pytest.raises(SystemExit):
        main.run(["--version"])
    assert made == [True]
