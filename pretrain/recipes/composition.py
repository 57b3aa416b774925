"""Pairs of methods that cannot share a recipe, and why; every other pair can be combined.

Combined methods act in the order of their rank, then of their name. Pairs whose papers do not
mention each other but whose effects add up (`swr` with `lw`, `seal` with `dsd`) are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

from fsbench.core.errors import UsageError


class NamedMethod(Protocol):
    """A method's settings; single settings are read by their name."""

    @property
    def name(self) -> str:
        """Public name of the method."""
        ...


def fills_zeros(powerprop: NamedMethod, other: NamedMethod) -> bool:
    """Return whether `other` sets weights to zero that powerprop trains with a power above 1."""
    zeroing = other.name == "imp" or getattr(other, "fill", None) == "zero"
    return zeroing and getattr(powerprop, "alpha", 1.0) > 1


def holds_zeros(pruning: NamedMethod, other: NamedMethod) -> bool:
    """Return whether the pruning method keeps weights at zero while training continues."""
    return pruning.name == "imp" or bool(getattr(pruning, "sparse_epochs", 0))


@dataclass(frozen=True)
class Refusal:
    """No method of `first` may be combined with one of `second`, if `when` holds for both.

    reason: completes the sentence "A and B ..."; fix: what to do instead.
    """

    first: frozenset[str]
    second: frozenset[str]
    reason: str
    fix: str = "use one of them"
    when: Callable[[NamedMethod, NamedMethod], bool] = lambda first, second: True


REDRAWS = frozenset({"dsd", "fc", "imp", "kels", "llf", "lw", "seal_reinit", "wels", "welsr"})
REPARAMETRIZATIONS = frozenset({"powerprop", "weight_compander", "weight_norm"})
INITS = frozenset({"gradinit", "nio"})
SEALS = frozenset({"seal", "seal_freeze", "seal_reinit", "seal_reverse"})
META = frozenset({"anil", "maml", "metasgd", "protonet"})
INNER_LOOPS = META - {"protonet"}
RESCALERS = frozenset({"swr", "swr_reanchor"})

REFUSALS = (
    Refusal(
        REDRAWS,
        REDRAWS,
        "both choose what is re-drawn, pruned or rewound at a round start: the result would follow"
        " neither paper",
    ),
    Refusal(
        frozenset({"rescale"}),
        frozenset({"lw"}),
        "both restore initial norms at a round start, which lw does for the blocks it keeps",
        fix="use lw alone",
    ),
    Refusal(
        frozenset({"full_reset"}),
        frozenset({"head_reset", "shrink_perturb"}),
        "both act on new data, where a full reset leaves the other one nothing to do",
    ),
    Refusal(REPARAMETRIZATIONS, REPARAMETRIZATIONS, "both reparametrize the same weights"),
    Refusal(INITS, INITS, "both scale the initial network"),
    Refusal(SEALS, SEALS, "both decide which layers ascend, and when"),
    Refusal(RESCALERS, RESCALERS, "both rescale every layer after every step"),
    Refusal(
        frozenset({"powerprop"}),
        frozenset({"dsd", "imp"}),
        "do not compose: weights are set to zero, where powerprop's gradient is zero for ever",
        fix="leave powerprop out, or fill with fresh draws (--set dsd.fill=init)",
        when=fills_zeros,
    ),
    Refusal(META, META, "both replace the training step"),
    Refusal(
        INITS,
        META,
        "do not compose: its gradients are those of classifying the source's classes, for which a"
        " network that answers tasks has no head",
    ),
    Refusal(
        REPARAMETRIZATIONS,
        INNER_LOOPS,
        "do not compose: no paper says whether a task's gradient steps act on the weights or on"
        " what is trained in their place, and the weight that a step computes once is not adapted",
    ),
    Refusal(
        frozenset({"dsd", "imp"}),
        INNER_LOOPS,
        "do not compose: a task's gradient steps would bring pruned weights back",
        fix="use one of them, or dsd without a sparse phase (--set dsd.sparse_epochs=0)",
        when=holds_zeros,
    ),
)


def require_composable(methods: Iterable[NamedMethod]) -> None:
    """Raise UsageError with the reason if two of the methods cannot share a recipe."""
    for a, b in permutations(methods, 2):
        for pair in REFUSALS:
            if a.name in pair.first and b.name in pair.second and pair.when(a, b):
                raise UsageError(f"{a.name} and {b.name} {pair.reason}", fix=pair.fix)
