"""Commands that end before their time: kill -9, SIGTERM, SIGINT, a full disk."""

import os
import signal
import time

from stress.command import Fault, start
from stress.jobs import EVERY
from stress.trials import Trial, kind_of_fault

SMALLEST = 1024
"""Bytes of a file that any file system still holds; the limit of a full disk lies above, small
ones as often as large ones."""


@kind_of_fault("kill -9", *EVERY, is_frequent=True)
def kill(trial: Trial) -> str:
    """kill -9, by turns between two changes of a file and at any moment."""
    if trial.seed % 2 == 0:
        change = trial.draw.randint(1, trial.reference.changes)
        code = trial.call(Fault(trial.folder, change=change))
    else:
        process = start(trial.arguments, trial.log)
        process.join(trial.draw.uniform(0.0, trial.reference.seconds))
        process.kill()
        process.join()
        code = process.exitcode or 0
    trial.collect_torn()
    return f"exit {code}" if code not in (-signal.SIGKILL, 0) else ""


@kind_of_fault("SIGTERM, SIGINT", "pretrain", "features", "episodes")
def stop(trial: Trial) -> str:
    """SIGTERM and SIGINT by turns: a line, 128 + the number, and the rest by the same command."""
    number = (signal.SIGTERM, signal.SIGINT)[trial.seed % 2]
    process = start(trial.arguments, trial.log)
    while process.is_alive() and not (trial.log.exists() and trial.text):
        time.sleep(0.005)
    process.join(trial.draw.uniform(0.0, trial.reference.seconds / 2))
    if process.is_alive():
        os.kill(process.pid or 0, number)
    process.join()
    text, code = trial.text, process.exitcode
    trial.collect_torn()
    is_clean = code == 0 or (code == 128 + number and f"stopped by {number.name}" in text)
    return "" if is_clean and "Traceback" not in text else f"exit {code}: {text}"


@kind_of_fault("disk full", *EVERY)
def fill_disk(trial: Trial) -> str:
    """No file can grow beyond some size: an error, exit 1; with room again, the same outcome."""
    largest = max(trial.reference.largest, 2 * SMALLEST)
    room = int(SMALLEST * (largest / SMALLEST) ** trial.draw.random())
    code = trial.call(Fault(file_bytes=room))
    trial.collect_torn()
    return trial.judge_end(code, 0, 1)
