"""Build a result from records, add results to a folder, and merge the shards of one evaluation."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsbench.core import registry
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.progress import format_count
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
    """Return the result of records, UsageError for none; feature_norm: mean L2 norm of features."""
    from fsbench.data.episodes import draw_manifest

    if not provenance.plugins:
        methods = facts.training.methods if facts.training else ()
        plugins = registry.plugin_packages(
            (registry.HEADS, spec.adaptation if isinstance(spec, EpisodicSpec) else ""),
            (registry.DATASETS, dataset.name),
            (registry.BACKBONE_SOURCES, facts.source.replace("-", "_")),
            *((registry.METHODS, method) for method in methods),
            *((registry.PRETRAINING_DATASETS, name) for name in facts.pretraining_data),
        )
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


def lock_results(folder: Path) -> "BaseFileLock":
    """Return the lock for replacing the entry of a folder; its process may take it again."""
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".lock", is_singleton=True)


def key_of(result: Result) -> Key:
    return result.dataset.name, result.spec_digest


def read_by_key(folder: Path) -> dict[Key, Loaded]:
    """Return the results of a folder, read once until it changes. Raises ValidationFailed."""
    path = folder / ENTRY_FILE
    if not path.is_file():
        return {}
    stat = path.stat()
    return dict(_read_once(folder, stat.st_ino, stat.st_mtime_ns))


@lru_cache(maxsize=8)
def _read_once(folder: Path, inode: int, time: int) -> dict[Key, Loaded]:
    return {key_of(one.result): one for one in read_entry(folder).loaded}


def add_results(
    folder: Path, pairs: Iterable[tuple[Result, Records]], *, replace: bool = False
) -> None:
    """Add results to a folder. Raises ValidationFailed for other outcomes, unless they replace."""
    added = {key_of(result): (result, records) for result, records in pairs}
    with lock_results(folder):
        stored = read_by_key(folder)
        for key in () if replace else stored.keys() & added.keys():
            if digest_records(stored[key].records) != digest_records(added[key][1]):
                raise ValidationFailed(
                    f"{stored[key]} exists with other outcomes", fix="choose another folder"
                )
        earlier = {key: (one.result, one.records) for key, one in stored.items()}
        write_entry(folder, (earlier | added).values())


def unite_records(
    parts: Sequence[tuple[str, Records]], episodes: ArrayLike | None = None
) -> Records:
    """Return all episodes of the named parts, sorted; what two parts have must be equal in both.

    episodes: those that must be there, by default all up to the last. Raises ValidationFailed.
    """
    if not parts:
        raise ValidationFailed("there is nothing to merge", fix="evaluate at least one block")
    name, union = parts[0]
    for other, part in parts[1:]:
        differing = ""
        if isinstance(union, EpisodeRecords) and isinstance(part, EpisodeRecords):
            again = np.isin(part.index, union.index)
            earlier = union.take(np.isin(union.index, part.index))
            wrong = differing_episodes(earlier, part.take(again))
            differing = describe_range(wrong) if wrong.size else ""
            union = concatenate([union, part.take(~again)])
        elif digest_records(union) != digest_records(part):
            differing = "outcomes of the probe"
        if differing:
            raise ValidationFailed(
                f"{differing} differ between {name} and {other}",
                fix="use results of one environment; keep one of the two parts",
            )
    if isinstance(union, EpisodeRecords):
        expected = np.arange(union.index[-1]) if episodes is None else episodes
        missing = np.setdiff1d(expected, union.index)
        if missing.size:
            raise ValidationFailed(
                f"{describe_range(missing)} of {name} are missing",
                fix="evaluate the missing shard, then merge all parts",
            )
    return union


def differing_episodes(a: EpisodeRecords, b: EpisodeRecords) -> NDArray[np.int64]:
    """Return the numbers of episodes whose outcomes differ; rows are in the same order."""
    ours, theirs = columns(a), columns(b)
    differs = [ours[name] != theirs[name] for name in ours.keys() & theirs.keys()]
    wrong = [rows.any(axis=tuple(range(1, rows.ndim))) for rows in differs]
    return a.index[np.logical_or.reduce(wrong)]


def require_same(
    loaded: Loaded,
    facts: BackboneFacts,
    dataset: DatasetRecord,
    environment: Mapping[str, str] | None,
    fix: str,
) -> None:
    """Raise ValidationFailed naming what differs; environment: if that counts."""
    result = loaded.result
    mine, made = result.backbone, environment_of(result.provenance)
    differ = [name for name in SAME_BACKBONE if getattr(mine, name) != getattr(facts, name)]
    if result.dataset.identity != dataset.identity:
        differ.append("images or groups (data fingerprint)")
    if environment is not None:
        differ += describe_changes(made, environment)
    if differ:
        raise ValidationFailed(f"{loaded} was made with other {', '.join(differ)}", fix=fix)


def describe_range(index: NDArray[np.int64]) -> str:
    """Return how many sorted episodes lie in which range, e.g. '12 episodes in 0-19'."""
    return f"{format_count(len(index), 'episode')} in {index[0]}-{index[-1]}"


def merge(parts: Sequence[Path], out: Path) -> list[Result]:
    """Merge all results of the parts into `out`, task by task, and return what was written.

    Parts must share weights, images, spec and environment, agree on common episodes and leave none
    out; a part without episodes is an empty folder. Raises UsageError, and ValidationFailed naming
    files and fields before anything is written.
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


def join_parts(group: Sequence[Loaded]) -> tuple[Result, Records]:
    """Return one result and its records from parts: all commands and seconds, the first start."""
    first, made = group[0].result, [part.result.provenance for part in group]
    for other in group[1:]:
        fix = "merge only parts of one evaluation, made in one environment"
        theirs = other.result
        environment = environment_of(theirs.provenance)
        require_same(group[0], theirs.backbone, theirs.dataset, environment, fix)
    records = unite_records([(str(part), part.records) for part in group])
    provenance = made[0].model_copy(
        update={
            "command": "; ".join(dict.fromkeys(part.command for part in made)),
            "started": min(part.started for part in made),
            "seconds": sum(part.seconds for part in made),
        }
    )
    limited = any("limited" in part.result.flags for part in group)
    facts = first.backbone, first.dataset, first.spec, records, limited, provenance
    return build_result(*facts, first.feature_norm), records
