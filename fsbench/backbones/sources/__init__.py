"""Sources of backbones, one file each, chosen by the prefix of a reference.

A file defines FORM, the reference with capitals for what varies, e.g. `timm/NAME`; PREFIX, with
which such references start; `load(request) -> LoadedNetwork`, with initial weights from torch's
global generator; and, if a reference can be checked without loading it, `check(request)`, which
raises UsageError and comes before each `load`.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from torch import nn

from fsbench.backbones.preprocessing import Preprocessing
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.registry import BACKBONE_SOURCES, Registry, module_with
from fsbench.core.tasks import parse_query

Argument = int | float | bool | str


@dataclass(frozen=True)
class BackboneRequest:
    """A parsed reference: its source, and the name after its prefix; a seed of random weights."""

    ref: str
    source: str
    name: str
    arch: str | None = None
    random_init: int | None = None
    report: Reporter = SILENT

    def check(self) -> None:
        """Raise the error of a reference that cannot be loaded, as far as its source can tell."""
        if check := getattr(SOURCES.load(self.source), "check", None):
            check(self)

    def load(self) -> "LoadedNetwork":
        """Check the request and load its network. Raise UsageError, CheckpointError."""
        self.check()
        return SOURCES.load(self.source).load(self)  # type: ignore[no-any-return]

    def is_known(self) -> bool:
        """Return whether `check` raises no UsageError."""
        try:
            self.check()
        except UsageError:
            return False
        return True

    def renamed(self, name: str) -> "BackboneRequest":
        """Return the request to the same source for another name."""
        return replace(self, ref=self.ref.removesuffix(self.name) + name, name=name)

    def split(self) -> tuple[str, dict[str, Argument]]:
        """Return the name and the arguments of NAME?key=value&key=value. Raise UsageError.

        Numbers, true and false get their type.
        """
        base, _, query = self.name.partition("?")
        options = parse_query(query, self.name)
        return base, {key: convert_text(value) for key, value in options.items()}


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A head-free module and the facts that its source states.

    features: how they are computed; preprocessing: what is known of it; test_size: side (px) of
    images that the network takes, to test it with; more: further fields of BackboneFacts (recipe,
    steps, ...); hint: how else to state what is unknown, for its error.
    """

    module: nn.Module
    architecture: str
    features: str
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    test_size: int = 224
    more: dict[str, Any] = field(default_factory=dict)
    hint: str = ""


SOURCES: Registry[Any] = Registry(
    "backbone source",
    "fsbench.backbones.sources",
    module_with("FORM", "PREFIX", "load"),
    group=BACKBONE_SOURCES,
)


def split_scheme(ref: str) -> tuple[str, str] | None:
    """Return (source name, rest of the reference); None for a reference without scheme."""
    for name, source in SOURCES.items():
        if source.PREFIX and ref.startswith(source.PREFIX):
            return name, ref.removeprefix(source.PREFIX)
    return None


def convert_text(text: str) -> Argument:
    """Return a text as int, float, bool, or else as it is."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def require_extra(package: str, ref: str) -> None:
    """Raise UsageError if an optional package is not installed; its name is that of the extra."""
    if find_spec(package) is None:
        raise UsageError(
            f"{ref} needs {package}, which is not installed",
            fix=f"pip install 'fsbench[{package}]'",
        )
