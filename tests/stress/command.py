"""`fsbench ...` in a process of its own, with a fault in it.

Processes are forked from a server that has everything loaded; each then goes through the entry
point of the console command. Audit events tell every change of a file below the working folder, so
a kill can fall between any two of them; a kill by the clock falls between two instructions.
"""

import multiprocessing
import os
import resource
import signal
import sys
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Fault:
    """What happens to a command.

    change: it is killed before its change of this number (1 is the first) below `folder`; -1 counts
    them into `folder`.count; file_bytes: no file of it can grow beyond.
    """

    folder: Path | None = None
    change: int = 0
    file_bytes: int = 0


def start(arguments: list[str], log: Path, fault: Fault | None = None) -> ForkServerProcess:
    """Start a command; what it prints goes to the end of `log`."""
    context = multiprocessing.get_context("forkserver")
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT / "tests"), str(ROOT)))  # of the server
    context.set_forkserver_preload(["stress.preload"])
    process = context.Process(target=enter, args=(arguments, log, fault or Fault()))
    process.start()
    return process


def call(arguments: list[str], log: Path, fault: Fault | None = None) -> int:
    """Run a command and return its exit code, -9 for one that was killed."""
    process = start(arguments, log, fault)
    process.join()
    return int(process.exitcode or 0)


def enter(arguments: list[str], log: Path, fault: Fault) -> None:
    """In the child: set the fault up, then what the console command does."""
    from fsbench.cli.main import run

    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(out, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs us behind
    sys.argv = ["fsbench", *arguments]
    if fault.folder:
        watch(fault.folder, fault.change)
    if fault.file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.file_bytes, fault.file_bytes))
    run(arguments)


def watch(folder: Path, fatal: int) -> None:
    """Count changes below the folder; die before the fatal one."""
    inside, count, counted = str(folder), 0, Path(f"{folder}.count")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in CHANGES or not str(args[0]).startswith(inside):
            return
        if event == "open" and (str(args[0]) == str(counted) or not args[2] & WRITING):
            return
        count += 1
        if count == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        if fatal < 0:
            counted.write_text(str(count))

    sys.addaudithook(hook)
