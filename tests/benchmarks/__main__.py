"""Measure fsbench beside what people use today, and write the table of protocols/README.md.

    FSBENCH_DATA=FOLDER make benchmarks         all rows, on a machine with nothing else running
    PYTHONPATH=tests python -m benchmarks --quick --rows pretrain-32

Rows go to tests/benchmarks/measured.json and the table made of it; `--rows` replaces those that it
measures, if the rest is of the same machine. A row whose A/A ratio leaves .9 to 1.1 three times is
not written and the run ends with 1, as it does at once if the load average is above 1 at the start.
`--quick` takes the fewest rounds on any machine, gives no verdict and writes nothing.
"""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import torch
from benchmarks import growth
from benchmarks.comparisons import CASES, Case, Settings, Unavailable
from benchmarks.pairing import (
    MEBIBYTE,
    PLAIN,
    STEADY,
    Measurement,
    NoVerdict,
    in_fresh_processes,
    judge,
    make_parser,
    require_quiet,
)
from support.readme import MEASURED, fill

from fsbench import __version__
from fsbench.api.listing import Row
from fsbench.core.errors import FsbenchError

PAGE = Path("protocols/README.md")
ATTEMPTS = 3
"""Times that a row is measured until its A/A ratio allows a verdict."""


def measure_case(case: Case, settings: Settings) -> Measurement:
    """Return the rounds of a row in fresh processes, of the first steady attempt or the last.

    Raise Unavailable.
    """
    processes, attempts = (1, 1) if settings.quick else (case.processes, ATTEMPTS)
    for _ in range(attempts):
        measurement = Measurement(in_fresh_processes(case.take_rounds, (settings,), processes))
        if STEADY[0] <= measurement.noise <= STEADY[1]:
            break
    return measurement


def make_row(case: Case, measurement: Measurement, verdict: str) -> Row:
    """Return a row of the table as text by column."""
    ratios = measurement.ratios()
    plain, ours = (1 / measurement.seconds(side) for side in (PLAIN, "ours"))
    bound = "" if case.bound is None else f">= {case.bound:g}: {verdict}"
    return {
        "work": case.work,
        "compared with": case.plain,
        "command": f"`{case.command}`",
        "theirs": format_pace(plain, case.unit),
        "fsbench": format_pace(ours, case.unit),
        "ratio": f"{measurement.ratio():.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        "bound": bound,
        "A/A": f"{measurement.noise:.2f}",
    }


def format_pace(pace: float, unit: str) -> str:
    """Return e.g. 1,960 images/s: three digits, or all before the point."""
    return f"{float(f'{pace:.3g}'):,.0f} {unit}" if pace >= 100 else f"{pace:.3g} {unit}"


def make_growth_row(grown: growth.Growth) -> Row:
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
        "largest": f"{largest.seconds:.1f} s, {largest.memory / MEBIBYTE:.0f} MiB",
        "exponent of time": time,
        "exponent of memory": memory,
    }


def measure_rows(settings: Settings, names: list[str]) -> tuple[list[Row], list[str]]:
    """Return the rows to write, and why others have no verdict; print all as they come."""
    rows: list[Row] = []
    faults = []
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
        row = make_row(case, measurement, verdict)
        if verdict != "no verdict":
            rows.append(row)
        shown = ("theirs", "fsbench", "ratio", "bound", "A/A")
        print(f"{name}: " + ", ".join(f"{c} {row[c]}" for c in shown), flush=True)
    return rows, faults


def measure_growth(quick: bool) -> list[Row]:
    rows: list[Row] = []
    for kind in growth.KINDS:
        rows.append(make_growth_row(kind.measure(quick)))
        print(", ".join(f"{column} {value}" for column, value in rows[-1].items()), flush=True)
    return rows


def write_record(machine: dict[str, str], rows: list[Row], grown: list[Row]) -> None:
    """Write the rows, beside earlier ones of the same machine that were not measured again."""
    earlier = json.loads(MEASURED.read_text(encoding="utf8")) if MEASURED.exists() else {}
    if earlier.get("machine", {}) | {"date": ""} != machine | {"date": ""}:
        earlier = {"rows": [], "growth": []}
    by_work = {row["work"]: row for row in [*earlier["rows"], *rows]}
    ordered = [by_work[case.work] for case in CASES.values() if case.work in by_work]
    record = {"machine": machine, "rows": ordered, "growth": grown or earlier["growth"]}
    MEASURED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")
    PAGE.write_text(fill(PAGE.read_text(encoding="utf8")), encoding="utf8")


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
    parser = make_parser(__doc__)
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
    if not options.quick:
        write_record(describe_machine(options.threads), rows, grown)
        print(f"wrote {MEASURED} and the table of {PAGE}")
    if faults:
        print("\n".join([*faults, "their rows were not written"]), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
