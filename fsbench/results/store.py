"""The results tree: results, unfinished blocks and findings of analyses, every file by rename.

Results are append-only. Finished blocks of an unfinished result are small Parquet files in a hidden
folder whose name depends on weights, images and environment, so a killed run finds its blocks again
and never mixes in others. A block's file name ends in the digest of its records: a damaged block is
recognised, dropped and computed again. Findings lie in
results/<model>/<identity12>/analyses/<what>-<digest8>.json.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsbench.core import registry
from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords
from fsbench.core.schema import (
    Analysis,
    BackboneFacts,
    DatasetRecord,
    Flag,
    Provenance,
    Question,
    Result,
)
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, Spec, digest
from fsbench.results import assembly, parquet
from fsbench.results import provenance as environments
from fsbench.results.names import ANALYSES, MODEL_FILE, file_stem, model_name, safe_name
from fsbench.results.summary import Records, digest_records
from fsbench.results.verification import Loaded, read_verified

EARLIER = "earlier"
"""In place of a block's number: what stood in the result that is being replaced by a larger one."""
DIGITS = 16


class BlockJournal:
    """Blocks of one result in the folder `.<stem>-<key8>`."""

    def __init__(
        self,
        folder: Path,
        stem: str,
        key: Mapping[str, str],
        spec: EpisodeSpec,
        report: Reporter = SILENT,
    ) -> None:
        self.folder = folder / f".{stem}-{digest(dict(key))[:8]}"
        self.spec, self.report = spec, report

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def blocks(self) -> set[int]:
        """Return the numbers of the blocks written."""
        names = (file.name.partition("-")[0] for file in self.files())
        return {int(name) for name in names if name.isdecimal()}

    def write(self, block: int, records: EpisodeRecords) -> None:
        self.keep(f"{block:06d}", records)

    def keep(self, name: str, records: EpisodeRecords) -> Path:
        file = self.folder / f"{name}-{digest_start(records)}.parquet"
        parquet.write_records(file, records)
        return file

    def read(self) -> dict[Path, EpisodeRecords]:
        """Return every intact block by its file; remove damaged ones and log them."""
        blocks = {file: self.intact(file) for file in self.files()}
        return {file: records for file, records in blocks.items() if records is not None}

    def intact(self, file: Path) -> EpisodeRecords | None:
        """Return the records of a file; None if it is damaged or another process merged it."""
        try:
            records = parquet.read_episodes(file, self.spec.n_way, self.spec.n_query)
            if file.stem.endswith(f"-{digest_start(records)}"):
                return records
        except ValidationFailed:
            pass
        if file.exists():
            self.report.log(f"{file} is damaged: computing its episodes again")
            file.unlink(missing_ok=True)
        return None

    def index(self) -> NDArray[np.int64]:
        """Return the episode numbers of all blocks, in no order."""
        numbers = [records.index for records in self.read().values()]
        return np.concatenate([np.empty(0, np.int64), *numbers])

    def remove(self, files: list[Path]) -> None:
        """Delete blocks that are part of a result now, and the folder with the last one."""
        for file in files:
            file.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def digest_start(records: EpisodeRecords) -> str:
    """Return the start of the digest of records."""
    return digest_records(records)[:DIGITS]


if TYPE_CHECKING:
    from filelock import BaseFileLock

OVERWRITE = "give --overwrite to replace it, or another folder with -o"


class ResultStore:
    """Results below `root`, laid out as fsbench/results/names.py says.

    environment: what bits depend on (`environment_of` a provenance); unfinished blocks of another
    environment are left alone. report: receives a line for every damaged block.
    """

    def __init__(
        self, root: Path, environment: Mapping[str, str] | None = None, report: Reporter = SILENT
    ) -> None:
        self.root, self.environment, self.report = root, dict(environment or {}), report

    def cell(
        self, facts: BackboneFacts, dataset: DatasetRecord, spec: Spec, model: str | None = None
    ) -> "ResultPlace":
        """Return the place of one result; `model` replaces the name that the reference gives."""
        name = safe_name(model) if model else model_name(facts)
        folder = self.root / name / facts.identity[:12]
        return ResultPlace(folder, name, facts, dataset, spec, self.environment, self.report)


class ResultPlace:
    """The place of one result in the tree: blocks go to the journal, `finish` writes the result."""

    def __init__(
        self,
        home: Path,
        model: str,
        facts: BackboneFacts,
        dataset: DatasetRecord,
        spec: Spec,
        environment: Mapping[str, str],
        report: Reporter = SILENT,
    ) -> None:
        self.home, self.model, self.facts, self.dataset = home, model, facts, dataset
        self.spec = spec
        self.path = home / dataset.name / f"{file_stem(spec)}.json"
        key = {"weights": facts.identity, "images": dataset.identity, **environment}
        episode = spec.episode if isinstance(spec, EpisodicSpec) else EpisodeSpec()
        self.journal = BlockJournal(self.path.parent, file_stem(spec), key, episode, report)
        self.environment = dict(environment)
        self._lock: BaseFileLock | None = None
        self._computed: frozenset[int] | None = None

    def earlier(self) -> Loaded | None:
        """Return the verified stored result, if any. Raise ValidationFailed if facts differ."""
        if not self.path.is_file():
            return None
        try:
            cell = read_verified(self.path)
        except ValidationFailed:
            with self.lock():  # another process may have been replacing it
                if not self.path.is_file():
                    return None
                cell = read_verified(self.path)
        assembly.require_same(cell, self.facts, self.dataset, OVERWRITE)
        return cell

    def computed(self) -> frozenset[int]:
        """Return the episode numbers in the result and in the journal; read once."""
        if self._computed is None:
            stored = [episode_numbers(self.earlier()), self.journal.index()]
            self._computed = frozenset(np.concatenate(stored).tolist())
        return self._computed

    @property
    def halvings(self) -> int:
        """Batch halvings of the stored result, 0 without one."""
        earlier = self.earlier()
        return earlier.result.provenance.halvings if earlier else 0

    def complete(self, episodes: ArrayLike | None = None) -> bool:
        """Return whether the result exists and, given episode numbers, holds them all.

        Raises ValidationFailed when it would have to grow in another environment.
        """
        earlier = self.earlier()
        if earlier is None or episodes is None:
            return earlier is not None
        whole = bool(np.isin(episodes, episode_numbers(earlier)).all())
        if not whole and self.environment:
            self.require_environment(earlier, self.environment)
        return whole

    def done(self, n_episodes: int) -> bool:
        """Return whether the result holds episodes 0..n-1."""
        return self.complete(np.arange(n_episodes))

    def holds(self, episodes: ArrayLike) -> bool:
        """Return whether these episodes were computed, in a finished or an unfinished run."""
        return self.computed().issuperset(np.asarray(episodes).tolist())

    def blocks_done(self) -> set[int]:
        """Return the numbers of the blocks in the journal."""
        return self.journal.blocks()

    def read(self) -> Result:
        """Return the stored result, verified."""
        return read_verified(self.path).result

    def clear(self) -> None:
        """Delete the result and the journal (--overwrite)."""
        if self.path.parent.is_dir():
            with self.lock():
                self.path.unlink(missing_ok=True)
                self.path.with_suffix(".parquet").unlink(missing_ok=True)
                self.journal.remove(self.journal.files())
        self._computed = None

    def write_block(self, block: int, records: EpisodeRecords) -> None:
        """Write one finished block to the journal."""
        with self.lock():
            self.journal.write(block, records)
        self._computed = None

    def finish(
        self,
        episodes: ArrayLike,
        *,
        flags: Collection[Flag] = (),
        provenance: Provenance,
        feature_norm: float | None = None,
    ) -> Result:
        """Merge journal and earlier result; all wanted episodes must be there.

        flags: only `limited` is taken; the others follow from the data. Raises ValidationFailed for
        missing episodes, or overlapping ones that differ.
        """
        with self.lock():
            earlier, blocks = self.earlier(), self.parts(episodes)
            if earlier is not None:
                self.require_environment(earlier, environments.environment_of(provenance))
            before = earlier.records if earlier else None
            earlier_blocks = {self.path: before} if isinstance(before, EpisodeRecords) else {}
            records = assembly.union_episodes(
                [(str(file), r) for file, r in (earlier_blocks | blocks).items()]
            )
            assembly.require_all(records.index, np.asarray(episodes), self.path)
            kept_files = [self.journal.keep(EARLIER, block) for block in earlier_blocks.values()]
            result = self.write(records, "limited" in flags, provenance, feature_norm)
            self.journal.remove([*blocks, *kept_files])
        return result

    def parts(self, episodes: ArrayLike) -> dict[Path, EpisodeRecords]:
        """Return the requested episodes of every block, and all of a result being replaced."""
        read, blocks = self.journal.read(), {}
        numbers = [np.empty(0, np.int64), *(records.index for records in read.values())]
        chosen = np.isin(np.concatenate(numbers), episodes)  # one search for all blocks
        start = 0
        for file, records in read.items():
            rows = chosen[start : start + len(records.index)] | file.name.startswith(EARLIER)
            start += len(records.index)
            if rows.any():
                blocks[file] = records.take(rows)
        return blocks

    def write_probe(
        self,
        records: ProbeRecords | ImageRecords,
        *,
        flags: Collection[Flag] = (),
        provenance: Provenance,
        feature_norm: float | None = None,
    ) -> Result:
        """Write and return the result of a probe; flags as for `finish`."""
        with self.lock():
            return self.write(records, "limited" in flags, provenance, feature_norm)

    def write(
        self, records: Records, limited: bool, provenance: Provenance, feature_norm: float | None
    ) -> Result:
        result = assembly.build_result(
            self.facts, self.dataset, self.spec, records, limited, provenance, feature_norm
        )
        if not (self.home / MODEL_FILE).exists():
            write_record(self.home / MODEL_FILE, self.facts)
        assembly.write_result(self.path, result, records)
        self._computed = None
        return result

    def require_environment(self, earlier: Loaded, now: Mapping[str, str]) -> None:
        before = environments.environment_of(earlier.result.provenance)
        changes = environments.differing_parts(before, now)
        differ = [f"{part} {mine} -> {its}" for part, (mine, its) in changes.items()]
        if differ:
            raise ValidationFailed(
                f"{self.path} was made in another environment ({', '.join(differ)}): episodes "
                "added here would not have the same bits",
                fix=OVERWRITE,
            )

    def lock(self) -> "BaseFileLock":
        """Return the lock of the result, which the process that has it may take again."""
        from filelock import FileLock

        if self._lock is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.path.with_name(f".{self.path.stem}.lock"))
        return self._lock


def episode_numbers(cell: Loaded | None) -> NDArray[np.int64]:
    """Return the episode numbers of a loaded result; none for a probe or for no result."""
    if cell is None or not isinstance(cell.records, EpisodeRecords):
        return np.empty(0, np.int64)
    return cell.records.index


def locate_finding(root: Path, facts: BackboneFacts, question: Question) -> Path:
    """Return the path of the record of a question."""
    home = root / model_name(facts) / facts.identity[:12]
    return home / ANALYSES / f"{question.stem}.json"


def read_finding(root: Path, facts: BackboneFacts, question: Question) -> Analysis | None:
    """Return the stored record, if any. Raise ValidationFailed if it answers another question."""
    path = locate_finding(root, facts, question)
    if not path.is_file():
        return None
    analysis = read_record(path, Analysis)
    if analysis.question != question or analysis.backbone.identity != facts.identity:
        raise ValidationFailed(
            f"{path} answers another question than its name says",
            fix="give --overwrite to replace it, or another folder with -o",
        )
    return analysis


def write_finding(root: Path, analysis: Analysis) -> Path:
    """Write a record; it replaces an earlier one of the same question."""
    path = locate_finding(root, analysis.backbone, analysis.question)
    plugins = registry.plugin_packages((registry.ANALYSES, analysis.question.what))
    if plugins:
        provenance = analysis.provenance.model_copy(update={"plugins": plugins})
        analysis = analysis.model_copy(update={"provenance": provenance})
    model = path.parent.parent / MODEL_FILE
    if not model.exists():
        write_record(model, analysis.backbone)
    write_record(path, analysis)
    return path
