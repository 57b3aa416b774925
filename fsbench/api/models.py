"""Which backbones are evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsbench import backbones
from fsbench.backbones.base import Backbone
from fsbench.core.progress import Reporter


@dataclass(frozen=True)
class Models:
    """The backbones to evaluate: references and how to read them.

    names: replace the names that follow from the references, one each.
    """

    refs: tuple[str, ...]
    arch: str | None = None
    random_init: int | None = None
    names: tuple[str, ...] = field(default=())

    def load(self, index: int, device: str, report: Reporter) -> Backbone:
        return backbones.load(
            self.refs[index],
            arch=self.arch,
            random_init=self.random_init,
            device=device,
            report=report,
        )
