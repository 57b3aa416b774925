"""What goes wrong around a command: company, places that cannot be written, images that change."""

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from stress.command import call, start
from stress.jobs import evaluation, pictures, pretraining, with_decoded
from stress.tally import Row
from stress.trial import NotPossibleError, Trial, Trials, kind_of_fault, log

from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_loaded

ELSEWHERE = "another process is training"


@kind_of_fault("two", "two processes")
def together(trial: Trial) -> str:
    """The same command twice at once: both end well, or one is told to wait."""
    logs = [Path(f"{trial.folder}.{i}.log") for i in range(2)]
    first = start(trial.arguments, logs[0])
    first.join(trial.draw.uniform(0.0, trial.reference.seconds / 3))
    second = start(trial.job.arguments(trial.folder), logs[1])
    failed = ""
    for process, file in zip((first, second), logs, strict=True):
        process.join()
        if process.exitcode and ELSEWHERE not in file.read_text():
            failed += f"exit {process.exitcode}: {file.read_text()}"
    trial.result = trial.job.outcome(trial.folder)
    return failed


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[bool]:
    """A small file system at the folder, if this process may mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=True)


@kind_of_fault("unwritable", "read-only output")
def unwritable(trial: Trial) -> str:
    """The output is no folder, or read-only where this process may mount: an error, exit 1 or 2."""
    folder, output = trial.folder, str(trial.folder / trial.job.parts[-1])
    with mounted(folder / "ro", "ro", "size=64k") as is_mounted:
        parent = folder / ("ro" if is_mounted and trial.seed % 2 else "file")
        if parent.name == "file":
            parent.write_text("in the way")
        arguments = [str(parent / "x") if a == output else a for a in trial.arguments]
        code = call(arguments, trial.log)
    return describe_failure(trial, code, (1, 2))


def describe_failure(trial: Trial, code: int, allowed: tuple[int, ...]) -> str:
    """Return '' for a command that ended with an error of ours, else its exit code and log."""
    is_clean = code in allowed and "error: " in trial.text and "Traceback" not in trial.text
    return "" if is_clean else f"exit {code}: {trial.text}"


SMALL = {"features": ("cache", (8, 72)), "episodes": ("results", (4, 28))}
"""Part of a job's folder, and how much room it has (kB): too little for all that it is to hold."""


@kind_of_fault("tmpfs", "disk full (tmpfs)")
def full_file_system(trial: Trial) -> str:
    """A part of the folder on a file system that is too small for it; where it may be mounted."""
    part, sizes = SMALL[trial.job.name]
    with mounted(trial.folder / part, f"size={trial.draw.randint(*sizes)}k") as is_mounted:
        if not is_mounted:
            raise NotPossibleError
        code = trial.call()
        trial.collect_torn()
    return describe_failure(trial, code, (1,))


def changed_images(trials: Trials, seeds: Iterable[int]) -> Row:
    """One image of a folder changes: its old result is refused, its features are made anew."""
    row = Row("data changed", "features")
    for seed in seeds:
        folder = trials.work / f"images-{seed}"
        files = pictures(folder / "images", seed)
        assert call(of_folder(folder, "old"), log(folder)) == 0, log(folder).read_text()
        before = digest(folder / "old")
        changed = files[seed % len(files)]
        Image.fromarray(255 - np.asarray(Image.open(changed))).save(changed)
        refused = call(of_folder(folder, "old"), log(folder))
        unchanged = digest(folder / "old") == before
        codes = [
            call(of_folder(folder, "new"), log(folder)),
            call(of_folder(folder, "clean", "fresh"), log(folder)),
        ]
        clean = refused == 5 and unchanged and codes == [0, 0]
        failed = "" if clean else f"exit {refused}, then {codes}: {log(folder).read_text()}"
        result = {} if failed else {"records": digest(folder / "new")}
        row.judge({"records": digest(folder / "clean")}, result, [], failed)
    return row


def of_folder(folder: Path, output: str, cache: str = "cache") -> list[str]:
    arguments = evaluation(folder, f"folder:{folder / 'images'}:2w1s", 50, cache)
    return [str(folder / output) if a == str(folder / "results") else a for a in arguments]


def digest(results: Path) -> str:
    """Of the one result there."""
    (cell,) = read_loaded(results)
    return f"{digest_records(cell.records)} {cell.result.dataset.fingerprint}"


def diverging(trials: Trials, seeds: Iterable[int]) -> Row:
    """A learning rate that explodes: the step is named, the last good checkpoint stays."""
    row = Row("loss not finite", "pretrain")
    for seed in seeds:
        folder = trials.work / f"diverging-{seed}"
        with_decoded(folder)
        code = call([*pretraining(folder), "--set", f"lr={10.0 ** (15 + seed)}"], log(folder))
        text, run = log(folder).read_text(), folder / "runs" / "toy-seal-s0"
        is_named = all(part in text for part in ("not finite", "at step", "last good checkpoint"))
        sidecar, is_intact = run / "checkpoint.json", True
        if sidecar.exists():
            is_intact = (run / json.loads(sidecar.read_text())["tensors"]).is_file()
        is_clean = code == 1 and is_named and is_intact and "Traceback" not in text
        row.judge({}, {}, [], "" if is_clean else f"exit {code}: {text}")
        assert not (run / "run.json").exists()
    return row
