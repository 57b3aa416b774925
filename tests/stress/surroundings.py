"""What goes wrong around a command: company, outputs that cannot be written, rates that explode."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stress.command import call, start
from stress.jobs import EVERY
from stress.trials import NotPossibleError, Trial, kind_of_fault

ELSEWHERE = "another process is training"
SMALL = {"features": ("cache", (8, 72)), "episodes": ("results", (4, 28))}
"""Part of a job's folder, and how much room it has (kB): too little for all that it is to hold."""


@kind_of_fault("two processes", *EVERY)
def run_twice(trial: Trial) -> str:
    """The same command twice at once: both end well, or one is told to wait."""
    logs = [Path(f"{trial.folder}.{i}.log") for i in range(2)]
    first = start(trial.arguments, logs[0])
    first.join(trial.draw.uniform(0.0, trial.reference.seconds / 3))
    second = start(trial.arguments, logs[1])
    failed = ""
    for process, file in zip((first, second), logs, strict=True):
        process.join()
        if process.exitcode and ELSEWHERE not in file.read_text():
            failed += f"exit {process.exitcode}: {file.read_text()}"
    trial.result = trial.job.outcome(trial.folder)
    return failed


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Mount a small file system at the folder. Raise NotPossibleError if this process may not."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise NotPossibleError
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@kind_of_fault("read-only output", "pretrain", "episodes", "build")
def forbid_output(trial: Trial) -> str:
    """By turns, the parent of the output is a file or read-only: an error, exit 1 or 2."""
    output, parent = str(trial.folder / trial.job.parts[-1]), trial.folder / "parent"
    arguments = [str(parent / "x") if a == output else a for a in trial.arguments]
    if trial.seed % 2:
        with mounted(parent, "ro", "size=64k"):
            code = call(arguments, trial.log)
    else:
        parent.write_text("in the way")
        code = call(arguments, trial.log)
    return trial.judge_end(code, 1, 2)


@kind_of_fault("disk full (tmpfs)", *SMALL, is_frequent=True)
def fill_file_system(trial: Trial) -> str:
    """A part of the folder on a file system that is too small for it; where it may be mounted.

    A mapped file on a full disk would end the process with SIGBUS.
    """
    part, sizes = SMALL[trial.name]
    with mounted(trial.folder / part, f"size={trial.draw.randint(*sizes)}k"):
        code = trial.call()
        trial.collect_torn()
    return trial.judge_end(code, 1)


@kind_of_fault("loss not finite", "pretrain")
def diverge(trial: Trial) -> str:
    """A learning rate that explodes: the step is named, the last good checkpoint stays."""
    code = trial.call(None, "--set", f"lr={10.0 ** (15 + trial.seed)}")
    text, run = trial.text, trial.folder / "runs" / "toy-seal-s0"
    is_named = all(part in text for part in ("not finite", "at step", "last good checkpoint"))
    sidecar, is_intact = run / "checkpoint.json", not (run / "run.json").exists()
    if sidecar.exists():
        is_intact &= (run / json.loads(sidecar.read_text())["tensors"]).is_file()
    shutil.rmtree(run)
    return trial.judge_end(code, 1) if is_named and is_intact else f"exit {code}: {text}"
