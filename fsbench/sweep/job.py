"""A job: what it computes, under a key that follows from nothing else."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from fsbench.core.specs import Frozen
from fsbench.sweep.file import Kind

if TYPE_CHECKING:
    from fsbench.sweep.place import Place


class Job(Frozen):
    """One unit of work that is done as a whole or not at all. title: for people."""

    KIND: ClassVar[Kind]

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """All that decides what comes out, as JSON values; no name that people chose."""

    @cached_property
    def key(self) -> str:
        """sha-256 of kind and settings, 64 hex digits."""
        text = json.dumps(
            {"kind": self.KIND, **self.settings}, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @abstractmethod
    def done(self, place: Place) -> bool:
        """Whether the result is there, by what the folders hold."""

    @abstractmethod
    def run(self, place: Place) -> None:
        """Compute what is missing; a job that was killed goes on where it stood."""
