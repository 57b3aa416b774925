"""Halving the learning rate when validation stands still: the one schedule that has a state.

"The Impact of Reinitialization", section 3.1: the rate falls by a factor of 2 whenever the
validation error has not improved for 20 epochs. Counted in epochs since the last improvement or
drop of the round, and seen only where an epoch is validated (`validate_every`). The study also
stops early on its validation split and does not say which weights go on: here rounds hand on their
last weights, as in the official codes of the other methods (methods.md 0).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Plateau:
    """best: validation accuracy (fraction); since: epoch of the round that the wait counts from;
    drops: of the rate, so far; fell: whether the epoch that is just over made one. A round starts
    with a new one.
    """

    best: float = -1.0
    since: int = -1
    drops: int = 0
    fell: bool = False

    def see(self, epoch: int, accuracy: float | None, wait: int) -> None:
        """The epoch is over, with this accuracy if it was validated; wait: epochs until a drop."""
        self.fell = False
        if accuracy is None:
            return
        if accuracy > self.best:
            self.best, self.since = accuracy, epoch
        elif epoch - self.since >= wait:
            self.since, self.drops, self.fell = epoch, self.drops + 1, True

    def state(self) -> dict[str, Any]:
        return asdict(self)
