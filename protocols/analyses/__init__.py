"""Analyses of a network, one file each; the file name is the public name.

A file defines

    SOURCE           paper and section
    NEEDS            what is needed besides weights: "head" (a source classifier, so a run of
                     fsbench pretrain), "images"
    SETTINGS         class of frozen settings, with every choice that the paper leaves open: an
                     AnalysisSettings, or an ImageSettings where images are needed (inputs.py)
    run              (inputs, settings, report) -> Finding; raises NotApplicable

An analysis does not change the network. Without "head" in NEEDS it sees the head-free backbone of
any reference. All files share these names because the registry reads them. `fsbench analyze` runs
the files, stores their findings and draws several networks together.
"""

from typing import TYPE_CHECKING, Literal, Protocol

from fsbench.core import registry
from fsbench.core.errors import UsageError
from fsbench.core.registry import Registry

if TYPE_CHECKING:
    from fsbench.core.progress import Reporter
    from fsbench.core.schema import Finding
    from protocols.analyses.inputs import AnalysisInput, AnalysisSettings

Need = Literal["head", "images"]
PARTS = ("SOURCE", "NEEDS", "SETTINGS", "run")


class NotApplicable(UsageError):
    """The network lacks what the analysis measures."""


class AnalysisFile(Protocol):
    """Interface of a file of this package."""

    SOURCE: str
    NEEDS: tuple[Need, ...]
    SETTINGS: "type[AnalysisSettings]"

    @staticmethod
    def run(
        inputs: "AnalysisInput", settings: "AnalysisSettings", report: "Reporter"
    ) -> "Finding": ...


ANALYSES: Registry[AnalysisFile] = Registry(
    "analysis",
    "protocols.analyses",
    registry.module_with(*PARTS),
    machinery=("inputs",),
    group=registry.ANALYSES,
)
