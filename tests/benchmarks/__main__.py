"""Measure fsbench beside what people use today, and write the table of protocols/README.md.

    FSBENCH_DATA=FOLDER make benchmarks         all rows, on a machine with nothing else running
    PYTHONPATH=tests python -m benchmarks --quick --rows pretrain-32

All rows go to tests/benchmarks/measured.json and the table made of it; a part of them is printed. A
row whose A/A ratio leaves .9 to 1.1 three times is not written and the run ends with 1, as it does
at once if the load average is above 1 at the start. `--quick` takes one round on any machine, gives
no verdict and writes nothing.
"""

import json
import os
import platform
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch
from benchmarks import growth
from benchmarks.comparisons import CASES, Case
from benchmarks.pairing import (
    STEADY,
    Measurement,
    Settings,
    in_fresh_processes,
    make_parser,
    require_quiet,
)
from support.readme import MEASURED, fill

from fsbench import __version__
from fsbench.api.listing import Row
from fsbench.core.errors import FsbenchError

PAGE = Path("protocols/README.md")
NOT_WRITTEN = "stop other programs; these rows were not written"
ATTEMPTS, PROCESSES = 3, 3
"""Times that a row is measured until its A/A ratio allows a verdict, and processes of each."""


def measure_case(case: Case, settings: Settings) -> Measurement:
    """Return the rounds of a row, of the first steady attempt or the last."""
    processes, attempts = (1, 1) if settings.quick else (PROCESSES, ATTEMPTS)
    for _ in range(attempts):
        measurement = Measurement(in_fresh_processes(case.take_rounds, (settings,), processes))
        if measurement.is_steady:
            break
    return measurement


def make_row(case: Case, measurement: Measurement, verdict: str) -> Row:
    """Return a row of the table as text by column."""
    ratios = measurement.values("ratio")
    plain, ours = (format_pace(1 / measurement.median(s), case.unit) for s in ("plain", "ours"))
    return {
        "work": case.work,
        "compared with": case.plain,
        "command": f"`{case.command}`",
        "theirs": plain,
        "fsbench": ours,
        "ratio": f"{measurement.median('ratio'):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        "bound": "" if case.bound is None else f">= {case.bound:g}: {verdict}",
        "A/A": f"{measurement.median('noise'):.2f}",
    }


def format_pace(pace: float, unit: str) -> str:
    """Return e.g. 1,960 images/s: three digits, or all before the point."""
    return f"{float(f'{pace:.3g}'):,.0f} {unit}" if pace >= 100 else f"{pace:.3g} {unit}"


def measure_rows(
    settings: Settings, cases: Mapping[str, Case], names: Sequence[str]
) -> tuple[list[Row], list[str]]:
    """Return the rows to write, and why others have no verdict; print all as they come.

    Ends the program if other programs are busy, or images are missing.
    """
    if not settings.quick:
        require_quiet()
    rows, faults = [], []
    for name, case in cases.items():
        if name not in names:
            continue
        try:
            measurement = measure_case(case, settings)
        except FsbenchError as error:
            sys.exit(str(error))
        verdict = "not judged" if settings.quick else measurement.judge(case.bound)
        row = make_row(case, measurement, verdict)
        if verdict == "no verdict":
            noise = f"the same work took {row['A/A']} times as long again"
            faults.append(f"{name}: no verdict: {noise}, allowed are {STEADY[0]} to {STEADY[1]}")
        else:
            rows.append(row)
        print(f"{name}: " + ", ".join(f"{c} {row[c]}" for c in [*row][3:]), flush=True)
    return rows, faults


def write_record(machine: dict[str, str], rows: list[Row], grown: list[Row]) -> None:
    record = {"machine": machine, "rows": rows, "growth": grown}
    MEASURED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")
    PAGE.write_text(fill(PAGE.read_text(encoding="utf8")), encoding="utf8")


def describe_machine(threads: int) -> dict[str, str]:
    """Return what the figures were measured on and with."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": describe_processor(),
        "cores": f"{os.cpu_count()}",
        "memory": f"{memory:.0f} GiB",
        "threads": f"{threads}",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "fsbench": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def describe_processor() -> str:
    """Return the model of the processor, as far as the system states it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf8").splitlines() if file.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{models[0] if models else platform.machine()} ({capability})"


def parse_options(doc: str | None, names: Sequence[str]) -> Namespace:
    """Return the options of a command that measures rows of these names."""
    parser = make_parser(doc)
    parser.add_argument("--data", default=os.environ.get("FSBENCH_DATA", ""), help="has EuroSAT")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rows", nargs="+", choices=names, default=names)
    parser.add_argument("--quick", action="store_true", help="one round; write nothing")
    return parser.parse_args()


def main() -> None:
    options = parse_options(__doc__, [*CASES, "growth"])
    settings = Settings(options.data, options.threads, options.quick)
    rows, faults = measure_rows(settings, CASES, options.rows)
    grown = growth.measure(options.quick) if "growth" in options.rows else []
    if not options.quick and {*options.rows} == {*CASES, "growth"}:
        write_record(describe_machine(options.threads), rows, grown)
        print(f"wrote {MEASURED} and the table of {PAGE}")
    if faults:
        sys.exit("\n".join([*faults, NOT_WRITTEN]))


if __name__ == "__main__":
    main()
