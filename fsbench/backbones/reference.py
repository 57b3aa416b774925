"""Which source a reference names: a known scheme first, then an existing file, else an error."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import cast

from fsbench.backbones.checkpoint import SUFFIXES
from fsbench.backbones.sources._base import Source
from fsbench.core.errors import UsageError
from fsbench.core.registry import Registry


def _source(module: ModuleType) -> Source:
    source = cast("Source", module)
    _ = source.FORM, source.PREFIX, source.load
    return source


SOURCES: Registry[Source] = Registry("backbone source", "fsbench.backbones.sources", _source)


def parse(ref: str) -> tuple[str, str]:
    """(source name, the rest of the reference). Raises UsageError with the nearest name."""
    for name, source in SOURCES.items():
        if source.PREFIX and ref.startswith(source.PREFIX):
            return name, ref.removeprefix(source.PREFIX)
    try:
        if Path(ref.partition("::")[0]).is_file():
            return "file", ref
    except OSError as error:
        raise UsageError(f"no backbone '{ref[:200]}': {error.strerror}", fix=forms()) from error
    raise UsageError(f"no backbone '{ref}'", fix=f"{nearest(ref)}; known references: {forms()}")


def forms() -> str:
    """All references that are understood."""
    return ", ".join(source.FORM for _, source in SOURCES.items())


def nearest(ref: str) -> str:
    """What the user may have meant."""
    path = Path(ref.partition("::")[0])
    if (path / "run.json").is_file():
        return f"did you mean 'run:{ref}'?"
    if path.suffix in SUFFIXES:
        siblings = [str(p) for p in path.parent.glob("*") if p.suffix in SUFFIXES]
        return meant(str(path), siblings) or f"there is no such file in {path.parent.resolve()}"
    return meant(ref, _names(ref)) or "start it with one of the schemes"


def _names(ref: str) -> list[str]:
    """References to compare a misspelt one with."""
    import timm

    scheme = ref.replace(":", "/").partition("/")
    if scheme[1]:
        rest = ref[len(scheme[0]) + 1 :]
        return [source.PREFIX + rest for _, source in SOURCES.items() if source.PREFIX]
    own = SOURCES.load("fsbench")
    from fsbench.backbones.architectures import ARCHITECTURES

    return [
        *(f"timm/{n}" for n in timm.list_models()),
        *(own.PREFIX + n for n in ARCHITECTURES.names()),
    ]


def meant(given: str, known: list[str]) -> str:
    near = get_close_matches(given, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else ""
