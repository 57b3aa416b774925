"""Which backbones are evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsbench import backbones
from fsbench.backbones.base import Backbone
from fsbench.core.errors import UsageError
from fsbench.core.progress import Reporter


@dataclass(frozen=True)
class Models:
    """The backbones to evaluate: references and how to read them.

    names: replace the names that follow from the references, one each; in_memory: backbones made
    by `Backbone.from_module`, by their reference.
    """

    refs: tuple[str, ...]
    arch: str | None = None
    random_init: int | None = None
    names: tuple[str, ...] = ()
    in_memory: Mapping[str, Backbone] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        models: str | Backbone | Sequence[str | Backbone],
        arch: str | None = None,
        random_init: int | None = None,
        name: str | None = None,
    ) -> Models:
        """Return the models that a user names; raise UsageError if they share a name."""
        each = [models] if isinstance(models, str | Backbone) else list(models)
        if name is not None and len(each) > 1:
            raise UsageError(
                f"--name {name} for {len(each)} models", fix="name one model at a time"
            )
        refs = tuple(model if isinstance(model, str) else model.facts.ref for model in each)
        in_memory = {model.facts.ref: model for model in each if isinstance(model, Backbone)}
        repeated = [ref for ref in in_memory if refs.count(ref) > 1]
        if repeated:
            raise UsageError(f"two models are called {repeated[0]}", fix="give each its own name")
        return cls(refs, arch, random_init, (name,) if name else (), in_memory)

    def load(self, index: int, device: str, report: Reporter) -> Backbone:
        """Return a backbone on a device, loaded unless it is in memory."""
        ref = self.refs[index]
        if ref in self.in_memory:
            return self.in_memory[ref].on(device)
        return backbones.load(
            ref, arch=self.arch, random_init=self.random_init, device=device, report=report
        )
