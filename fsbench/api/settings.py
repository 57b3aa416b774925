"""`--set ridge.lam=10`: settings of fitted heads and probes, from text to what holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from fsbench.api.probes import PREFIX, Probing
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.specs import FITTED, SGD, FittedSpec


def parse_settings(assignments: Iterable[str]) -> dict[str, FittedSpec]:
    """Adaptation -> all its settings. Raises UsageError, UnknownName."""
    given = parse_assignments(assignments)
    return {name: settings(name, values) for name, values in given.items() if name != PREFIX}


def parse_probing(assignments: Iterable[str]) -> Probing:
    """Settings of probes, `probe.views=8`. Raises UsageError, UnknownName."""
    return Probing(parse_assignments(assignments).get(PREFIX, {}))


def parse_assignments(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """Adaptation, or `probe` -> setting -> value as text. Raises UsageError."""
    given: dict[str, dict[str, str]] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        adaptation, dot, setting = name.strip().partition(".")
        if not (equals and dot):
            raise UsageError(f"'{text}' sets nothing", fix="write ADAPTATION.SETTING=VALUE")
        values = given.setdefault(adaptation, {})
        if setting in values:
            raise UsageError(f"{name.strip()} is set twice", fix="set it once")
        values[setting] = value.strip()
    return given


def settings(adaptation: str, values: Mapping[str, str]) -> FittedSpec:
    """All settings of an adaptation, some of them given as text."""
    if adaptation in SGD:
        raise UsageError(
            f"{adaptation} is trained as published: it has nothing to set",
            fix=f"set one of {', '.join(name for name in FITTED.names() if name not in SGD)}",
        )
    spec = FITTED.load(adaptation)
    for name in values:
        if name not in spec.model_fields:
            raise UnknownName(f"setting of {adaptation}", name, spec.model_fields)
    try:
        return spec.model_validate(values)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UsageError(f"{adaptation}: {wrong}", fix="give another value") from error
