"""Files that are not what was written: caches and unfinished work, cut short or a bit flipped."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random

from stress.command import Fault, call
from stress.jobs import with_decoded, with_features
from stress.tally import Row
from stress.trial import Trials, after, log, rng, torn

NOTICED = "damaged"
FILLED = {"features": with_features, "decode": with_decoded}
"""How the cache of a job comes about that starts without one."""


def caches(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """A file of a filled cache is damaged, then the job runs from its start with that cache."""
    reference, row = trials.reference(name), Row("cache damaged", name)
    for seed in seeds:
        folder, draw = trials.fresh(name, f"cache {seed}"), rng("cache", name, seed)
        if name in FILLED:
            FILLED[name](folder)
        cache = sorted((folder / "cache").rglob("*"))
        hurt = damage(draw, [file for file in cache if candidate(file)])
        result, failed = after(reference.job, folder)
        row.judge(reference.outcome, result, torn(reference.job, folder), failed)
        if hurt.suffix == ".npy" and NOTICED not in log(folder).read_text():
            row.said.append(f"{hurt} was hurt and nothing said")
            row.survived -= 1
    return row


def unfinished(trials: Trials, name: str, seeds: Iterable[int]) -> Row:
    """A killed run's hidden work is damaged: done again, or refused with the file's name."""
    reference, row = trials.reference(name), Row("unfinished work damaged", name)
    for seed in seeds:
        folder, draw = trials.fresh(name, f"unfinished {seed}"), rng("unfinished", name, seed)
        last = max(2, reference.changes * 2 // 3)
        change = draw.randint(reference.changes // 2, last)
        call(reference.job.arguments(folder), log(folder), Fault(folder, change=change))
        work = [file for file in sorted(folder.rglob("*")) if in_flight(file, folder)]
        if work:
            damage(draw, work)
        result, failed = after(reference.job, folder)
        if "exit 4" in failed and "delete" in failed:
            shutil.rmtree(folder / "runs")  # what the message says
            result, failed = after(reference.job, folder)
        row.judge(reference.outcome, result, torn(reference.job, folder), failed)
    return row


def candidate(file: Path) -> bool:
    return file.is_file() and file.suffix != ".lock" and file.stat().st_size > 0


def in_flight(file: Path, folder: Path) -> bool:
    """What a resumed run builds on: checkpoints, unfinished features, blocks of episodes."""
    inside = file.relative_to(folder).parts
    checkpoint = file.name.startswith("checkpoint") and file.suffix != ".part"
    partial = any(part.endswith(".partial") for part in inside)
    block = file.suffix == ".zst" and any(part.startswith(".") for part in inside[:-1])
    return candidate(file) and (checkpoint or partial or block)


def damage(draw: Random, files: list[Path]) -> Path:
    """Cut one of the files short, or flip one bit of it; its times move on."""
    file = draw.choice(files)
    content = bytearray(file.read_bytes())
    if draw.random() < 0.5:
        del content[draw.randrange(len(content)) :]
    else:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    file.write_bytes(content)
    return file
