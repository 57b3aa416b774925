"""Confusion of classes: what queries are taken for, over all episodes of a result."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tables import ShownAsTables, TextTable
from fsbench.results.entry import Loaded

MOST_TAKEN = 3
"""Wrong classes that the table names for each class."""


@dataclass(frozen=True, eq=False, repr=False)
class Confusion(ShownAsTables):
    """Classes that queries of each of C classes are taken for by the head of a result.

    counts (C, C) int64: queries of the class of a row that were taken for the class of a column;
    possible (C, C) int64: queries of the row's class in the episodes that have both classes.
    """

    model: str
    column: str
    classes: tuple[str, ...]
    counts: NDArray[np.int64]
    possible: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """counts / possible, fractions (C, C); 0 for classes that never meet."""
        return np.asarray(self.counts / np.maximum(self.possible, 1), np.float64)

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"counts": self.counts.tolist(), "possible": self.possible.tolist()}

    def tables(self) -> list[TextTable]:
        """Return a row per class, the least often right first; the complete table is C x C."""
        shares, texts = self.shares, np.char.mod("%.1f", 100 * self.shares).tolist()
        rows = []
        for c in np.argsort(shares.diagonal(), kind="stable"):
            others = [o for o in np.argsort(-shares[c], kind="stable") if o != c and shares[c, o]]
            taken = [f"{self.classes[o]} {texts[c][o]}" for o in others[:MOST_TAKEN]]
            rows.append((self.classes[c], texts[c][c], ", ".join(taken) or "-"))
        title = f"confusion: {self.model} {self.column}"
        note = "confusion: percent of the queries of a class, in episodes that have both classes"
        matrix = tuple((name, *texts[c]) for c, name in enumerate(self.classes))
        complete = TextTable(title, ("class", *self.classes), matrix, note)
        columns = "class", "right", "most often taken for"
        return [TextTable(title, columns, tuple(rows), note, make_complete=lambda: complete)]


def count_confusions(results: Iterable[Loaded]) -> list[Confusion]:
    """Return the confusion of each result that holds predictions. Raise UsageError if none does."""
    confusions = [*filter(None, map(count_confusion, results))]
    if not confusions:
        raise UsageError(
            "the results hold what is right and wrong, but no predicted classes",
            fix="evaluate few-shot tasks again with --overwrite; boards and probes store none",
        )
    return confusions


def count_confusion(loaded: Loaded) -> Confusion | None:
    """Return the confusion of a result; None where it holds no predictions."""
    from fsbench.data.episodes import draw_manifest

    records, data, spec = loaded.records, loaded.result.dataset, loaded.result.spec
    if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
        return None
    if records.predicted is None:
        return None
    sizes = dict(zip(data.class_ids, data.class_counts, strict=True))
    drawn = draw_manifest(spec.episode, data.name, sizes, data.groups, records.index.tolist())
    classes, n_query = np.searchsorted(data.class_ids, drawn.class_ids), spec.episode.n_query
    taken = np.take_along_axis(classes, records.predicted.astype(np.int64), axis=1)
    counts, possible = np.zeros((2, len(sizes), len(sizes)), np.int64)
    np.add.at(counts, (classes.repeat(n_query, axis=1), taken), 1)
    np.add.at(possible, (classes[:, :, None], classes[:, None]), n_query)
    column = str(loaded.result.column)
    return Confusion(loaded.model, column, data.class_names, counts, possible)
