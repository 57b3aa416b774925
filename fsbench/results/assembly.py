"""Build a result from records, add results to a folder, and merge the shards of one evaluation."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fsbench.core import registry
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.records import EpisodeRecords, Records, columns, concatenate
from fsbench.core.schema import BackboneFacts, DatasetRecord, Provenance, Result
from fsbench.core.specs import EpisodicSpec, Spec
from fsbench.results.entry import ENTRY_FILE, Loaded, read_entry, write_entry
from fsbench.results.names import result_flags
from fsbench.results.outcomes import digest_records
from fsbench.results.provenance import describe_changes, environment_of
from fsbench.results.summary import summarize
from fsbench.results.verification import read_loaded

if TYPE_CHECKING:
    from filelock import BaseFileLock

SAME_BACKBONE = (
    "weights_hash",
    "architecture",
    "feature_dim",
    "features",
    "mean",
    "std",
    "feature_spec",
)
"""Facts that change outcomes; the reference and training facts may be written differently."""
LOCK_FILE = ".lock"
Key = tuple[str, str]
"""Data set and digest of the spec: a folder holds one result of each."""


def build_result(
    facts: BackboneFacts,
    dataset: DatasetRecord,
    spec: Spec,
    records: Records,
    limited: bool,
    provenance: Provenance,
    feature_norm: float | None = None,
) -> Result:
    """Return the result of records. Raise UsageError if there are none."""
    from fsbench.data.episodes import draw_manifest

    if not provenance.plugins:
        plugins = result_plugins(facts, dataset, spec)
        provenance = provenance.model_copy(update={"plugins": plugins})
    index, manifest = None, None
    if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
        index = records.index
        counts = dict(zip(dataset.class_ids, dataset.class_counts, strict=True))
        drawn = spec.episode, dataset.name, counts, dataset.groups, index.tolist()
        manifest = draw_manifest(*drawn).hash
    return Result(
        backbone=facts,
        dataset=dataset,
        spec=spec,
        manifest_hash=manifest,
        flags=result_flags(dataset, spec, index, limited),
        feature_norm=feature_norm,
        provenance=provenance,
        **dict(summarize(records, spec, dataset.test_counts)),
    )


def result_plugins(facts: BackboneFacts, dataset: DatasetRecord, spec: Spec) -> dict[str, str]:
    head = spec.adaptation if isinstance(spec, EpisodicSpec) else ""
    methods = facts.training.methods if facts.training else ()
    return registry.plugin_packages(
        (registry.HEADS, head),
        (registry.DATASETS, dataset.name),
        (registry.BACKBONE_SOURCES, facts.source.replace("-", "_")),
        *((registry.METHODS, method) for method in methods),
        *((registry.PRETRAINING_DATASETS, name) for name in facts.pretraining_data),
    )


def lock_results(folder: Path) -> "BaseFileLock":
    """Return the lock that a process holds while it replaces the entry of a folder.

    A process may take it again while it has it.
    """
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / LOCK_FILE, is_singleton=True)


def key_of(result: Result) -> Key:
    return result.dataset.name, result.spec_digest


def read_by_key(folder: Path) -> dict[Key, Loaded]:
    """Return the results of a folder, none where it holds no entry. Raises ValidationFailed.

    An entry is read once while its file stays as it is: a run asks for each of its tasks.
    """
    path = folder / ENTRY_FILE
    if not path.is_file():
        return {}
    stat = path.stat()
    return dict(_read_once(folder, stat.st_ino, stat.st_mtime_ns))


@lru_cache(maxsize=8)
def _read_once(folder: Path, inode: int, time: int) -> dict[Key, Loaded]:
    return {key_of(one.result): one for one in read_entry(folder).loaded}


def put_results(folder: Path, pairs: Iterable[tuple[Result, Records]]) -> None:
    """Add results to a folder in place of its own of the same tasks. The caller has the lock."""
    stored = {key: (one.result, one.records) for key, one in read_by_key(folder).items()}
    write_entry(folder, (stored | {key_of(pair[0]): pair for pair in pairs}).values())


def add_results(folder: Path, pairs: Sequence[tuple[Result, Records]]) -> None:
    """Add results to a folder. Raises ValidationFailed if it has other outcomes of their tasks."""
    with lock_results(folder):
        stored = read_by_key(folder)
        for result, records in pairs:
            before = stored.get(key_of(result))
            if before and digest_records(before.records) != digest_records(records):
                raise ValidationFailed(
                    f"{before.where} exists with other outcomes", fix="choose another folder"
                )
        put_results(folder, pairs)


def union_episodes(parts: Sequence[tuple[str, EpisodeRecords]]) -> EpisodeRecords:
    """Return all episodes of the named parts, sorted; those of two parts must be equal in both.

    Raises ValidationFailed naming the parts and the first such episodes that differ.
    """
    if not parts:
        raise ValidationFailed("there is nothing to merge", fix="evaluate at least one block")
    name, union = parts[0]
    for other, part in parts[1:]:
        if columns(union).keys() != columns(part).keys():
            raise ValidationFailed(
                f"one of {name} and {other} has outcomes of dense queries, the other has none",
                fix="evaluate the older one again with --overwrite",
            )
        again = np.isin(part.index, union.index)
        earlier = union.take(np.isin(union.index, part.index))
        if (bad := differing_episodes(earlier, part.take(again))).size:
            raise ValidationFailed(
                f"episodes {describe_spans(bad)} differ between {name} and {other}",
                fix="use results of one environment; keep one of the two parts",
            )
        union = concatenate([union, part.take(~again)])
    return union


def differing_episodes(a: EpisodeRecords, b: EpisodeRecords) -> NDArray[np.int64]:
    """Return the numbers of episodes whose outcomes differ; rows are in the same order."""
    ours, theirs = columns(a), columns(b)
    differs = [ours[name] != theirs[name] for name in ours.keys() & theirs.keys()]
    wrong = [rows.any(axis=tuple(range(1, rows.ndim))) for rows in differs]
    return a.index[np.logical_or.reduce(wrong)]


def refuse_missing(missing: NDArray[np.int64], where: str) -> None:
    """Raise ValidationFailed for missing episodes, if there are any."""
    if missing.size:
        raise ValidationFailed(
            f"episodes {describe_spans(missing)} of {where} are missing",
            fix="evaluate the missing shard, then merge all parts",
        )


def require_same(loaded: Loaded, facts: BackboneFacts, dataset: DatasetRecord, fix: str) -> None:
    """Raise ValidationFailed naming the facts in which a result differs from these."""
    mine = loaded.result.backbone
    differ = [name for name in SAME_BACKBONE if getattr(mine, name) != getattr(facts, name)]
    if loaded.result.dataset.identity != dataset.identity:
        differ.append("images or groups (data fingerprint)")
    if differ:
        raise ValidationFailed(f"{loaded.where} was made with other {', '.join(differ)}", fix=fix)


def describe_spans(index: NDArray[np.int64]) -> str:
    """Return sorted numbers as ranges, at most five: '0-3, 7, 9-12'."""
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    runs = [(run[0], run[-1]) for run in np.split(index, breaks) if run.size]
    shown = [f"{a}-{b}" if a < b else str(a) for a, b in runs[:5]]
    return ", ".join(shown) + (f" and {len(runs) - 5} more ranges" if len(runs) > 5 else "")


def merge(parts: Sequence[Path], out: Path) -> list[Result]:
    """Merge all results of the parts into `out`, task by task, and return what was written.

    Parts of a result must share weights, images, spec and environment; episodes held twice must be
    equal; no episode between the first and the last may be missing. A part of so many that it has
    no episodes is an empty folder. Everything is checked before
    anything is written. Raises UsageError, or ValidationFailed naming files and fields.
    """
    if len(parts) < 2:
        raise UsageError("a merge needs at least two parts", fix="fsbench results merge A B -o OUT")
    groups: dict[tuple[Path, Key], list[Loaded]] = defaultdict(list)
    empty = [part for part in parts if part.is_dir() and not any(part.iterdir())]
    for part in [part for part in parts if part not in empty] or empty:
        for one in read_loaded(part):
            home = out.joinpath(*one.folder.resolve().parts[-2:])
            groups[home, key_of(one.result)].append(one)
    merged: dict[Path, list[tuple[Result, Records]]] = defaultdict(list)
    for (home, _), group in sorted(groups.items()):
        merged[home].append(join_parts(group))
    for home, pairs in merged.items():
        add_results(home, pairs)
    return [result for pairs in merged.values() for result, _ in pairs]


def join_parts(group: list[Loaded]) -> tuple[Result, Records]:
    """Return one result and its records from parts: all episodes without a gap.

    Probes cannot be split, so theirs must be equal. Its provenance is the first part's, with every
    command, the earliest start and all seconds.
    """
    first, made = group[0], [part.result.provenance for part in group]
    fix = "merge only parts of one evaluation, made in one environment"
    for other in group[1:]:
        require_same(first, other.result.backbone, other.result.dataset, fix)
        if changes := describe_changes(*map(environment_of, (made[0], other.result.provenance))):
            differ = ", ".join(changes)
            raise ValidationFailed(f"{first.where} and {other.where} differ in {differ}", fix=fix)
    parts = [(c.where, c.records) for c in group if isinstance(c.records, EpisodeRecords)]
    records = union_episodes(parts) if parts else first.records
    if isinstance(records, EpisodeRecords):
        missing = np.setdiff1d(np.arange(records.index[-1]), records.index)
        refuse_missing(missing, first.where)
    for other in () if parts else group[1:]:
        if digest_records(other.records) != digest_records(records):
            raise ValidationFailed(
                f"{first.where} and {other.where} are the same probe with other outcomes",
                fix="merge results of one environment; keep one of the two",
            )
    provenance = made[0].model_copy(
        update={
            "command": "; ".join(dict.fromkeys(part.command for part in made)),
            "started": min(part.started for part in made),
            "seconds": sum(part.seconds for part in made),
        }
    )
    facts = first.result.backbone, first.result.dataset, first.result.spec
    limited = any("limited" in part.result.flags for part in group)
    norm = first.result.feature_norm
    return build_result(*facts, records, limited, provenance, norm), records
