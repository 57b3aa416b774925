"""Accuracy against shots of the best entries: means over the data sets that have all the shots."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from fsbench.core.panels import Curve
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import Z95
from leaderboard.site import pairs
from leaderboard.site.source import Track

BEST = 6
"""Lines that a reader can tell apart."""


def curves(track: Track) -> dict[str, tuple[Curve, ...]]:
    """Adaptation -> a curve of each of the best entries; {} where there is one number of shots."""
    return {
        kind: tuple(curve(track, name, by_shots) for name in best(track, by_shots))
        for kind, by_shots in ladders(track).items()
    }


def ladders(track: Track) -> dict[str, dict[int, list[str]]]:
    """Adaptation -> shots -> columns, of data sets measured at every number of shots."""
    held: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for column in track.columns:
        cell = next((cells[column] for cells in track.cells.values() if column in cells), None)
        if cell and isinstance(cell.result.spec, EpisodicSpec):
            spec = cell.result.spec
            held[spec.adaptation][cell.result.dataset.name][spec.episode.k_shot] = column
    found = {}
    for kind, datasets in held.items():
        every = sorted({k for by_shots in datasets.values() for k in by_shots})
        whole = [by_shots for by_shots in datasets.values() if len(by_shots) == len(every)]
        if len(every) > 1 and whole:
            found[kind] = {k: [by_shots[k] for by_shots in whole] for k in every}
    return found


def best(track: Track, by_shots: dict[int, list[str]]) -> list[str]:
    """The first entries in the order of their standing that hold all these columns."""
    needed = {column for columns in by_shots.values() for column in columns}
    return [name for name in track.names if needed <= track.view.contenders[name].keys()][:BEST]


def curve(track: Track, name: str, by_shots: dict[int, list[str]]) -> Curve:
    """Return means and 95 % intervals of an entry by shots, in percent."""
    outcomes = track.view.contenders[name]
    means = [float(np.mean([outcomes[c].values.mean() for c in cs])) for cs in by_shots.values()]
    halves = [Z95 * pairs.overall_error(outcomes, columns) for columns in by_shots.values()]
    has_intervals = not any(np.isnan(halves))
    return Curve(
        label=name,
        x=tuple(by_shots),
        y=tuple(100 * m for m in means),
        low=tuple(100 * (m - h) for m, h in zip(means, halves, strict=True) if has_intervals),
        high=tuple(100 * (m + h) for m, h in zip(means, halves, strict=True) if has_intervals),
    )
