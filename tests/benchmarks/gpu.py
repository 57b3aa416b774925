"""Run the tests and the rows of a GPU, and write tests/benchmarks/measured-gpu.json.

    FSBENCH_DATA=FOLDER make gpu        on a machine with nothing else running
    PYTHONPATH=tests python -m benchmarks.gpu --quick --rows pretrain-64

Rows have the columns of `python -m benchmarks`; their times end when the GPU has done the work. A
part of the rows is printed, without tests. Then, and without a GPU, nothing is written.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.__main__ import NOT_WRITTEN, describe_machine, measure_rows, parse_options
from benchmarks.comparisons import GPU_CASES
from benchmarks.pairing import Settings

GPU = "cuda:0"
MEASURED = Path(__file__).with_name("measured-gpu.json")


class Outcomes:
    """How many tests passed, why others did not, and what tests measured, as pytest reports it."""

    def __init__(self) -> None:
        self.passed = 0
        self.skipped, self.failed = dict[str, str](), dict[str, str]()
        self.measured = dict[str, dict[str, object]]()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "skipped":
            self.skipped[report.nodeid] = report.longrepr[2]
        elif report.outcome == "failed":
            self.failed[report.nodeid] = report.longrepr.reprcrash.message.partition("\n")[0]
        elif report.when == "call":
            self.passed += 1
            if report.user_properties:
                self.measured[report.nodeid] = dict(report.user_properties)


def describe_gpus() -> dict[str, str]:
    """Return the GPUs of this machine and the software that drives them."""
    facts = torch.cuda.get_device_properties(GPU)
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    return {
        "GPUs": f"{torch.cuda.device_count()}, {facts.name}, {facts.total_memory / 2**30:.0f} GiB",
        "driver": subprocess.run(command, capture_output=True, text=True).stdout.strip(),
        "CUDA": f"{torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}",
    }


def main() -> None:
    options = parse_options(__doc__, [*GPU_CASES])
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch finds none here; run this where torch.cuda.is_available() is true")
    settings, outcomes = Settings(options.data, options.threads, options.quick, GPU), Outcomes()
    rows, faults = measure_rows(settings, GPU_CASES, options.rows)
    faults += [NOT_WRITTEN] if faults else []
    if not options.quick and {*options.rows} == {*GPU_CASES}:
        pytest.main(["-m", "gpu"], plugins=[outcomes])
        machine = {**describe_machine(options.threads), **describe_gpus()}
        record = {"machine": machine, "tests": vars(outcomes), "rows": rows}
        MEASURED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")
        print(f"wrote {MEASURED}")
        faults += [f"{test}: failed: {reason}" for test, reason in outcomes.failed.items()]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
