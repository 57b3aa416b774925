"""Shards evaluated apart become the result that one process would have written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Provenance, Result
from fsbench.results import building
from fsbench.results.names import MODEL_FILE
from fsbench.results.provenance import differences
from fsbench.results.reading import cells
from fsbench.results.rules import Loaded
from fsbench.results.summary import Records

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
        for cell in cells(part):
            groups[place(cell)].append(cell)
    merged = [(key, *join(group)) for key, group in sorted(groups.items())]
    for key, result, _ in merged:
        require_free(target(out, key), result)
    for key, result, records in merged:
        write_record(out / key[0] / key[1] / MODEL_FILE, result.backbone)
        building.write(target(out, key), result, records)
    return [result for _, result, _ in merged]


def place(cell: Loaded) -> Key:
    """Where a cell stands in the tree: model, weights12, data set, file name."""
    model, weights, dataset, name = cell.path.resolve().parts[-4:]
    return model, weights, dataset, name


def target(out: Path, key: Key) -> Path:
    return out.joinpath(*key)


def join(group: list[Loaded]) -> tuple[Result, Records]:
    """One cell from its parts."""
    first = group[0]
    for other in group[1:]:
        require_alike(first, other)
    limited = any("limited" in cell.result.flags for cell in group)
    records = joined_records(group)
    result = building.build(
        first.result.backbone,
        first.result.dataset,
        first.result.spec,
        records,
        limited,
        joined_provenance([cell.result.provenance for cell in group]),
    )
    return result, records


def require_alike(a: Loaded, b: Loaded) -> None:
    fix = "merge only parts of one evaluation, made in one environment"
    building.require_same(a, b.result.backbone, b.result.dataset, fix)
    if differ := differences(a.result.provenance, b.result.provenance):
        raise ValidationFailed(f"{a.path} and {b.path} differ in {differ}", fix=fix)


def joined_records(group: list[Loaded]) -> Records:
    """The union of episodes without a gap; probes cannot be split, so theirs must be equal."""
    parts = [(str(c.path), c.records) for c in group if isinstance(c.records, EpisodeRecords)]
    if parts:
        records = building.union(parts)
        if missing := building.gaps(records.index):
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


def joined_provenance(parts: list[Provenance]) -> Provenance:
    """The first part's, with every command, the earliest start and all seconds."""
    return parts[0].model_copy(
        update={
            "command": "; ".join(dict.fromkeys(part.command for part in parts)),
            "started": min(part.started for part in parts),
            "seconds": sum(part.seconds for part in parts),
        }
    )


def require_free(path: Path, result: Result) -> None:
    """Results are append-only: what stands there must be the same records."""
    if path.exists():
        from fsbench.results.reading import verified

        if verified(path).result.records_digest != result.records_digest:
            raise ValidationFailed(f"{path} exists with other records", fix="choose another -o")
