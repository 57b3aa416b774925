"""A network of our own with random weights: fsbench/NAME and --random-init SEED."""

from __future__ import annotations

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.backbones.sources._base import Loaded, Request
from fsbench.core.errors import UsageError

FORM = "fsbench/NAME"
PREFIX = "fsbench/"


def load(request: Request) -> Loaded:
    """Raises UnknownName, and UsageError without a seed: these names have no weights."""
    ARCHITECTURES.load(request.name)
    if request.random_init is None:
        raise UsageError(
            f"{request.ref} is an architecture without weights",
            fix="pass --random-init SEED, or a run of it as run:DIR, or FILE --arch " + request.ref,
        )
    return build(request.name)


def build(name: str, width: int | None = None, input_size: int | None = None) -> Loaded:
    """The head-free network, freshly initialised; null: its own size. Raises UnknownName."""
    architecture = ARCHITECTURES.load(name)
    architecture = architecture.at(input_size or architecture.input_size)
    own = f"fsbench/{name}" + ("" if width is None else f"@{width}")
    return Loaded(
        module=architecture.build(0, width),
        architecture=name if name.startswith("timm/") else own,
        features=architecture.features,
        input_size=architecture.input_size,
    )
