"""The peak of memory that a process states is its own."""

import subprocess
import sys

import numpy as np
import pytest

from fsbench.core.process import peak_memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts memory by program")
def test_the_peak_of_a_process_is_not_that_of_the_one_that_started_it() -> None:
    numbers = np.ones(40 * 2**20)  # 320 MiB, all in use
    code = "from fsbench.core.process import peak_memory; print(peak_memory())"
    started = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert 2**20 < int(started) < numbers.nbytes < peak_memory()
