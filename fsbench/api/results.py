"""Results of an evaluation: a sequence to look at, a table for pandas, files to keep."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from fsbench.core.options import expand_path
from fsbench.core.schema import FeatureCost, Result
from fsbench.core.specs import BALANCED, EpisodicSpec
from fsbench.core.tables import ShownAsTables, TextTable
from fsbench.results.assembly import add_results, key_of, read_by_key
from fsbench.results.confusion import Confusion, count_confusions
from fsbench.results.entry import Loaded
from fsbench.results.table import build_tables
from fsbench.results.verification import read_loaded

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fsbench.core.plotting import Columns


NUMBERS = dict.fromkeys(("n_way", "n_shot", "episodes", "images"), "Int64") | {
    **dict.fromkeys(("input_size", "parameters"), "int64"),
    **dict.fromkeys(("accuracy", "ci95", "top1", "balanced_accuracy"), "float64"),
    **{"macs": "Int64", "images_per_second": "float64", "peak_memory_bytes": "Int64"},
}
"""Columns of `Results.to_frame` that hold numbers, and their types."""


class Results(ShownAsTables, Sequence[Result]):
    """The results of some models on some tasks, in the order of evaluation.

    `fsbench.evaluate` and `fsbench.load_results` make them. Indexing gives a `Result` (its
    `score.mean` is a fraction) or, with a slice, `Results`.

    paths: the folder of each, with `entry.json` and the outcomes of all of its results.

    Examples
    --------
    >>> import fsbench
    >>> results = fsbench.evaluate(
    ...     "fsbench/toy_resnet", "toy_scan:5w5s", random_init=0, input_size=32, episodes=10
    ... )
    >>> len(results), str(results[0].task)
    (1, 'toy_scan:5w5s/linear@ibm')
    """

    def __init__(
        self,
        results: Iterable[Result],
        paths: Iterable[Path],
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self._results, self.paths = tuple(results), tuple(paths)
        self._folder = folder  # a temporary folder is removed with the last Results that needs it

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> "Results": ...
    def __getitem__(self, index: int | slice) -> "Result | Results":
        if isinstance(index, slice):
            return Results(self._results[index], self.paths[index], self._folder)
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def models(self) -> list[str]:
        """Name of the model of each result: its folder in the results tree."""
        return [path.parent.name for path in self.paths]

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per task and model.

        input_size is in px; accuracy (the score), ci95 (half-width of the 95 % interval), top1,
        and balanced_accuracy (of a probe) are fractions; images are those that a probe tests; flags
        say why a result is not official, variant which settings differ from the defaults; source is
        `module` for a module in memory; macs to machine are those of a `FeatureCost`.
        """
        import pandas as pd

        rows = []
        for model, result in zip(self.models, self, strict=True):
            spec, task, cost = result.spec, result.task, result.provenance.cost
            is_episodic = isinstance(spec, EpisodicSpec)
            scores = (result.score.mean, result.other.mean) if result.other else (None, None)
            top1, balanced = scores[::-1] if BALANCED in spec.variant else scores
            row = {
                "model": model,
                "dataset": result.dataset.name,
                "n_way": task.n_way if is_episodic else None,
                "n_shot": task.n_shot,
                "head": task.head or task.probe,
                "protocol": task.protocol,
                "input_size": spec.image.input_size,
                "accuracy": result.score.mean,
                "ci95": result.score.ci95,
                "episodes": result.score.n if is_episodic else None,
                "images": None if is_episodic else result.score.n,
                "top1": top1,
                "balanced_accuracy": balanced,
                "flags": ", ".join(result.flags),
                "task": str(task),
                "variant": " ".join(result.column.variant),
                "source": result.backbone.source,
                "weights_hash": result.backbone.weights_hash,
                "parameters": result.backbone.n_parameters,
                **{name: getattr(cost, name, None) for name in FeatureCost.model_fields},
            }
            rows.append(row)
        return pd.DataFrame(rows, columns=None if rows else [*NUMBERS]).astype(NUMBERS)

    def save(self, folder: str | Path) -> "Results":
        """Copy the results with their records into a folder and return them from there.

        The folder is made where it is missing; other results in it are left alone. Raises
        ValidationFailed if other outcomes of a task are there.
        """
        home, loaded = expand_path(folder), self.load()
        targets = {path: Path(home, *path.parts[-2:]) for path in self.paths}
        for path, target in targets.items():
            add_results(target, [(x.result, x.records) for x in loaded if x.folder == path])
        return Results(self, [targets[path] for path in self.paths])

    def load(self) -> list[Loaded]:
        """Return the results with their records, read from their folders."""
        stored = {path: read_by_key(path) for path in dict.fromkeys(self.paths)}
        return [stored[path][key_of(r)] for path, r in zip(self.paths, self, strict=True)]

    def confusions(self) -> list[Confusion]:
        """Return which classes are taken for which, for each result that holds predictions.

        Raises UsageError if none does: probes and boards store what is right alone.
        """
        return count_confusions(self.load())

    def plot(self, control: str | None = None, columns: "Columns | None" = 2) -> "Figure":
        """Return accuracy by shots with a panel per data set, or the gaps over a control.

        Models that are many, or of one number of shots, are rows, the best on top. columns: of a
        paper, 1 for 8 cm and 2 for 17 cm; None for a screen. `savefig` of the figure writes a file.
        """
        from leaderboard.render.figure import draw_tables
        from leaderboard.results import rank_loaded

        return draw_tables(rank_loaded(self.load()), control, columns, by_shots=True)

    def tables(self) -> list[TextTable]:
        """Return the tables that people read, in percent: a column per model, a row per task."""
        return build_tables(self, self.models)


def load_results(folder: str | Path) -> Results:
    """Load all results in a folder, each verified against its per-episode records.

    folder: what `fsbench.evaluate(output=...)`, `Results.save` or the command line wrote, or a part
    of it. Raises UsageError if there is no result, ValidationFailed if one does not follow from its
    records.

    Examples
    --------
    >>> import fsbench, tempfile
    >>> results = fsbench.evaluate(
    ...     "fsbench/toy_resnet", "toy_photo:5w1s", random_init=0, input_size=32, episodes=10
    ... )
    >>> saved = results.save(tempfile.mkdtemp())
    >>> fsbench.load_results(saved.paths[0])[0] == results[0]
    True
    """
    loaded = list(read_loaded(expand_path(folder)))
    return Results((one.result for one in loaded), (one.folder.resolve() for one in loaded))
