"""A Result from records, parts joined to one, and what must agree before they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench.core import registry
from fsbench.core.errors import ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords, columns, concatenate
from fsbench.core.schema import BackboneFacts, DatasetRecord, Provenance, Result
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, Spec
from fsbench.core.tasks import TaskId
from fsbench.results import parquet
from fsbench.results.names import result_flags, stem
from fsbench.results.rules import Loaded
from fsbench.results.summary import Records, records_digest, summarise

SAME_BACKBONE = ("weights_hash", "architecture", "feature_dim", "features", "mean", "std")
"""Facts that change outcomes; the reference and training facts may be written differently."""


def build(
    facts: BackboneFacts,
    dataset: DatasetRecord,
    spec: Spec,
    records: Records,
    limited: bool,
    provenance: Provenance,
) -> Result:
    """The Result that these records give. Raises UsageError without any outcome."""
    summary = summarise(records, spec)
    if not provenance.plugins:
        plugins = used_plugins(facts, dataset, spec)
        provenance = provenance.model_copy(update={"plugins": plugins})
    index, manifest = None, None
    if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
        index = records.index
        manifest = manifest_hash(spec.episode, dataset, index)
    return Result(
        task=TaskId.of(dataset.name, spec),
        backbone=facts,
        dataset=dataset,
        spec=spec,
        spec_digest=spec.digest(),
        manifest_hash=manifest,
        flags=result_flags(dataset, spec, index, limited),
        records=f"{stem(spec)}.parquet",
        records_digest=records_digest(records),
        score=summary.score,
        collapsed=summary.collapsed,
        non_finite=summary.non_finite,
        details=summary.details,
        dense=summary.dense,
        provenance=provenance,
    )


def used_plugins(facts: BackboneFacts, dataset: DatasetRecord, spec: Spec) -> dict[str, str]:
    """Return the version of each plug-in package that takes part in a result."""
    head = spec.adaptation if isinstance(spec, EpisodicSpec) else ""
    methods = facts.training.methods if facts.training else ()
    return registry.plugin_packages(
        (registry.HEADS, head),
        (registry.DATASETS, dataset.name),
        (registry.BACKBONE_SOURCES, facts.source.replace("-", "_")),
        *((registry.METHODS, method) for method in methods),
        *((registry.PRETRAINING_DATASETS, name) for name in facts.pretraining_data),
    )


def manifest_hash(spec: EpisodeSpec, dataset: DatasetRecord, index: NDArray[np.int64]) -> str:
    """Hash of the episodes, from spec, class counts and hash of the groups alone."""
    from fsbench.data.episodes import hash_manifest

    counts = dict(zip(dataset.class_ids, dataset.class_counts, strict=True))
    return hash_manifest(spec, dataset.name, counts, dataset.groups, [int(i) for i in index])


def write(path: Path, result: Result, records: Records) -> None:
    """Records, then the result that describes them.

    An older result goes first: a kill in between leaves an unfinished cell, not a wrong one.
    """
    path.unlink(missing_ok=True)
    parquet.write(path.with_suffix(".parquet"), records)
    write_record(path, result)


def union(parts: Sequence[tuple[str, EpisodeRecords]]) -> EpisodeRecords:
    """All episodes of the named parts, sorted; an episode held twice must be equal in both.

    Raises ValidationFailed naming the parts and the first such episodes that differ.
    """
    if not parts:
        raise ValidationFailed("there is nothing to merge", fix="evaluate at least one block")
    name, whole = parts[0]
    for other, part in parts[1:]:
        if columns(whole).keys() != columns(part).keys():
            raise ValidationFailed(
                f"one of {name} and {other} has outcomes of dense queries, the other has none",
                fix="evaluate the older one again with --overwrite",
            )
        _, mine, its = np.intersect1d(whole.index, part.index, return_indices=True)
        bad = differing(whole.take(mine), part.take(its))
        if bad.size:
            raise ValidationFailed(
                f"episodes {spans(bad)} differ between {name} and {other}",
                fix="use results of one environment; keep one of the two parts",
            )
        new = part.take(~np.isin(part.index, whole.index))
        whole = concatenate([whole, new])
    return whole


def differing(a: EpisodeRecords, b: EpisodeRecords) -> NDArray[np.int64]:
    """Numbers of the episodes whose outcomes are not equal; rows stand in the same order."""
    wrong = (a.correct != b.correct).any(axis=(1, 2)) | (a.class_ids != b.class_ids).any(axis=1)
    wrong |= (a.collapsed != b.collapsed) | (a.finite != b.finite)
    for x, y in ((a.dense_correct, b.dense_correct), (a.dense_total, b.dense_total)):
        wrong |= False if x is None or y is None else (x != y).any(axis=1)
    return np.asarray(a.index[wrong], np.int64)


def require_all(held: NDArray[np.int64], wanted: NDArray[np.int64], where: Path) -> None:
    """Raises ValidationFailed naming the wanted episodes that are missing."""
    missing = np.setdiff1d(wanted, held)
    if missing.size:
        raise ValidationFailed(
            f"episodes {spans(missing)} of {where} are missing",
            fix="evaluate the missing shard, then merge all parts",
        )


def require_same(cell: Loaded, facts: BackboneFacts, dataset: DatasetRecord, fix: str) -> None:
    """Raises ValidationFailed naming the facts in which a result differs from those given."""
    mine = cell.result.backbone
    differ = [name for name in SAME_BACKBONE if getattr(mine, name) != getattr(facts, name)]
    if cell.result.dataset.identity != dataset.identity:
        differ.append("images or groups (data fingerprint)")
    if differ:
        raise ValidationFailed(f"{cell.path} was made with other {', '.join(differ)}", fix=fix)


def gaps(index: NDArray[np.int64]) -> str:
    """The numbers missing below the last one, as `spans`; index is sorted."""
    before = np.concatenate([[-1], index[:-1]])
    holes = [(a + 1, b - 1) for a, b in zip(before, index, strict=True) if b - a > 1]
    return ranges(holes)


def spans(index: NDArray[np.int64]) -> str:
    """Sorted numbers as ranges, at most five: '0-3, 7, 9-12'."""
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    return ranges([(run[0], run[-1]) for run in np.split(index, breaks) if run.size])


def ranges(runs: Sequence[tuple[int, int]]) -> str:
    shown = [f"{a}-{b}" if a < b else str(a) for a, b in runs[:5]]
    return ", ".join(shown) + (f" and {len(runs) - 5} more ranges" if len(runs) > 5 else "")
