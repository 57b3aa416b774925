"""Records of analyses in the results tree: written once, by rename, and skipped when there.

results/<model>/<weights12>/analyses/<what>-<digest8>.json
"""

from __future__ import annotations

from pathlib import Path

from fsbench.core import registry
from fsbench.core.errors import ValidationFailed
from fsbench.core.findings import Analysis, Question
from fsbench.core.io import read_record, write_record
from fsbench.core.schema import BackboneFacts
from fsbench.results.names import ANALYSES, MODEL_FILE, model_name


def place(root: Path, facts: BackboneFacts, question: Question) -> Path:
    """Where the record of this question lies."""
    home = root / model_name(facts) / facts.weights_hash[:12]
    return home / ANALYSES / f"{question.stem}.json"


def earlier(root: Path, facts: BackboneFacts, question: Question) -> Analysis | None:
    """The record already there. Raises ValidationFailed if it answers something else."""
    path = place(root, facts, question)
    if not path.is_file():
        return None
    found = read_record(path, Analysis)
    if found.question != question or found.backbone.weights_hash != facts.weights_hash:
        raise ValidationFailed(
            f"{path} answers another question than its name says",
            fix="give --overwrite to replace it, or another folder with -o",
        )
    return found


def write(root: Path, analysis: Analysis) -> Path:
    """Keep a record; an earlier one of the same question is replaced."""
    path = place(root, analysis.backbone, analysis.question)
    plugins = registry.plugin_packages((registry.ANALYSES, analysis.question.what))
    if plugins:
        provenance = analysis.provenance.model_copy(update={"plugins": plugins})
        analysis = analysis.model_copy(update={"provenance": provenance})
    model = path.parent.parent / MODEL_FILE
    if not model.exists():
        write_record(model, analysis.backbone)
    write_record(path, analysis)
    return path
