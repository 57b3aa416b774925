"""Choices of a process: its device, and how it ends on a signal.

On SIGTERM and SIGINT work stops where it can continue; a second signal stops training at once.
"""

import gc
import io
import os
import platform
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from fsbench.core.errors import UsageError
from fsbench.core.progress import format_count


def peak_memory(device: str = "cpu") -> int:
    """Return peak bytes of tensors on a GPU, else of this process (on Linux); 0 where unknown."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated(device)
    peak = read_fact("/proc/self/status", r"VmHWM:\s*(\d+) kB")
    return 1024 * int(peak) if peak else 0


def reset_peak_memory(device: str) -> None:
    """Let `peak_memory` start again, on a CPU where Linux permits it."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    else:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # man 5 proc


def free_gpu_memory() -> None:
    """Give back what torch reserves on GPUs for its next tensors, which other processes lack."""
    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()
        torch.cuda.empty_cache()


def read_fact(path: str, pattern: str) -> str:
    """Return the group of a pattern in a file of Linux; "" on another system."""
    file = Path(path)
    text = file.read_text(encoding="ascii", errors="replace") if file.is_file() else ""
    match = re.search(pattern, text)
    return match[1] if match else ""


class OpenOutput(io.FileIO):
    """A standard stream whose reader may leave, as `head` does: the rest is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def open_output() -> None:
    """Let standard output and error take any text, with ? for what their encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started this process
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf8"))  # noqa: SIM115
            continue
        raw = io.BufferedWriter(OpenOutput(stream.fileno(), "w", closefd=False))
        lines = name == "stderr" or stream.isatty()
        setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, "replace", line_buffering=lines))


class Stopped(BaseException):
    """A signal asked to stop. No Exception: what handles failures must let it through."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        name = signal.Signals(number).name
        super().__init__(f"stopped by {name}: the same command goes on where it stopped")


class StopRequest:
    """The first signal that has arrived in a block of `hold_signals`; 0 for none."""

    number = 0


_holding: list[StopRequest] = []
"""The request of the running `hold_signals`, if any."""


def stop(number: int, frame: FrameType | None) -> None:
    """Handle a signal: note the first one in a block that holds it back, else raise Stopped."""
    if not _holding or _holding[-1].number:
        raise Stopped(number)
    _holding[-1].number = number


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise Stopped in the block, unless ignored or in another thread."""
    numbers = (signal.SIGINT, signal.SIGTERM) if current_thread() is main_thread() else ()
    handlers = {n: h for n in numbers if (h := signal.getsignal(n)) not in (None, signal.SIG_IGN)}
    for number in handlers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def hold_signals() -> Iterator[StopRequest]:
    """Postpone Stopped to the end of the block; the request says whether a signal has arrived."""
    request = StopRequest()
    _holding.append(request)
    try:
        yield request
    finally:
        _holding.pop()
    if request.number:
        raise Stopped(request.number)


def resolve_device(name: str) -> str:
    """Return the device, for `auto` the first GPU or else the CPU. Raise UsageError if it lacks."""
    import torch

    devices = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    if name == "auto":
        return "cuda:0" if "cuda:0" in devices else "cpu"
    chosen = "cuda:0" if name == "cuda" else name
    if chosen not in devices:
        raise UsageError(
            f"device '{name}' is not available",
            fix=f"use --device auto, or one of: {', '.join(devices)}",
        )
    return chosen


def count_cores() -> int:
    """Return the CPU cores that this process may use, its part of those of ranks on a machine."""
    is_linux = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if is_linux else os.cpu_count() or 1
    return max(1, cores // count_local_ranks())


def count_local_ranks() -> int:
    """Return how many processes torchrun started on this machine, 1 without it."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_one_of_several() -> bool:
    """Return whether torchrun started several processes, of which this is one."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first_process() -> bool:
    """Return whether this process reports on its run; known before ranks join."""
    return not is_one_of_several() or os.environ["RANK"] == "0"


def device_model(device: str) -> str:
    """Return the GPU model, else the device type: the part that bit-identical results need."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def machine_name(device: str) -> str:
    """Return the model of the GPU, or of the processor with the threads of this process."""
    import torch

    if device.startswith("cuda"):
        return device_model(device)
    name = read_fact("/proc/cpuinfo", r"model name\s*: *(\S.*)") or platform.machine()
    return f"{name}, {format_count(torch.get_num_threads(), 'thread')}"
