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
from stress.trial import Trials, after, log, rng, torn

from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_cells

ELSEWHERE = "another process is training"


def together(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """The same command twice at once: both end well, or one is told to wait."""
    reference, row = trials.reference(name), Row("two processes", name)
    for seed in seeds:
        folder, draw = trials.fresh(name, f"two {seed}"), rng("two", name, seed)
        logs = [Path(f"{folder}.{i}.log") for i in range(2)]
        first = start(reference.job.arguments(folder), logs[0])
        first.join(draw.uniform(0.0, reference.seconds / 3))
        second = start(reference.job.arguments(folder), logs[1])
        failed = ""
        for process, said in zip((first, second), logs, strict=True):
            process.join()
            text = said.read_text()
            if process.exitcode and ELSEWHERE not in text:
                failed += f"exit {process.exitcode}: {text}"
        row.judge(
            reference.outcome, reference.job.outcome(folder), torn(reference.job, folder), failed
        )
    return row


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


def unwritable(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """The output is no folder, or read-only where this process may mount: an error, exit 1 or 2."""
    reference, row = trials.reference(name), Row("read-only output", name)
    for seed in seeds:
        folder = trials.fresh(name, f"unwritable {seed}")
        output = folder / reference.job.parts[-1]
        with mounted(folder / "ro", "ro", "size=64k") as done:
            if done and seed % 2:
                arguments = [
                    str(folder / "ro" / "x") if a == str(output) else a
                    for a in reference.job.arguments(folder)
                ]
            else:
                (folder / "file").write_text("in the way")
                arguments = [
                    str(folder / "file" / "x") if a == str(output) else a
                    for a in reference.job.arguments(folder)
                ]
            code = call(arguments, log(folder))
        text = log(folder).read_text()
        result, failed = after(reference.job, folder)
        if code not in (1, 2) or "error: " not in text or "Traceback" in text:
            failed += f"exit {code}: {text}"
        row.judge(reference.outcome, result, torn(reference.job, folder), failed)
    return row


SMALL = {"features": ("cache", (8, 72)), "episodes": ("results", (4, 28))}
"""Part of a job's folder, and how much room it has (kB): too little for all that it is to hold."""


def full_file_system(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """A part of the folder on a file system that is too small for it; where it may be mounted."""
    reference, row = trials.reference(name), Row("disk full (tmpfs)", name)
    part, sizes = SMALL[name]
    for seed in seeds:
        folder = trials.fresh(name, f"tmpfs {seed}")
        room = rng("tmpfs", name, seed).randint(*sizes)
        with mounted(folder / part, f"size={room}k") as done:
            if not done:
                break
            code = call(reference.job.arguments(folder), log(folder))
            broken = list(torn(reference.job, folder))
        text = log(folder).read_text()
        result, failed = after(reference.job, folder)
        if code != 1 or "error: " not in text or "Traceback" in text:
            failed += f"{room} kB, exit {code}: {text}"
        row.judge(reference.outcome, result, [*broken, *torn(reference.job, folder)], failed)
    return row


def changed_images(trials: Trials, seeds: Iterable[int]) -> Row:
    """One image of a folder changes: its old result is refused, its features are made anew."""
    row = Row("data changed", "features")
    for seed in seeds:
        folder = trials.work / f"images-{seed}"
        files = pictures(folder / "images", seed)
        assert call(of_folder(folder, "old"), log(folder)) == 0, log(folder).read_text()
        before = digest(folder / "old")
        Image.fromarray(255 - np.asarray(Image.open(files[seed % len(files)]))).save(
            files[seed % len(files)]
        )
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
    (cell,) = read_cells(results)
    return f"{digest_records(cell.records)} {cell.result.dataset.fingerprint}"


def diverging(trials: Trials, seeds: Iterable[int]) -> Row:
    """A learning rate that explodes: the step is named, the last good checkpoint stays."""
    row = Row("loss not finite", "pretrain")
    for seed in seeds:
        folder = trials.work / f"diverging-{seed}"
        with_decoded(folder)
        arguments = [*pretraining(folder), "--set", f"lr={10.0 ** (15 + seed)}"]
        code = call(arguments, log(folder))
        text, runs = log(folder).read_text(), folder / "runs" / "toy-seal-s0"
        named = "not finite" in text and "at step" in text and "last good checkpoint" in text
        sidecar = (
            json.loads((runs / "checkpoint.json").read_text())
            if (runs / "checkpoint.json").exists()
            else {}
        )
        intact = not sidecar or (runs / sidecar["tensors"]).is_file()
        clean = code == 1 and named and intact and "Traceback" not in text
        row.judge({}, {}, [], "" if clean else f"exit {code}: {text}")
        assert not (runs / "run.json").exists()
    return row
