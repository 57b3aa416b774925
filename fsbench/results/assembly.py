"""Build a result from records, and merge the shards of one evaluation."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench.core import registry
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords, columns, concatenate
from fsbench.core.schema import BackboneFacts, DatasetRecord, Provenance, Result
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, Spec
from fsbench.core.tasks import TaskId
from fsbench.results import parquet
from fsbench.results.names import MODEL_FILE, file_stem, result_flags
from fsbench.results.provenance import describe_differences
from fsbench.results.summary import Records, digest_records, summarize
from fsbench.results.verification import Loaded, read_cells

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
    summary = summarize(records, spec, dataset.test_counts)
    if not provenance.plugins:
        plugins = result_plugins(facts, dataset, spec)
        provenance = provenance.model_copy(update={"plugins": plugins})
    index, manifest = None, None
    if isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
        index = records.index
        manifest = hash_manifest(spec.episode, dataset, index)
    return Result(
        task=TaskId.of(dataset.name, spec),
        backbone=facts,
        dataset=dataset,
        spec=spec,
        spec_digest=spec.digest(),
        manifest_hash=manifest,
        flags=result_flags(dataset, spec, index, limited),
        records=f"{file_stem(spec)}.parquet",
        records_digest=digest_records(records),
        score=summary.score,
        collapsed=summary.collapsed,
        non_finite=summary.non_finite,
        details=summary.details,
        feature_norm=feature_norm,
        dense=summary.dense,
        by_class=summary.by_class,
        provenance=provenance,
    )


def result_plugins(facts: BackboneFacts, dataset: DatasetRecord, spec: Spec) -> dict[str, str]:
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


def hash_manifest(spec: EpisodeSpec, dataset: DatasetRecord, index: NDArray[np.int64]) -> str:
    """Return the hash of the episodes, from spec, class counts and hash of the groups alone."""
    from fsbench.data.episodes import draw_manifest

    counts = dict(zip(dataset.class_ids, dataset.class_counts, strict=True))
    return draw_manifest(spec, dataset.name, counts, dataset.groups, [int(i) for i in index]).hash


def write_result(path: Path, result: Result, records: Records) -> None:
    """Write records, then the result that describes them.

    An older result goes first: a kill in between leaves no result, never a wrong one.
    """
    path.unlink(missing_ok=True)
    parquet.write_records(path.with_suffix(".parquet"), records)
    write_record(path, result)


def union_episodes(parts: Sequence[tuple[str, EpisodeRecords]]) -> EpisodeRecords:
    """Return all episodes of the named parts, sorted; those of two parts must be equal in both.

    Raises ValidationFailed naming the parts and the first such episodes that differ.
    """
    if not parts:
        raise ValidationFailed("there is nothing to merge", fix="evaluate at least one block")
    name, first = parts[0]
    for other, part in parts[1:]:
        if columns(first).keys() != columns(part).keys():
            raise ValidationFailed(
                f"one of {name} and {other} has outcomes of dense queries, the other has none",
                fix="evaluate the older one again with --overwrite",
            )
    records = concatenate([part for _, part in parts])  # stable: equal numbers in order of parts
    again = np.flatnonzero(records.index[1:] == records.index[:-1]) + 1
    bad = again[differing_rows(records.take(again - 1), records.take(again))]
    if bad.size:
        numbers = np.concatenate([part.index for _, part in parts])
        owners = np.repeat(np.arange(len(parts)), [len(part.index) for _, part in parts])
        bad_owners = owners[np.argsort(numbers, kind="stable")][bad]
        earliest = int(bad_owners.min())
        spans = describe_spans(records.index[bad[bad_owners == earliest]])
        raise ValidationFailed(
            f"episodes {spans} differ between {name} and {parts[earliest][0]}",
            fix="use results of one environment; keep one of the two parts",
        )
    return records.take(np.delete(np.arange(len(records.index)), again))


def differing_episodes(a: EpisodeRecords, b: EpisodeRecords) -> NDArray[np.int64]:
    """Return the numbers of episodes whose outcomes differ; rows are in the same order."""
    return np.asarray(a.index[differing_rows(a, b)], np.int64)


def differing_rows(a: EpisodeRecords, b: EpisodeRecords) -> NDArray[np.bool_]:
    """Mask the rows whose outcomes differ."""
    wrong = (a.correct != b.correct).any(axis=(1, 2)) | (a.class_ids != b.class_ids).any(axis=1)
    wrong |= (a.collapsed != b.collapsed) | (a.finite != b.finite)
    for x, y in ((a.dense_correct, b.dense_correct), (a.dense_total, b.dense_total)):
        wrong |= False if x is None or y is None else (x != y).any(axis=1)
    return np.asarray(wrong, np.bool_)


def require_all(numbers: NDArray[np.int64], expected: NDArray[np.int64], where: Path) -> None:
    """Raise ValidationFailed naming the expected episodes that are missing."""
    missing = np.setdiff1d(expected, numbers)
    if missing.size:
        raise ValidationFailed(
            f"episodes {describe_spans(missing)} of {where} are missing",
            fix="evaluate the missing shard, then merge all parts",
        )


def require_same(cell: Loaded, facts: BackboneFacts, dataset: DatasetRecord, fix: str) -> None:
    """Raise ValidationFailed naming the facts in which a result differs from these."""
    mine = cell.result.backbone
    differ = [name for name in SAME_BACKBONE if getattr(mine, name) != getattr(facts, name)]
    if cell.result.dataset.identity != dataset.identity:
        differ.append("images or groups (data fingerprint)")
    if differ:
        raise ValidationFailed(f"{cell.path} was made with other {', '.join(differ)}", fix=fix)


def describe_gaps(index: NDArray[np.int64]) -> str:
    """Return the numbers missing below the last one, as `spans`; index is sorted."""
    before = np.concatenate([[-1], index[:-1]])
    holes = [(a + 1, b - 1) for a, b in zip(before, index, strict=True) if b - a > 1]
    return format_ranges(holes)


def describe_spans(index: NDArray[np.int64]) -> str:
    """Return sorted numbers as ranges, at most five: '0-3, 7, 9-12'."""
    breaks = np.flatnonzero(np.diff(index) != 1) + 1
    return format_ranges([(run[0], run[-1]) for run in np.split(index, breaks) if run.size])


def format_ranges(runs: Sequence[tuple[int, int]]) -> str:
    shown = [f"{a}-{b}" if a < b else str(a) for a, b in runs[:5]]
    return ", ".join(shown) + (f" and {len(runs) - 5} more ranges" if len(runs) > 5 else "")


Key = tuple[str, str, str, str]


def merge(parts: Sequence[Path], out: Path) -> list[Result]:
    """Merge all results of the parts into `out`, cell by cell, and return what was written.

    Parts of a cell must share weights, images, spec and environment; episodes held twice must be
    equal; no episode between the first and the last may be missing. Everything is checked before
    anything is written. Raises UsageError, or ValidationFailed naming files and fields.
    """
    if len(parts) < 2:
        raise UsageError("a merge needs at least two parts", fix="fsbench results merge A B -o OUT")
    groups: dict[Key, list[Loaded]] = defaultdict(list)
    for part in parts:
        for cell in read_cells(part):
            groups[locate_in_tree(cell)].append(cell)
    merged = [(key, *join_parts(group)) for key, group in sorted(groups.items())]
    for key, result, _ in merged:
        require_free(target(out, key), result)
    for key, result, records in merged:
        write_record(out / key[0] / key[1] / MODEL_FILE, result.backbone)
        write_result(target(out, key), result, records)
    return [result for _, result, _ in merged]


def locate_in_tree(cell: Loaded) -> Key:
    """Return model, weights12, data set and file name of a result in the tree."""
    model, weights, dataset, name = cell.path.resolve().parts[-4:]
    return model, weights, dataset, name


def target(out: Path, key: Key) -> Path:
    return out.joinpath(*key)


def join_parts(group: list[Loaded]) -> tuple[Result, Records]:
    """Return one result and its records from parts."""
    first = group[0]
    for other in group[1:]:
        require_alike(first, other)
    limited = any("limited" in cell.result.flags for cell in group)
    records = join_records(group)
    result = build_result(
        first.result.backbone,
        first.result.dataset,
        first.result.spec,
        records,
        limited,
        join_provenance([cell.result.provenance for cell in group]),
        first.result.feature_norm,
    )
    return result, records


def require_alike(a: Loaded, b: Loaded) -> None:
    fix = "merge only parts of one evaluation, made in one environment"
    require_same(a, b.result.backbone, b.result.dataset, fix)
    if differ := describe_differences(a.result.provenance, b.result.provenance):
        raise ValidationFailed(f"{a.path} and {b.path} differ in {differ}", fix=fix)


def join_records(group: list[Loaded]) -> Records:
    """Return all episodes without a gap; probes cannot be split, so theirs must be equal."""
    parts = [(str(c.path), c.records) for c in group if isinstance(c.records, EpisodeRecords)]
    if parts:
        records = union_episodes(parts)
        if missing := describe_gaps(records.index):
            raise ValidationFailed(
                f"episodes {missing} of {group[0].path} are missing in all parts",
                fix="evaluate the missing shard, then merge all parts",
            )
        return records
    for other in group[1:]:
        if other.result.records_digest != group[0].result.records_digest:
            raise ValidationFailed(
                f"{group[0].path} and {other.path} are the same probe with other outcomes",
                fix="merge results of one environment; keep one of the two",
            )
    return group[0].records


def join_provenance(parts: list[Provenance]) -> Provenance:
    """Return the first part's provenance with every command, the earliest start and all seconds."""
    return parts[0].model_copy(
        update={
            "command": "; ".join(dict.fromkeys(part.command for part in parts)),
            "started": min(part.started for part in parts),
            "seconds": sum(part.seconds for part in parts),
        }
    )


def require_free(path: Path, result: Result) -> None:
    """Raise ValidationFailed if other records are stored there: results are append-only."""
    if path.exists():
        from fsbench.results.verification import read_verified

        if read_verified(path).result.records_digest != result.records_digest:
            raise ValidationFailed(f"{path} exists with other records", fix="choose another -o")
