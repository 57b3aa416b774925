"""Reading results back: nothing is believed that can be recomputed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_record
from fsbench.core.records import EpisodeRecords, ProbeRecords
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec, ProbeSpec
from fsbench.results import parquet
from fsbench.results.names import ANALYSES, BADGES, MODEL_FILE
from fsbench.results.rules import Loaded, find_problems
from fsbench.results.summary import Records

NOT_RESULTS = (MODEL_FILE, "declaration.json", "entry.json", "board.json")


def result_files(path: Path) -> list[Path]:
    """Result files at or below `path`, sorted; hidden folders hold unfinished work.

    Raises UsageError when the path does not exist or holds no result.
    """
    if path.is_file():
        return [path]
    found = [
        file
        for file in sorted(path.rglob("*.json"))
        if file.name not in NOT_RESULTS
        and file.parent.name != BADGES
        and not any(p.startswith(".") or p == ANALYSES for p in file.relative_to(path).parts)
    ]
    if not found:
        what = "holds no results" if path.is_dir() else "does not exist"
        raise UsageError(
            f"{path} {what}", fix="give the folder that `fsbench benchmark -o DIR` wrote"
        )
    return found


def load(path: Path) -> Loaded:
    """A result and its records, parsed but not yet checked. Raises ValidationFailed."""
    result = read_record(path, Result)
    if result.records != f"{path.stem}.parquet":
        raise ValidationFailed(
            f"{path} points to the records '{result.records[:100]}', expected {path.stem}.parquet",
            fix="keep the two files of a result together under their own names",
        )
    return Loaded(path, result, read_records(path.with_suffix(".parquet"), result))


def read_records(path: Path, result: Result) -> Records:
    """The records that lie at `path`. Raises ValidationFailed."""
    spec = result.spec
    if isinstance(spec, EpisodicSpec):
        records: Records = parquet.read_episodes(path, spec.episode.n_way, spec.episode.n_query)
        rows = len(records.correct) if isinstance(records, EpisodeRecords) else 0
    elif isinstance(spec, ProbeSpec):
        probed = parquet.read_probe(path, result.score.n, spec.epochs)
        records, rows = probed, len(probed.lr)
    else:
        images = parquet.read_images(path)
        records, rows = images, len(images.correct)
    if rows == 0:
        raise ValidationFailed(f"{path} holds no rows", fix=parquet.FIX)
    return records


def verified(path: Path) -> Loaded:
    """A result that keeps every rule. Raises ValidationFailed naming file, rule and fix."""
    cell = load(path)
    found = find_problems(cell)
    if found:
        raise ValidationFailed("\n  ".join(str(problem) for problem in found))
    return cell


def cells(path: Path) -> Iterator[Loaded]:
    """All results at or below `path`, verified one by one."""
    return (verified(file) for file in result_files(path))


def read(path: Path) -> list[Result]:
    """All results at or below `path`, each verified against its records.

    Raises UsageError when there are none, ValidationFailed on the first that breaks a rule.
    """
    return [cell.result for cell in cells(path)]


def episode_records(path: Path) -> EpisodeRecords:
    """Per-episode outcomes of one verified result file."""
    records = verified(path).records
    if not isinstance(records, EpisodeRecords):
        raise UsageError(f"{path} is a probe, which has no episodes", fix="use probe_records")
    return records


def probe_records(path: Path) -> ProbeRecords:
    """Per-image outcomes of one verified probe result file."""
    records = verified(path).records
    if not isinstance(records, ProbeRecords):
        raise UsageError(f"{path} holds no linear probe", fix="use episode_records for episodes")
    return records
