"""Which analyses are asked for, with which settings, and which of them the models allow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from fsbench.api.evaluate import Models
from fsbench.backbones.reference import parse
from fsbench.backbones.sources import run
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.io import wrong_fields
from fsbench.core.progress import Reporter
from fsbench.core.specs import Frozen
from protocols.analyses import ANALYSES, AnalysisFile

ALL = "all"

Wanted = dict[str, Frozen]
"""Name of an analysis -> its settings."""


def texts(assignments: Sequence[str]) -> dict[str, str]:
    """`analysis.field=value` as field -> text. Raises UsageError for anything else."""
    found = {}
    for given in assignments:
        field, equals, value = given.partition("=")
        if not equals or "." not in field:
            raise UsageError(f"{given} sets nothing", fix="write hessian.top=10")
        found[field.strip().replace("-", "_")] = value.strip()
    return found


def plan(names: Sequence[str], texts: Mapping[str, str], limit: int | None = None) -> Wanted:
    """Analyses with their settings; texts: `analysis.field` -> value; limit: images at most.

    Raises UnknownName for an analysis or a field, UsageError for a value that does not fit.
    """
    given = dict.fromkeys(name.replace("-", "_") for name in names)
    chosen = ANALYSES.names() if ALL in given else tuple(given)
    found = {name: settings(name, own(name, texts), limit) for name in chosen}
    for text in texts:
        if text.partition(".")[0] not in chosen:
            raise UnknownName("setting", text, (f"{name}.FIELD" for name in chosen))
    return found


def own(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The fields set for one analysis."""
    prefix = f"{name}."
    return {g.removeprefix(prefix): text for g, text in texts.items() if g.startswith(prefix)}


def settings(name: str, texts: Mapping[str, str], limit: int | None) -> Frozen:
    """Of one analysis, from the text of its fields."""
    kind = ANALYSES.load(name).SETTINGS
    for field in texts:
        if field not in kind.model_fields:
            raise UnknownName(f"setting of {name}", field, kind.model_fields)
    try:
        made = kind.model_validate({field: value(text) for field, text in texts.items()})
    except ValidationError as error:
        raise UsageError(
            f"{name}: {wrong_fields(error)}", fix=f"give --set {name}.FIELD=VALUE that fits"
        ) from error
    if limit is None or "images" not in kind.model_fields:
        return made
    images: int | None = getattr(made, "images", None)
    return made.model_copy(update={"images": min(limit, images or limit)})


def value(text: str) -> object:
    """JSON where it is such, else the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def allowed(
    models: Models, wanted: Wanted, source: str | None, lenient: bool, report: Reporter
) -> Wanted:
    """The analyses whose needs every model meets. Raises UsageError unless lenient."""
    kept: Wanted = {}
    for name, chosen in wanted.items():
        file = ANALYSES.load(name)
        short = {ref: lack for ref in models.refs if (lack := lacks(ref, models, source, file))}
        for ref, lack in short.items():
            if not lenient:
                raise UsageError(f"{name} cannot be made of {ref}: it has no {lack}", fix=FIX[lack])
            report.log(f"{name} is left out: {ref} has no {lack}")
        if not short:
            kept[name] = chosen
    return kept


HEAD, IMAGES = "source classifier of ours", "images to look at"
FIX = {
    HEAD: "pass a run as run:DIR, without --random-init; meta-learners and other backbones have"
    " weights and features only, and --what all takes what they have",
    IMAGES: "name a source with --source",
}


def lacks(ref: str, models: Models, source: str | None, file: AnalysisFile) -> str:
    """What a model has not that an analysis needs; empty when it has all."""
    kind, name = parse(ref)
    trained = kind == "run" and models.random_init is None
    if "head" in file.NEEDS and not (trained and run.read(Path(name)).classifies_source):
        return HEAD
    return IMAGES if "images" in file.NEEDS and not (kind == "run" or source) else ""
