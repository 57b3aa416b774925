"""Evaluation protocols: episodic heads, found by file name, and probes of whole data sets."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from fsbench.core.errors import FsbenchError
from fsbench.core.registry import HEADS, CustomCode, Registry, module_with

if TYPE_CHECKING:
    from torch import Tensor

    from fsbench.core.specs import EpisodicSpec, FittedSpec
    from protocols.base import EpisodicProtocol
    from protocols.heads.fitted import Classifier


def needs_features(protocol: "EpisodicProtocol") -> bool:
    """Return whether the head needs features of all images before it runs."""
    return bool(getattr(protocol, "FEATURES", True))


def _custom_head(code: CustomCode) -> "EpisodicProtocol":
    """Return the head that a function `fit(settings, support)` of the user's file defines."""
    from protocols.heads.fitted import make_protocol

    def fit(settings: "FittedSpec", support: "Tensor", *queries: "Tensor") -> "Classifier":
        classify = code.value(settings, support, *queries)
        if not callable(classify):
            raise FsbenchError(
                f"{code.path}: {code.name} returned a {type(classify).__name__}",
                fix="return a function: images (E, m, D) -> scores (E, m, n_way)",
            )
        return cast("Classifier", classify)

    size, evaluate = make_protocol(fit)
    head = SimpleNamespace(ADAPTATION=code.name, block_size=size, evaluate_block=evaluate)
    return cast("EpisodicProtocol", head)


EPISODIC: "Registry[EpisodicProtocol]" = Registry(
    "adaptation",
    "protocols.episodic",
    module_with("ADAPTATION", "block_size", "evaluate_block"),
    group=HEADS,
    adapt=_custom_head,
)


def episodes_per_block(spec: "EpisodicSpec", dim: int, device: str) -> int:
    """Return the block size of the spec's head for this feature dimension and device."""
    return EPISODIC.load(spec.adaptation).block_size(spec, dim, device)
