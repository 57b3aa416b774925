"""The results tree: one cell per backbone, data set and spec; append-only, every file by rename."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords
from fsbench.core.schema import BackboneFacts, DatasetRecord, Flag, Provenance, Result
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, Spec
from fsbench.results import building
from fsbench.results import provenance as environments
from fsbench.results.journal import EARLIER, Journal
from fsbench.results.names import MODEL_FILE, model_name, safe, stem
from fsbench.results.reading import verified
from fsbench.results.rules import Loaded
from fsbench.results.summary import Records

if TYPE_CHECKING:
    from filelock import BaseFileLock

OVERWRITE = "give --overwrite to replace it, or another folder with -o"


class ResultStore:
    """Results below `root`, laid out as results/names.py says.

    environment: what bits depend on (fsbench.results.provenance.environment); unfinished blocks of
    another
    environment are left alone. report: hears of damaged blocks.
    """

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str] | None = None,
        report: Reporter = SILENT,
    ) -> None:
        self.root, self.environment, self.report = root, dict(environment or {}), report

    def cell(
        self,
        facts: BackboneFacts,
        dataset: DatasetRecord,
        spec: Spec,
        model: str | None = None,
    ) -> Cell:
        """The place of one result; `model` replaces the name that follows from the reference."""
        name = safe(model) if model else model_name(facts)
        folder = self.root / name / facts.weights_hash[:12]
        return Cell(folder, name, facts, dataset, spec, self.environment, self.report)


class Cell:
    """One result being made: blocks go to the journal, `finish` makes the result."""

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
        self.path = home / dataset.name / f"{stem(spec)}.json"
        key = {"weights": facts.weights_hash, "images": dataset.identity, **environment}
        episode = spec.episode if isinstance(spec, EpisodicSpec) else EpisodeSpec()
        self.journal = Journal(self.path.parent, stem(spec), key, episode, report)
        self.environment = dict(environment)
        self._lock: BaseFileLock | None = None
        self._held: NDArray[np.int64] | None = None

    def earlier(self) -> Loaded | None:
        """The verified result already there. Raises ValidationFailed if it is of something else."""
        if not self.path.is_file():
            return None
        try:
            cell = verified(self.path)
        except ValidationFailed:
            with self.lock():  # another process may have been replacing it
                if not self.path.is_file():
                    return None
                cell = verified(self.path)
        building.require_same(cell, self.facts, self.dataset, OVERWRITE)
        return cell

    def held(self) -> NDArray[np.int64]:
        """Episode numbers in the result and in the journal, in no order; read once."""
        if self._held is None:
            self._held = np.concatenate([episodes_of(self.earlier()), self.journal.index()])
        return self._held

    @property
    def halvings(self) -> int:
        """Of the result that is there, 0 for none."""
        earlier = self.earlier()
        return earlier.result.provenance.halvings if earlier else 0

    def complete(self, wanted: ArrayLike | None = None) -> bool:
        """Whether the result exists and, given episode numbers, holds them all.

        Raises ValidationFailed when it would have to grow in another environment.
        """
        earlier = self.earlier()
        if earlier is None or wanted is None:
            return earlier is not None
        whole = bool(np.isin(wanted, episodes_of(earlier)).all())
        if not whole and self.environment:
            self.require_environment(earlier, self.environment)
        return whole

    def done(self, n_episodes: int) -> bool:
        """Whether the result holds episodes 0..n-1."""
        return self.complete(np.arange(n_episodes))

    def holds(self, wanted: ArrayLike) -> bool:
        """Whether these episodes were computed, be it in an unfinished run."""
        return bool(np.isin(wanted, self.held()).all())

    def blocks_done(self) -> set[int]:
        """Blocks in the journal."""
        return self.journal.blocks()

    def read(self) -> Result:
        """The result there, verified."""
        return verified(self.path).result

    def clear(self) -> None:
        """Forget the result and the journal (--overwrite)."""
        if self.path.parent.is_dir():
            with self.lock():
                self.path.unlink(missing_ok=True)
                self.path.with_suffix(".parquet").unlink(missing_ok=True)
                self.journal.remove(self.journal.files())
        self._held = None

    def write_block(self, block: int, records: EpisodeRecords) -> None:
        """Keep one finished block."""
        with self.lock():
            self.journal.write(block, records)
        self._held = None

    def finish(
        self, wanted: ArrayLike, *, flags: Collection[Flag] = (), provenance: Provenance
    ) -> Result:
        """Merge journal and earlier result; the wanted episodes must all be there.

        flags: only `limited` is taken; the others follow from the data. Raises ValidationFailed for
        missing episodes, or overlapping ones that differ.
        """
        with self.lock():
            earlier, found = self.earlier(), self.parts(wanted)
            if earlier is not None:
                self.require_environment(earlier, environments.environment(provenance))
            before = earlier.records if earlier else None
            known = {self.path: before} if isinstance(before, EpisodeRecords) else {}
            records = building.union([(str(file), r) for file, r in (known | found).items()])
            building.require_all(records.index, np.asarray(wanted), self.path)
            kept = [self.journal.keep(EARLIER, each) for each in known.values()]
            result = self.write(records, "limited" in flags, provenance)
            self.journal.remove([*found, *kept])
        return result

    def parts(self, wanted: ArrayLike) -> dict[Path, EpisodeRecords]:
        """The wanted episodes of every block, and all of a result that was being replaced."""
        found = {}
        for file, records in self.journal.read().items():
            rows = np.isin(records.index, wanted) | file.name.startswith(EARLIER)
            if rows.any():
                found[file] = records.take(rows)
        return found

    def write_probe(
        self,
        records: ProbeRecords | ImageRecords,
        *,
        flags: Collection[Flag] = (),
        provenance: Provenance,
    ) -> Result:
        """The result of a probe; flags as for `finish`."""
        with self.lock():
            return self.write(records, "limited" in flags, provenance)

    def write(self, records: Records, limited: bool, provenance: Provenance) -> Result:
        result = building.build(self.facts, self.dataset, self.spec, records, limited, provenance)
        if not (self.home / MODEL_FILE).exists():
            write_record(self.home / MODEL_FILE, self.facts)
        building.write(self.path, result, records)
        self._held = None
        return result

    def require_environment(self, earlier: Loaded, now: Mapping[str, str]) -> None:
        before = environments.environment(earlier.result.provenance)
        changes = environments.changes(before, now)
        differ = [f"{part} {mine} -> {its}" for part, (mine, its) in changes.items()]
        if differ:
            raise ValidationFailed(
                f"{self.path} was made in another environment ({', '.join(differ)}): episodes "
                "added here would not have the same bits",
                fix=OVERWRITE,
            )

    def lock(self) -> BaseFileLock:
        """Two processes may work on one cell in one folder; a process may take it again."""
        from filelock import FileLock

        if self._lock is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.path.with_name(f".{self.path.stem}.lock"))
        return self._lock


def episodes_of(cell: Loaded | None) -> NDArray[np.int64]:
    """Episode numbers of a loaded result; none for a probe or nothing."""
    if cell is None or not isinstance(cell.records, EpisodeRecords):
        return np.empty(0, np.int64)
    return cell.records.index
