"""Commands that end before their time: kill -9, SIGTERM, SIGINT, a full disk."""

import os
import signal
import time
from collections.abc import Iterable

from stress.command import Fault, call, start
from stress.tally import Row
from stress.trial import Trials, after, log, rng, torn

SMALLEST = 1024
"""Bytes of a file that any file system still holds; the limit of a full disk lies above, small
ones as often as large ones."""


def kills(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """kill -9, by turns between two changes of a file and at any moment."""
    reference, row = trials.reference(name), Row("kill -9", name)
    job = reference.job
    for seed in seeds:
        folder, draw = trials.fresh(name, f"kill {seed}"), rng("kill", name, seed)
        arguments = job.arguments(folder)
        if seed % 2 == 0:
            fault = Fault(folder, change=draw.randint(1, reference.changes))
            code = call(arguments, log(folder), fault)
        else:
            process = start(arguments, log(folder))
            process.join(draw.uniform(0.0, reference.seconds))
            process.kill()
            process.join()
            code = process.exitcode or 0
        broken = list(torn(job, folder))
        result, failed = after(job, folder)
        failed += f"exit {code}" if code not in (-signal.SIGKILL, 0) else ""
        row.judge(reference.outcome, result, broken, failed)
    return row


def signals(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """SIGTERM and SIGINT by turns: a line, 128 + the number, and the rest by the same command."""
    reference, row = trials.reference(name), Row("SIGTERM, SIGINT", name)
    for seed in seeds:
        folder, draw = trials.fresh(name, f"signal {seed}"), rng("signal", name, seed)
        number = (signal.SIGTERM, signal.SIGINT)[seed % 2]
        process = start(reference.job.arguments(folder), log(folder))
        while process.is_alive() and not (log(folder).exists() and log(folder).stat().st_size):
            time.sleep(0.005)
        process.join(draw.uniform(0.0, reference.seconds / 2))
        if process.is_alive():
            os.kill(process.pid or 0, number)
        process.join()
        said, code = log(folder).read_text(), process.exitcode
        clean = code == 0 or (code == 128 + number and f"stopped by {number.name}" in said)
        broken = list(torn(reference.job, folder))
        result, failed = after(reference.job, folder)
        if not clean or "Traceback" in said:
            failed += f"exit {code}: {said}"
        row.judge(reference.outcome, result, broken, failed)
    return row


def full_disks(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """No file can grow beyond some size: an error, exit 1; with room again, the same outcome."""
    reference, row = trials.reference(name), Row("disk full", name)
    for seed in seeds:
        folder, draw = trials.fresh(name, f"full {seed}"), rng("full", name, seed)
        room = int(SMALLEST * (max(reference.largest, 2 * SMALLEST) / SMALLEST) ** draw.random())
        code = call(reference.job.arguments(folder), log(folder), Fault(file_bytes=room))
        said = log(folder).read_text()
        clean = code == 0 or (code == 1 and "error: " in said)
        broken = list(torn(reference.job, folder))
        result, failed = after(reference.job, folder)
        if not clean or "Traceback" in said:
            failed += f"{room} bytes, exit {code}: {said}"
        row.judge(reference.outcome, result, broken, failed)
    return row
