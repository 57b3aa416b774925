"""The results tree: an entry per model, and the blocks of unfinished results.

Blocks are files of outcomes in a hidden folder named by weights, images and environment, so a
killed run finds its own. Their names end in the digest of their content: damaged ones are computed
again. Processes may share a folder: each folds its blocks into the entry under its lock.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsbench.core import registry
from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_bytes, read_record, write_atomic, write_record
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.records import EpisodeRecords, Records
from fsbench.core.schema import Analysis, BackboneFacts, DatasetRecord, Provenance, Question, Result
from fsbench.core.specs import Spec, digest
from fsbench.results import assembly, outcomes
from fsbench.results.entry import ENTRY_FILE, Loaded, write_entry
from fsbench.results.names import ANALYSES, model_name, safe_name
from fsbench.results.provenance import environment_of
from fsbench.results.verification import require_right

DIGITS = 16
OVERWRITE = "give --overwrite to replace it, or another folder with -o"


class ResultStore:
    """Where the result of one task of a model is kept below `root` (layout: results/names.py).

    `finish` folds the blocks of episodes in `blocks` into the model's entry. environment: what bits
    depend on; model: a name in place of the one that the reference gives.
    """

    def __init__(
        self,
        root: Path,
        facts: BackboneFacts,
        dataset: DatasetRecord,
        spec: Spec,
        environment: Mapping[str, str] | None = None,
        report: Reporter = SILENT,
        model: str | None = None,
    ) -> None:
        self.facts, self.dataset, self.spec, self.report = facts, dataset, spec, report
        self.environment = dict(environment or {})
        name = safe_name(model) if model else model_name(facts)
        self.folder = root / name / facts.identity[:12]
        images = {"weights": facts.identity, "images": dataset.identity}
        parts = spec.label, spec.digest()[:8], digest(images | self.environment)[:8]
        self.blocks = self.folder / "-".join([f".{dataset.name}", *parts])
        self.key: assembly.Key = dataset.name, spec.digest()

    def earlier(self, environment: Mapping[str, str] | None = None) -> Loaded | None:
        """Return the verified result. Raise ValidationFailed for other facts or environment."""
        stored = assembly.read_by_key(self.folder).get(self.key)
        if stored is not None:
            require_right(stored)
            assembly.require_same(stored, self.facts, self.dataset, environment, OVERWRITE)
        return stored

    @property
    def halvings(self) -> int:
        """Batch halvings of the stored result, 0 without one."""
        earlier = self.earlier()
        return earlier.result.provenance.halvings if earlier else 0

    def complete_result(self, episodes: ArrayLike = ()) -> Result | None:
        """Return the stored result if it has these episodes. Raise as `earlier` if it must grow."""
        earlier = self.earlier()
        if earlier and np.isin(episodes, episode_numbers(earlier)).all():
            return earlier.result
        self.earlier(self.environment or None)
        return None

    def block_files(self) -> list[Path]:
        return sorted(self.blocks.glob(f"*{outcomes.SUFFIX}"))

    def read_blocks(self) -> dict[Path, EpisodeRecords]:
        """Return every intact block by its file; remove damaged ones and log them."""
        blocks: dict[Path, EpisodeRecords] = {}
        for file in self.block_files():
            try:
                content = read_bytes(file, outcomes.MAX_FILE)
                if hashlib.sha256(content).hexdigest()[:DIGITS] not in file.name:
                    raise ValueError("it has other content than its name says")
                [records] = outcomes.decode(content).records([(self.spec, 0)])
                if isinstance(records, EpisodeRecords):
                    blocks[file] = records
            except (OSError, ValueError):
                if file.exists():  # else another process merged it
                    self.report.log(f"{file} is damaged: computing its episodes again")
                    file.unlink(missing_ok=True)
        return blocks

    def missing_blocks(self, blocks: Mapping[int, ArrayLike]) -> list[int]:
        """Return the blocks with episodes that no finished or unfinished run computed."""
        numbers = [records.index for records in self.read_blocks().values()]
        computed = np.concatenate([episode_numbers(self.earlier()), *numbers])
        return [b for b, episodes in blocks.items() if not np.isin(episodes, computed).all()]

    def write_block(self, block: int, records: EpisodeRecords) -> None:
        with assembly.lock_results(self.folder):  # else another process may remove the empty folder
            content = outcomes.encode([records])
            name = f"{block:06d}-{hashlib.sha256(content).hexdigest()[:DIGITS]}{outcomes.SUFFIX}"
            write_atomic(self.blocks / name, content)

    def remove_blocks(self, files: Iterable[Path]) -> None:
        """Delete blocks, and their folder with the last one."""
        for file in files:
            file.unlink(missing_ok=True)
        with suppress(OSError):  # it is not empty, or was never made
            self.blocks.rmdir()

    def clear(self) -> None:
        """Delete the result and its blocks (--overwrite)."""
        with assembly.lock_results(self.folder):
            others = assembly.read_by_key(self.folder)
            others.pop(self.key, None)
            if others:
                write_entry(self.folder, [(one.result, one.records) for one in others.values()])
            else:
                for file in (*self.folder.glob("outcomes-*"), self.folder / ENTRY_FILE):
                    file.unlink(missing_ok=True)
            self.remove_blocks(self.block_files())

    def finish(self, episodes: ArrayLike, *, provenance: Provenance, **facts: Any) -> Result:
        """Fold blocks and earlier result into the entry; all of these episodes must be there.

        Raises ValidationFailed for missing or contradicting episodes. facts: as for `write`.
        """
        with assembly.lock_results(self.folder):
            earlier = self.earlier(environment_of(provenance))
            blocks = {f: r.take(np.isin(r.index, episodes)) for f, r in self.read_blocks().items()}
            taken = {file: records for file, records in blocks.items() if records.index.size}
            parts = [(str(earlier), earlier.records)] if earlier else []
            parts += [(str(file), records) for file, records in taken.items()]
            result = self.write(
                assembly.unite_records(parts, episodes), provenance=provenance, **facts
            )
            self.remove_blocks(taken)
        return result

    def write(
        self,
        records: Records,
        *,
        provenance: Provenance,
        limited: bool = False,
        feature_norm: float | None = None,
    ) -> Result:
        """Write and return the result with these records. Facts: see `build_result`."""
        facts = self.facts, self.dataset, self.spec
        result = assembly.build_result(*facts, records, limited, provenance, feature_norm)
        assembly.add_results(self.folder, [(result, records)], replace=True)
        return result


def episode_numbers(loaded: Loaded | None) -> NDArray[np.int64]:
    """Return the episode numbers of a loaded result; none for a probe or for no result."""
    if loaded is None or not isinstance(loaded.records, EpisodeRecords):
        return np.empty(0, np.int64)
    return loaded.records.index


def locate_finding(root: Path, facts: BackboneFacts, question: Question) -> Path:
    folder = root / model_name(facts) / facts.identity[:12] / ANALYSES
    return folder / f"{question.what}-{question.digest()[:8]}.json"


def read_finding(root: Path, facts: BackboneFacts, question: Question) -> Analysis | None:
    """Return the stored record, if any. Raise ValidationFailed if it answers another question."""
    path = locate_finding(root, facts, question)
    if not path.is_file():
        return None
    analysis = read_record(path, Analysis)
    if analysis.question != question or analysis.backbone.identity != facts.identity:
        raise ValidationFailed(f"{path} answers another question than its name says", fix=OVERWRITE)
    return analysis


def write_finding(root: Path, analysis: Analysis) -> Path:
    """Write a record; it replaces an earlier one of the same question."""
    path = locate_finding(root, analysis.backbone, analysis.question)
    if plugins := registry.plugin_packages((registry.ANALYSES, analysis.question.what)):
        provenance = analysis.provenance.model_copy(update={"plugins": plugins})
        analysis = analysis.model_copy(update={"provenance": provenance})
    write_record(path, analysis)
    return path
