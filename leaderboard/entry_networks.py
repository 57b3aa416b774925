"""The networks of an entry: the pretraining seeds that are its row, and controls of its own."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter

from fsbench.core.schema import BackboneFacts
from fsbench.results.entry import Loaded


@dataclass(frozen=True, eq=False)
class Network:
    """One model of an entry: a pretraining seed, or a control of its own.

    name: that of the entry where it is the only one, else e.g. `lw seed 1`.
    """

    name: str
    loaded: tuple[Loaded, ...]
    seed: int
    is_control: bool = False

    @property
    def facts(self) -> BackboneFacts:
        return self.loaded[0].result.backbone


def group_networks(
    entry: str, results: Sequence[Loaded], controls: Collection[str]
) -> tuple[Network, ...]:
    """Return the models of an entry, its controls last; controls: their identities."""
    models: tuple[dict[str, list[Loaded]], ...] = {}, {}
    for loaded in results:
        identity = loaded.result.backbone.identity
        models[identity in controls].setdefault(identity, []).append(loaded)
    networks = []
    for is_control, kind in ((False, "seed"), (True, "control")):
        of_kind = list(models[is_control].values())
        numbers = number_seeds([of_model[0].result.backbone for of_model in of_kind])
        for seed, of_model in sorted(zip(numbers, of_kind, strict=True), key=itemgetter(0)):
            is_only = len(of_kind) == 1 and not is_control
            name = entry if is_only else f"{entry} {kind} {seed}"
            networks.append(Network(name, tuple(of_model), seed, is_control))
    return tuple(networks)


def is_control(facts: BackboneFacts) -> bool:
    """Return whether a network is random, or trained without any method."""
    return facts.random_init is not None or bool(facts.training and facts.training.plain)


def seed_of(facts: BackboneFacts) -> int:
    """Return the pretraining seed, or that of random weights; 0 where none is recorded."""
    if facts.random_init is None and facts.training is not None:
        return facts.training.view.seed
    return facts.random_init or 0


def number_seeds(networks: Sequence[BackboneFacts]) -> list[int]:
    """Return the seeds of the networks of a row, or 0, 1, ... if two are equal."""
    seeds = [seed_of(facts) for facts in networks]
    return seeds if len(set(seeds)) == len(seeds) else list(range(len(seeds)))
