"""`fsbench doctor`: check packages, devices, torch's faults, data sets and disk of this machine."""

import os
import re
import shutil

import typer

from fsbench.api.options import Machine
from fsbench.cli import console, options

INSTALL = {"learn2learn": "make meta"}
"""Optional packages and how to install them."""
LOW_DISK = 5.0
"""GB of free disk below which features of all targets may not fit."""


@options.command("doctor", Machine, "data", "cache")
def doctor(machine: Machine, as_json: options.Json = False) -> None:
    """Check packages, devices, data sets and disk; exit 1 if a required package is missing.

    FSBENCH_DATA (like --data, separated like PATH) and FSBENCH_CACHE (like --cache) set the folders
    of all commands.
    """
    rows = [
        *package_rows(),
        *device_rows(),
        *variable_rows(),
        *data_rows(machine),
        *disk_rows(machine),
    ]
    records = [dict(zip(("what", "state", "found"), row, strict=True)) for row in rows]
    console.emit(as_json, records, "fsbench doctor", ("part", "state", "details"), rows)
    if any(state == "missing" for _, state, _ in rows):
        raise typer.Exit(1)


def package_rows() -> list[tuple[str, str, str]]:
    from importlib.metadata import PackageNotFoundError, requires, version

    required = [text for text in requires("fsbench") or () if "extra ==" not in text]
    rows = []
    for name in (*(re.split(r"[^\w.-]", text)[0] for text in required), *INSTALL):
        try:
            rows.append((name, "ok", version(name)))
        except PackageNotFoundError:
            state = "optional" if name in INSTALL else "missing"
            rows.append((name, state, INSTALL.get(name, "pip install fsbench")))
    return rows


def device_rows() -> list[tuple[str, str, str]]:
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    cpu = f"{processor_name()}, {capability}, {torch.get_num_threads()} threads"
    count = torch.cuda.device_count()
    gpus = [(f"cuda:{i}", "ok", torch.cuda.get_device_name(i)) for i in range(count)]
    mps = [("mps", "ok", "Apple GPU")] if torch.backends.mps.is_available() else []
    return [("cpu", "ok", cpu), *gpus, *mps]


def processor_name() -> str:
    import platform
    from pathlib import Path

    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return (*names, platform.processor(), platform.machine())[0]


def variable_rows() -> list[tuple[str, str, str]]:
    names = {"FSBENCH_DATA": "--data", "FSBENCH_CACHE": "--cache"}
    values = {name: os.environ.get(name) for name in names}
    return [(n, "set" if v else "unset", v or f"as {names[n]}") for n, v in values.items()]


def data_rows(machine: Machine) -> list[tuple[str, str, str]]:
    """Return the folders of the CD-FSL data sets, or how to get them."""
    from fsbench.data import TARGETS, dataset_groups

    folders = {n: machine.roots.find(TARGETS.load(n).FACTS) for n in dataset_groups()["cdfsl"]}
    hint = "fsbench data download {} --data ROOT"
    return [(n, "ok" if f else "absent", str(f or hint.format(n))) for n, f in folders.items()]


def disk_rows(machine: Machine) -> list[tuple[str, str, str]]:
    from fsbench.core.io import cache_folder

    folder = cache_folder(machine.cache)
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(nearest).free / 1e9
    return [("cache", "ok" if free > LOW_DISK else "low", f"{folder} ({free:.0f} GB free)")]
