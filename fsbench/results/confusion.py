"""Confusion of classes: which class queries are taken for, over all episodes of a result."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tables import ShownAsTables, TextTable
from fsbench.core.tasks import ColumnId
from fsbench.results.entry import Loaded

if TYPE_CHECKING:
    import pandas as pd

Counts = NDArray[np.int64]
MOST_TAKEN = 3
"""Wrong classes that the table names for each class."""


@dataclass(frozen=True, eq=False, repr=False)
class Confusion(ShownAsTables):
    """What queries of each of C classes are taken for by the head of a result.

    counts (C, C): queries of the class of a row that were taken for the class of a column;
    possible (C, C): queries of the row's class in the episodes that have both classes.
    """

    model: str
    column: ColumnId
    class_names: tuple[str, ...]
    counts: Counts
    possible: Counts

    @property
    def shares(self) -> NDArray[np.float64]:
        """counts / possible, fractions (C, C); 0 for classes that never meet."""
        return np.asarray(self.counts / np.maximum(self.possible, 1), np.float64)

    def to_frame(self) -> "pd.DataFrame":
        """Return the shares, fractions: a row per class, a column per class it is taken for."""
        import pandas as pd

        names = [*self.class_names]
        return pd.DataFrame(self.shares, pd.Index(names, name="class"), pd.Index(names, name="as"))

    def tables(self) -> list[TextTable]:
        """Return a row per class, the least often right first; the complete table is C x C."""
        names, percent = self.class_names, 100 * self.shares
        rows = []
        for c in np.argsort(percent.diagonal(), kind="stable"):
            others = [o for o in np.argsort(-percent[c], kind="stable") if o != c and percent[c, o]]
            taken = ", ".join(f"{names[o]} {percent[c, o]:.1f}" for o in others[:MOST_TAKEN])
            rows.append((names[c], f"{percent[c, c]:.1f}", taken or "-"))
        matrix = tuple((name, *map("{:.1f}".format, percent[c])) for c, name in enumerate(names))
        title = f"confusion: {self.model} {self.column}"
        note = (
            "confusion: percent of the queries of a class, in episodes that have both classes; "
            f"chance is {100 / self.column.task.n_way:.1f}"
        )
        complete = TextTable(title, ("class", *names), matrix, note)
        columns = "class", "right", "most often taken for"
        return [TextTable(title, columns, tuple(rows), note, make_complete=lambda: complete)]

    def as_json(self) -> dict[str, Any]:
        """Return the counts with the names of model, column and classes."""
        names = {"model": self.model, "column": str(self.column), "classes": [*self.class_names]}
        return names | {"counts": self.counts.tolist(), "possible": self.possible.tolist()}


def count_confusion(loaded: Loaded) -> Confusion | None:
    """Return the confusion of a result; None where it holds no predictions."""
    from fsbench.data.episodes import draw_manifest

    result, records, spec = loaded.result, loaded.records, loaded.result.spec
    if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
        return None
    if records.predicted is None:
        return None
    data, n_query = result.dataset, spec.episode.n_query
    sizes = dict(zip(data.class_ids, data.class_counts, strict=True))
    drawn = draw_manifest(spec.episode, data.name, sizes, data.groups, records.index.tolist())
    classes = np.searchsorted(data.class_ids, drawn.class_ids)
    counts = np.zeros((len(sizes), len(sizes)), np.int64)
    possible = counts.copy()
    taken = np.take_along_axis(classes, records.predicted.astype(np.int64), axis=1)
    np.add.at(counts, (classes.repeat(n_query, axis=1), taken), 1)
    np.add.at(possible, (classes[:, :, None], classes[:, None]), n_query)
    return Confusion(loaded.model, result.column, data.class_names, counts, possible)


def count_confusions(results: Iterable[Loaded]) -> list[Confusion]:
    """Return the confusion of every result that holds predictions.

    Raises UsageError where none does.
    """
    confusions = [c for one in results if (c := count_confusion(one)) is not None]
    if not confusions:
        raise UsageError(
            "the results hold what is right and wrong, but no predicted classes",
            fix="evaluate few-shot tasks again with --overwrite; boards and probes store none",
        )
    return confusions
