"""What analyses are given: backbones, their heads, and the images that they were trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fsbench import backbones
from fsbench.api.evaluate import Models
from fsbench.backbones.loading import Classifier
from fsbench.backbones.reference import parse
from fsbench.backbones.sources import run
from fsbench.core.errors import DataError, UsageError
from fsbench.core.progress import Reporter
from fsbench.data import DataRoots, SourceDataset, load_source
from protocols.analyses.inputs import AnalysisInput


@dataclass(frozen=True, eq=False)
class Loader:
    """Loads models as subjects; equal images are loaded once.

    source: a reference that replaces the runs' own.
    """

    models: Models
    source: str | None
    roots: DataRoots
    cache: Path
    device: str
    report: Reporter
    known: dict[tuple[str, int], SourceDataset] = field(default_factory=dict)

    def subject(self, index: int, head: bool, images: bool) -> AnalysisInput:
        """A model with its head and images, where they are wanted. Raises as they do."""
        ref = self.models.refs[index]
        backbone = self.models.load(index, self.device, self.report)
        network = backbones.classifier(ref, device=self.device) if head else None
        source = self.images(ref, backbone.facts.input_size) if images else None
        if network is not None and source is not None:
            self.compare(ref, network, source)
        return AnalysisInput(backbone, network, source, self.device)

    def images(self, ref: str, size: int) -> SourceDataset:
        """The source at the size (px) that the backbone was trained at."""
        name = self.source or trained_on(ref)
        if (name, size) not in self.known:
            self.known[name, size] = load_source(name, self.roots, self.cache, size, self.report)
        return self.known[name, size]

    def compare(self, ref: str, network: Classifier, source: SourceDataset) -> None:
        """Raises DataError for other classes; other images are worth a word."""
        record = network.record
        if record.n_classes != source.n_classes:
            raise DataError(
                f"{ref} was trained on {record.n_classes} classes, {source.name} has"
                f" {source.n_classes}",
                fix=f"leave --source out, or give the source of its training: {record.source}",
            )
        if record.source_fingerprint not in (None, source.fingerprint):
            self.report.log(f"{ref} was trained on other images than this {source.name}")


def trained_on(ref: str) -> str:
    """The source of a run, as its recipe names it. Raises UsageError for an old run."""
    record = run.read(Path(parse(ref)[1]))
    found = record.recipe_fields.get("source", record.source)
    if not isinstance(found, str):
        raise UsageError(f"{ref} does not say what it was trained on", fix="give --source")
    return found
