"""Measure fsbench beside what people use today, and write the table of protocols/README.md.

    FSBENCH_DATA=FOLDER make benchmarks         all rows, on a machine with nothing else running
    PYTHONPATH=tests python -m benchmarks --quick --rows pretrain-32

A run without --quick and --rows writes tests/benchmarks/measured.json and the table made of it. It
writes nothing and ends with 1 if the load average is above 1 at the start or if an A/A ratio leaves
.9 to 1.1 three times. `--quick` takes the fewest rounds on any machine, gives no verdict and writes
nothing.
"""

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from benchmarks import growth
from benchmarks.comparisons import CASES, Case, Settings, Unavailable
from benchmarks.pairing import (
    PLAIN,
    STEADY,
    Measurement,
    NoVerdict,
    in_fresh_processes,
    judge,
    require_quiet,
)

from fsbench import __version__
from fsbench.core.errors import FsbenchError
from fsbench.readme import MEASURED, fill

PAGE = Path("protocols/README.md")


ATTEMPTS = 3
"""Times that a row is measured until its A/A ratio allows a verdict."""


def measure_case(case: Case, settings: Settings) -> Measurement:
    """Return the rounds of a row in fresh processes, of the first steady attempt or the last.

    Raise Unavailable.
    """
    processes, attempts = (1, 1) if settings.quick else (case.processes, ATTEMPTS)
    for _ in range(attempts):
        measurement = Measurement(in_fresh_processes(case.take, (settings,), processes))
        if STEADY[0] <= measurement.noise <= STEADY[1]:
            break
    return measurement


def make_row(case: Case, measurement: Measurement, verdict: str) -> dict[str, Any]:
    """Return a row of the table as text by column."""
    ratios = measurement.ratios()
    plain, ours = (1 / measurement.seconds(side) for side in (PLAIN, "ours"))
    bound = "" if case.bound is None else f">= {case.bound:g}: {verdict}"
    return {
        "work": case.work,
        "compared with": case.plain,
        "command": f"`{case.command}`",
        "theirs": f"{plain:.3g} {case.unit}",
        "fsbench": f"{ours:.3g} {case.unit}",
        "ratio": f"{measurement.ratio():.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        "bound": bound,
        "A/A": f"{measurement.noise:.2f}",
    }


def make_growth_row(grown: growth.Growth) -> dict[str, str]:
    """Return a row of the table of growth: the ends of its range and the exponents."""
    largest = grown.uses[-1]
    exponents = (
        f"{grown.exponent(part):.2f} (last {grown.exponent(part, 2):.2f})"
        for part in growth.Use._fields
    )
    time, memory = exponents
    return {
        "work": grown.what,
        "sizes": f"{grown.sizes[0]:,} to {grown.sizes[-1]:,}",
        "largest": f"{largest.seconds:.1f} s, {largest.memory / growth.MEBIBYTE:.0f} MiB",
        "exponent of time": time,
        "exponent of memory": memory,
    }


def measure_rows(settings: Settings, names: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows, and why some have no verdict; print both as they come."""
    rows, faults = [], []
    for name in names:
        case, verdict = CASES[name], ""
        try:
            measurement = measure_case(case, settings)
        except Unavailable as error:
            blank = dict.fromkeys(("theirs", "fsbench", "ratio", "bound", "A/A"), "")
            rows.append({"work": case.work, "compared with": str(error), **blank})
            print(f"{name}: {error}", flush=True)
            continue
        try:
            verdict = "not judged" if settings.quick else judge(measurement, case.bound)
        except NoVerdict as error:
            faults.append(f"{name}: {error}")
            verdict = "no verdict"
        rows.append(make_row(case, measurement, verdict))
        shown = ("theirs", "fsbench", "ratio", "bound", "A/A")
        print(f"{name}: " + ", ".join(f"{c} {rows[-1][c]}" for c in shown), flush=True)
    return rows, faults


def measure_growth(quick: bool) -> list[dict[str, str]]:
    rows = []
    for kind, sizes in growth.SIZES.items():
        grown = growth.MEASURES[kind](sizes[:-1] if quick else sizes)
        rows.append(make_growth_row(grown))
        print(growth.describe(grown), flush=True)
    return rows


def describe_machine(threads: int) -> dict[str, str]:
    """Return what the figures were measured on and with."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": processor_name(),
        "cores": f"{os.cpu_count()}",
        "memory": f"{memory:.0f} GiB",
        "threads": f"{threads}",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "fsbench": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def processor_name() -> str:
    """Return the model of the processor, as far as the system states it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{models[0] if models else platform.machine()} ({capability})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default=os.environ.get("FSBENCH_DATA", ""), help="has EuroSAT")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rows", nargs="+", choices=[*CASES, "growth"], default=None)
    parser.add_argument("--quick", action="store_true", help="few rounds; write nothing")
    options = parser.parse_args()
    settings = Settings(options.data, options.threads, options.quick)
    names = [name for name in CASES if name in (options.rows or CASES)]
    try:
        if not options.quick:
            require_quiet()
        rows, faults = measure_rows(settings, names)
    except (NoVerdict, FsbenchError) as error:
        print(error, file=sys.stderr)
        return 1
    grown = measure_growth(options.quick) if "growth" in (options.rows or ["growth"]) else []
    if faults:
        print("\n".join([*faults, "nothing was written"]), file=sys.stderr)
        return 1
    if not (options.quick or options.rows):
        record = {"machine": describe_machine(options.threads), "rows": rows, "growth": grown}
        MEASURED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")
        PAGE.write_text(fill(PAGE.read_text(encoding="utf8")), encoding="utf8")
        print(f"wrote {MEASURED} and the table of {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
