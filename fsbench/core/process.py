"""Choices of a process: its device, and how it ends on a signal.

On SIGTERM and SIGINT work stops where it can continue, says so and exits with 128 + the signal.
`raise_on_signals` (around every command) lets both signals raise `Stopped` wherever the main thread
is: files are written by rename, so only the work in flight is lost. `hold_signals` (around a
training loop) holds the first signal back until the loop has written a checkpoint; a second one
stops at once.
"""

import codecs
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NoReturn

from fsbench.core.errors import UsageError


def peak_resident_memory() -> int:
    """Return the most memory that this process has had, in bytes; 0 where it is unknown.

    It is known on Linux: the maximum that getrusage gives starts at the memory of the parent.
    """
    status = Path("/proc/self/status")
    text = status.read_text(encoding="ascii", errors="replace") if status.is_file() else ""
    peak = re.search(r"VmHWM:\s*(\d+) kB", text)
    return 1024 * int(peak[1]) if peak else 0


PLAIN = {"─": "-", "±": "+-", "·": "-", "…": "...", "≤": "<=", "≥": ">=", "×": "x"}
"""Characters of tables in an encoding that lacks them; any other becomes a question mark."""


class OpenOutput(io.FileIO):
    """A standard stream whose reader may leave, as `head` does: the rest is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def open_output() -> None:
    """Let standard output and error take any text, whatever their encoding and their reader."""
    codecs.register_error("fsbench", spell_plainly)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started this process
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf8"))  # noqa: SIM115
            continue
        raw = io.BufferedWriter(OpenOutput(stream.fileno(), "w", closefd=False))
        lines = name == "stderr" or stream.isatty()
        text = io.TextIOWrapper(raw, stream.encoding, "fsbench", line_buffering=lines)
        setattr(sys, name, text)


def spell_plainly(error: UnicodeError) -> tuple[str, int]:
    """Return what is written in place of characters that the encoding of the output lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


SIGNALS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], None]


class Stopped(BaseException):
    """A signal asked to stop. No Exception: what handles failures must let it through."""

    def __init__(self, number: int) -> None:
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number
        super().__init__(f"stopped by {self.name}: the same command goes on where it stopped")


class StopRequest:
    """A signal that has arrived. number: the signal, 0 for none."""

    number = 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: remember the first one, raise Stopped at the second."""
        if self.number:
            raise Stopped(number)
        self.number = number


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """Handle a signal: raise Stopped."""
    raise Stopped(number)


@contextmanager
def handle_signals(handler: Handler, replaces: Callable[[object], bool]) -> Iterator[None]:
    """Give signals to `handler` while the block runs, those whose own handler it replaces.

    Do nothing outside the main thread, the only one that receives signals.
    """
    here = current_thread() is main_thread()
    before = {n: old for n in SIGNALS if here and replaces(old := signal.getsignal(n))}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def raise_on_signals() -> AbstractContextManager[None]:
    """Let both signals raise Stopped while the block runs; ignored signals stay ignored."""
    return handle_signals(stop, lambda old: old not in (None, signal.SIG_IGN))


@contextmanager
def hold_signals() -> Iterator[StopRequest]:
    """Postpone signals that would raise Stopped to the end of the block.

    The caller reads from the request whether one has arrived, and may stop earlier.
    """
    request = StopRequest()
    with handle_signals(request.note, lambda old: old is stop):
        yield request
    if request.number:
        raise Stopped(request.number)


def resolve_device(name: str) -> str:
    """Return the device called `name`; `auto` is the first GPU, else the CPU.

    `auto` never chooses mps, whose kernels give other numbers. Raises UsageError for a device that
    this machine lacks.
    """
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


def device_model(device: str) -> str:
    """Return the GPU model, else the device type: the part that bit-identical results need."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
