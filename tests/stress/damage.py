"""Files that are not what was written: caches and unfinished work, damaged; images that changed."""

import shutil
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image
from stress.command import Fault
from stress.jobs import with_decoded, with_features
from stress.trials import Trial, kind_of_fault

NOTICED = "damaged"
FILLED = {"features": with_features, "decode": with_decoded}
"""How the cache of a job comes about that starts without one."""


@kind_of_fault("cache damaged", "decode", "features", "episodes", is_frequent=True)
def damage_cache(trial: Trial) -> str:
    """A file of a filled cache is damaged, then the job runs from its start with that cache."""
    if trial.name in FILLED:
        FILLED[trial.name](trial.folder)
    cache = sorted((trial.folder / "cache").rglob("*"))
    hurt = damage(trial.draw, [file for file in cache if is_candidate(file)])
    if "images" in hurt.parts:  # which are read where features are missing
        shutil.rmtree(trial.folder / "cache" / "features", ignore_errors=True)
    failed = trial.rerun()
    if hurt.suffix == ".npy" and NOTICED not in trial.text:
        failed += f"{hurt} was hurt and nothing printed"
    return failed


@kind_of_fault("unfinished work damaged", "pretrain", "features", "episodes", is_frequent=True)
def damage_unfinished(trial: Trial) -> str:
    """A killed run's hidden work is damaged: done again, or refused with the file's name."""
    changes = trial.reference.changes
    fatal = trial.draw.randint(changes // 2, max(2, changes * 2 // 3))
    trial.call(Fault(trial.folder, change=fatal))
    files = sorted(trial.folder.rglob("*"))
    if work := [file for file in files if is_in_flight(file, trial.folder)]:
        damage(trial.draw, work)
    failed = trial.rerun()
    if "exit 4" in failed and "delete" in failed:
        shutil.rmtree(trial.folder / "runs")  # what the message says
        failed = trial.rerun()
    return failed


@kind_of_fault("data changed", "own images")
def change_image(trial: Trial) -> str:
    """One image of a folder changes: its old result is refused, its features are made anew."""
    image = trial.draw.choice(sorted((trial.folder.parent / "images").rglob("*.png")))
    original = image.read_bytes()
    Image.fromarray(255 - np.asarray(Image.open(image))).save(image)
    code = trial.call()
    before = trial.job.outcome(trial.folder)
    image.write_bytes(original)
    refused, after = trial.call(), trial.job.outcome(trial.folder)
    shutil.rmtree(trial.folder / "results")
    is_clean = (code, refused) == (0, 5) and before == after != trial.reference.outcome
    return "" if is_clean else f"exit {code}, then {refused}: {trial.text}"


def is_candidate(file: Path) -> bool:
    return file.is_file() and file.suffix != ".lock" and file.stat().st_size > 0


def is_in_flight(file: Path, folder: Path) -> bool:
    """Return whether a file is a checkpoint, a part of features or a block of a killed run."""
    inside = file.relative_to(folder).parts
    checkpoint = file.name.startswith("checkpoint") and file.suffix != ".part"
    partial = any(part.endswith(".partial") for part in inside)
    block = file.suffix == ".zst" and any(part.startswith(".") for part in inside[:-1])
    return is_candidate(file) and (checkpoint or partial or block)


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
