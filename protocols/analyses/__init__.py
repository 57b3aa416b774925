"""What a network looks like inside: the papers' analyses, one file each; the file name is the name.

A file defines

    SOURCE    where it comes from
    NEEDS     besides weights: "head" (a source classifier, so a run of ours), "images"
    Settings  frozen settings, every choice that the source leaves open among them; `images` is
              always the number of images looked at, null for all
    passes    (subject, settings) -> images that go through the network, in forward passes
    run       (subject, settings, report) -> Finding, or NotApplicable

Nothing of the network is changed. Without "head" a file sees the head-free backbone of any
reference. `fsbench analyze` runs them, stores what they find and draws several networks together.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Literal, Protocol, cast

from fsbench.core.errors import UsageError
from fsbench.core.registry import Registry

if TYPE_CHECKING:
    from fsbench.core.findings import Finding
    from fsbench.core.progress import Reporter
    from fsbench.core.specs import Frozen
    from protocols.analyses._subject import Subject

Need = Literal["head", "images"]
PARTS = ("SOURCE", "NEEDS", "Settings", "passes", "run")


class NotApplicable(UsageError):
    """The network has nothing that this analysis could look at."""


class AnalysisFile(Protocol):
    """A file of this package."""

    SOURCE: str
    NEEDS: tuple[Need, ...]
    Settings: type[Frozen]

    @staticmethod
    def passes(subject: Subject, settings: Frozen) -> float: ...

    @staticmethod
    def run(subject: Subject, settings: Frozen, report: Reporter) -> Finding: ...


def _module(module: ModuleType) -> AnalysisFile:
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise LookupError(f"it defines no {', '.join(missing)}")
    return cast("AnalysisFile", module)


ANALYSES: Registry[AnalysisFile] = Registry("analysis", "protocols.analyses", _module)
