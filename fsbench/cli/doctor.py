"""`fsbench doctor`: what this machine has: versions, devices and disk."""

import os
import shutil
from collections.abc import Iterator

from fsbench.api.options import Machine
from fsbench.cli import console, options


@options.command("doctor", Machine, "cache")
def doctor(machine: Machine, as_json: options.Json = False) -> None:
    """List versions, devices and disk of this machine; `fsbench data ls` lists its data sets.

    FSBENCH_DATA (like --data, separated like PATH) and FSBENCH_CACHE (like --cache) set the folders
    of all commands.
    """
    rows = [*describe_machine(machine)]
    console.emit(as_json, dict(rows), "fsbench doctor", ("part", "details"), rows)


def describe_machine(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield software, devices, variables that set folders, and the cache with its free space."""
    import torch

    from fsbench.core.io import cache_folder
    from fsbench.results.provenance import describe_software

    software = describe_software()
    packages = software.pop("packages")
    yield from ((name, str(value)) for name, value in (software | packages).items() if value)
    capability = torch.backends.cpu.get_cpu_capability()
    yield "cpu", f"{os.cpu_count()} cores, {capability}, {torch.get_num_threads()} threads of torch"
    for i in range(torch.cuda.device_count()):
        yield f"cuda:{i}", torch.cuda.get_device_name(i)
    if torch.backends.mps.is_available():
        yield "mps", "Apple GPU"
    for name in ("FSBENCH_DATA", "FSBENCH_CACHE"):
        yield name, os.environ.get(name) or "not set"
    cache = cache_folder(machine.cache)
    nearest = next(path for path in (cache, *cache.parents) if path.exists())
    yield "cache", f"{cache} ({shutil.disk_usage(nearest).free / 1e9:.0f} GB free)"
