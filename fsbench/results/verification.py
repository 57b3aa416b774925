"""Rules for one result and its records, each yielding Problems.

Reading raises on the first file with a Problem; a submission collects all of them.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import FsbenchError, UsageError, ValidationFailed
from fsbench.core.io import read_record
from fsbench.core.records import EpisodeRecords, ProbeRecords, columns
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec, Frozen, KnnSpec, ProbeSpec
from fsbench.core.tasks import TaskId
from fsbench.results import parquet
from fsbench.results.names import (
    ANALYSES,
    BADGES,
    MODEL_FILE,
    file_stem,
    model_name,
    result_flags,
    safe_name,
)
from fsbench.results.summary import Records, Summary, digest_records, summarize

HELD_OUT = {"held_out", "held_out_curve", "chosen"}
"""Records of the choice on the held-out part, of which a spec has none, the first or the others."""
ABSURD = 2**62
"""Size of an id or of a number of images that no array holds."""
AGAIN = "evaluate the task again with --overwrite; results must not be edited"


@dataclass(frozen=True)
class Problem:
    """A broken rule: code, place, value, expected value and fix."""

    code: str
    where: str
    value: str
    expected: str
    fix: str

    def __str__(self) -> str:
        text = f"[{self.code}] {self.where}: found {self.value}, expected {self.expected}"
        return f"{text}\n    fix: {self.fix}"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A result with its records in memory."""

    path: Path
    result: Result
    records: Records

    @property
    def model(self) -> str:
        """The model's folder in a results tree, else the name that its reference gives."""
        facts = self.result.backbone
        parents = self.path.resolve().parents
        in_tree = len(parents) > 2 and parents[1].name == facts.identity[:12]
        return safe_name(parents[2].name) if in_tree else model_name(facts)

    @property
    def place(self) -> str:
        """Data set and file, below the folder of the weights."""
        return "/".join(self.path.parts[-2:])

    def problem(self, code: str, value: object, expected: object, fix: str = AGAIN) -> Problem:
        return Problem(code, str(self.path), str(value)[:300], str(expected)[:300], fix)


Rule = Callable[[Loaded], Iterator[Problem]]
P = ParamSpec("P")
T = TypeVar("T")
TOGETHER = 4 * 2**20
"""Bytes of records that are checked together."""


def check_names(cell: Loaded) -> Iterator[Problem]:
    """Check that task, file name and spec digest follow from the spec and the data set."""
    result = cell.result
    digest, stem = identify_spec(type(result.spec), result.spec.model_dump_json())
    if result.spec_digest != digest:
        yield cell.problem("spec-digest", result.spec_digest, digest)
    if result.task != (task := TaskId.of(result.dataset.name, result.spec)):
        yield cell.problem("task", result.task, task)
    if cell.path.stem != stem:
        yield cell.problem("file-name", cell.path.stem, stem)


@lru_cache
def identify_spec(kind: type[EpisodicSpec | ProbeSpec | KnnSpec], text: str) -> tuple[str, str]:
    """Return digest and file stem of a spec by its JSON: the results of a board repeat a few."""
    spec = kind.model_validate_json(text)
    return spec.digest(), file_stem(spec)


def check_pool(cell: Loaded) -> Iterator[Problem]:
    """Check that the data pool is that of the protocol."""
    spec = cell.result.spec
    if isinstance(spec, EpisodicSpec):
        pool, expected = cell.result.dataset.pool, spec.episode.pool
        if pool != expected:
            yield cell.problem("pool", pool, f"{expected} for protocol {spec.protocol}")


def check_groups(cell: Loaded) -> Iterator[Problem]:
    """Check that results of the disjoint track alone state the groups of their images."""
    spec, groups = cell.result.spec, cell.result.dataset.groups
    expected = spec.episode.track if isinstance(spec, EpisodicSpec) else "classic"
    if (groups is not None) != (expected == "disjoint"):
        yield cell.problem("groups", groups or "none", f"those of the track {expected}")


def check_dataset(cell: Loaded) -> Iterator[Problem]:
    """Check that class ids, names and counts match, ids increase and counts are positive."""
    data = cell.result.dataset
    ids, counts = list(data.class_ids), data.class_counts
    if not len(ids) == len(data.class_names) == len(counts) or not ids:
        yield cell.problem("dataset", f"{len(ids)} ids, {len(counts)} counts", "one per class")
    if ids != sorted(set(ids)) or min(ids, default=0) < 0 or min(counts, default=1) < 1:
        yield cell.problem("dataset", f"ids {ids}", "increasing ids with at least one image each")
    spec, tests = cell.result.spec, data.test_counts
    is_balanced = not isinstance(spec, EpisodicSpec) and spec.score == "balanced_accuracy"
    parts = list(zip(tests, counts, strict=False))
    fits = len(tests) == len(ids) and all(0 <= n <= most for n, most in parts)
    if (tests or is_balanced) and not (fits and sum(tests) == cell.result.score.n):
        yield cell.problem("dataset", f"test counts {tests}", "the test images of each class")


def check_digest(cell: Loaded) -> Iterator[Problem]:
    actual = digest_records(cell.records)
    if actual != cell.result.records_digest:
        yield cell.problem("records-digest", actual, cell.result.records_digest)


def check_curves(cell: Loaded) -> Iterator[Problem]:
    """Check that curves and rates are finite, and the curve is that of the stored outcomes."""
    records = cell.records
    if not isinstance(records, ProbeRecords):
        return
    values = [v for v in columns(records).values() if v.dtype != np.bool_]
    if not all(np.isfinite(v).all() for v in values):
        yield cell.problem("non-finite", "NaN or infinity in the records", "finite numbers")
        return
    pairs = [(records.curve[:, -1], records.last), (records.curve.max(axis=1), records.best)]
    if records.held_out_curve is not None and records.chosen is not None:
        epochs = records.held_out_curve.argmax(axis=1)
        pairs.append((records.curve[np.arange(len(epochs)), epochs], records.chosen))
    if not all(np.allclose(c, right.mean(axis=1), rtol=0, atol=1e-6) for c, right in pairs):
        yield cell.problem("curve", "a curve that differs from its outcomes", "equal accuracies")


def check_rows(cell: Loaded) -> Iterator[Problem]:
    """Check that episodes are sorted, without repeats, with distinct classes of the data set."""
    records, result = cell.records, cell.result
    if isinstance(records, ProbeRecords):
        if tuple(records.lr) != getattr(result.spec, "lrs", ()):
            yield cell.problem("rows", f"learning rates {tuple(records.lr)}", "those of the spec")
        held_out, best = getattr(result.spec, "held_out", None), getattr(result.spec, "epoch", "")
        expected = {"held_out_curve", "chosen"} if best == "best" else {"held_out"}
        if {*columns(records)} & HELD_OUT != (expected if held_out else set()):
            yield cell.problem("rows", "other choices of the rate", "those of the spec")
    if not isinstance(records, EpisodeRecords):
        return
    index, classes = records.index, records.class_ids
    if index.min() < 0 or (index[1:] <= index[:-1]).any():
        yield cell.problem("rows", "episodes unsorted or twice", "increasing episode numbers")
    ordered = np.sort(classes, axis=1)
    distinct = (ordered[:, 1:] > ordered[:, :-1]).all()
    if not (distinct and look_up(dict.fromkeys(result.dataset.class_ids, 1), classes).all()):
        yield cell.problem("rows", "repeated or foreign class ids", "n_way classes of the data set")


def check_dense(cell: Loaded) -> Iterator[Problem]:
    """Check that dense queries are all images of a class but the support.

    On the disjoint track they may be fewer, at least the queries.
    """
    records, spec = cell.records, cell.result.spec
    if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
        return
    if records.dense_total is None:
        return
    data, e = cell.result.dataset, spec.episode
    counts = dict(zip(data.class_ids, data.class_counts, strict=False))
    most = look_up(counts, records.class_ids) - e.k_shot
    least = most if e.track == "classic" else np.full_like(most, e.n_query)
    if not ((records.dense_total >= least) & (records.dense_total <= most)).all():
        yield cell.problem("dense", "other totals than the classes give", "images but the support")


def look_up(numbers: Mapping[int, int], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each id; 0 for an id without one, or with an absurd one."""
    table = {0: 0} | {i: n for i, n in numbers.items() if max(abs(i), abs(n)) < ABSURD}
    keys = np.array(sorted(table))
    values = np.array([table[key] for key in keys.tolist()])
    places = np.minimum(np.searchsorted(keys, ids), keys.size - 1)
    return np.where(keys[places] == ids, values[places], 0)


def check_consistency(cell: Loaded) -> Iterator[Problem]:
    """Check that outcomes do not contradict each other.

    Queries are among the dense queries, so no class has more right or wrong ones; a collapsed
    episode is right for one class and wrong for all others; logits that are never finite do not
    predict better than one class for all queries.
    """
    records = cell.records
    if not isinstance(records, EpisodeRecords):
        return
    n_way, n_query = records.correct.shape[1:]
    right = records.right
    if records.dense_correct is not None and records.dense_total is not None:
        wrong = records.dense_total - records.dense_correct
        if (right > records.dense_correct).any() or (n_query - right > wrong).any():
            few = "fewer dense queries right or wrong than queries"
            yield cell.problem("contradiction", few, "at least as many in every class")
    collapsed = np.sort(right[records.collapsed], axis=1)
    if (collapsed[:, :-1] != 0).any() or (collapsed[:, -1:] != n_query).any():
        yield cell.problem("contradiction", "a collapsed episode", "exactly one class right")
    chance = 1.5 / n_way
    if not records.finite.any() and len(right) > 1 and records.accuracy.mean() > chance:
        actual = f"no finite logits, accuracy {records.accuracy.mean():.3f}"
        yield cell.problem("contradiction", actual, f"at most {chance:.3f}")


def check_summary(cell: Loaded) -> Iterator[Problem]:
    """Check that mean, interval, counts and details equal what the records give."""
    result = cell.result
    expected = summarize(cell.records, result.spec, result.dataset.test_counts)
    stated = Summary(**{f.name: getattr(result, f.name) for f in fields(Summary)})
    if not is_same_summary(stated, expected):
        yield cell.problem("score", stated, expected)


def is_same_summary(a: Summary, b: Summary) -> bool:
    """Return whether both are equal up to 1e-9, the rounding of other machines' sums."""
    x, y = list_values(vars(a)), list_values(vars(b))
    return x.keys() == y.keys() and all(
        math.isclose(value, other, rel_tol=0, abs_tol=1e-9)
        if isinstance(value, float) and isinstance(other := y[name], float | int)
        else value == y[name]
        for name, value in x.items()
    )


def list_values(value: object, name: str = "") -> dict[str, object]:
    """Return the values inside nested records and mappings by their path."""
    parts = dict(value) if isinstance(value, Frozen | dict) else None
    if parts is None:
        return {name: value}
    return {k: v for part in parts for k, v in list_values(parts[part], f"{name}/{part}").items()}


def check_flags(cell: Loaded) -> Iterator[Problem]:
    """Check that flags are facts of the data; only `limited` is taken from the result's word."""
    result = cell.result
    index = cell.records.index if isinstance(cell.records, EpisodeRecords) else None
    expected = result_flags(result.dataset, result.spec, index, "limited" in result.flags)
    if result.flags != expected:
        yield cell.problem("flags", result.flags or "none", expected or "none")


RULES: tuple[Rule, ...] = (
    check_names,
    check_pool,
    check_groups,
    check_dataset,
    check_digest,
    check_curves,
    check_rows,
    check_dense,
    check_consistency,
    check_summary,
    check_flags,
)


def find_problems(cell: Loaded) -> list[Problem]:
    """Return everything wrong with one result."""
    return [problem for rule in RULES for problem in rule(cell)]


NOT_RESULTS = (MODEL_FILE, "declaration.json", "entry.json", "board.json")


def result_files(path: Path) -> list[Path]:
    """Return the result files at or below `path`, sorted; hidden folders have unfinished work.

    Raises UsageError when the path does not exist or holds no result.
    """
    return [Path(name) for name in list_results(path)]


def list_results(path: Path) -> list[str]:
    """Return the names of `result_files`; to make a Path takes as long as to find a file."""
    if path.is_file():
        return [str(path)]
    files = []
    for folder, folders, names in os.walk(path):  # faster than Path.rglob
        folders[:] = [name for name in folders if not name.startswith(".") and name != ANALYSES]
        if Path(folder).name != BADGES:
            files += [
                f"{folder}{os.sep}{name}"
                for name in (*names, *folders)
                if name.endswith(".json") and name[0] != "." and name not in NOT_RESULTS
            ]
    if not files:
        what = "holds no results" if path.is_dir() else "does not exist"
        raise UsageError(
            f"{path} {what}", fix="give the folder that `fsbench benchmark -o DIR` wrote"
        )
    return sorted(files, key=lambda file: file.replace(os.sep, "\0"))  # as their parts


def load_result(path: Path) -> Loaded:
    """Load a result and its records, parsed but not yet checked. Raise ValidationFailed."""
    result = parse_result(path)
    return Loaded(path, result, read_records(path.with_suffix(".parquet"), result))


def parse_result(path: Path) -> Result:
    """Return a result without its records, parsed but not yet checked. Raise ValidationFailed."""
    result = read_record(path, Result)
    if result.records != f"{path.stem}.parquet":
        raise ValidationFailed(
            f"{path} points to the records '{result.records[:100]}', expected {path.stem}.parquet",
            fix="keep the two files of a result together under their own names",
        )
    return result


def read_records(path: Path, result: Result) -> Records:
    """Read the records at `path`. Raise ValidationFailed."""
    spec = result.spec
    if isinstance(spec, EpisodicSpec):
        records: Records = parquet.read_episodes(path, spec.episode.n_way, spec.episode.n_query)
        rows = len(records.correct) if isinstance(records, EpisodeRecords) else 0
    elif isinstance(spec, ProbeSpec):
        probed = parquet.read_probe(path, result.score.n, spec.epochs)
        records, rows = probed, len(probed.lr)
    else:
        images = parquet.read_images(path)
        records, rows = images, len(images.correct)
    if rows == 0:
        raise ValidationFailed(f"{path} holds no rows", fix=parquet.FIX)
    return records


def read_verified(path: Path) -> Loaded:
    """Read a result that keeps every rule. Raise ValidationFailed naming file, rule and fix."""
    cell = load_result(path)
    problems = find_problems(cell)
    if problems:
        raise ValidationFailed("\n  ".join(str(problem) for problem in problems))
    return cell


def select_verified(paths: Sequence[Path]) -> Iterator[Loaded]:
    """Yield those of these results that keep every rule, a stage for many results at a time.

    Code and tables stay in the caches of the processor that way: path by path takes half as long
    again. Results whose records are large are few at a time.
    """
    parsed = {path: result for path in paths if (result := call_safely(parse_result, path))}
    waiting: list[Loaded] = []
    size = 0
    for i, (path, result) in enumerate(parsed.items(), 1):
        records = call_safely(read_records, path.with_suffix(".parquet"), result)
        if records is not None:
            waiting.append(Loaded(path, result, records))
            size += sum(values.nbytes for values in columns(records).values())
        if size > TOGETHER or i == len(parsed):
            for rule in RULES:
                waiting = [cell for cell in waiting if call_safely(keeps, rule, cell)]
            yield from waiting
            waiting, size = [], 0


def call_safely(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return what a function returns; None after an error of ours or of the file system."""
    try:
        return function(*args, **kwargs)
    except (FsbenchError, OSError):
        return None


def keeps(rule: Rule, cell: Loaded) -> bool:
    return next(rule(cell), None) is None


def read_cells(path: Path) -> Iterator[Loaded]:
    """Yield all results at or below `path`, verified one by one."""
    return (read_verified(file) for file in result_files(path))


def read(path: Path) -> list[Result]:
    """Return all results at or below `path`, verified against their records.

    Raises UsageError when there are none, ValidationFailed on the first that breaks a rule.
    """
    return [cell.result for cell in read_cells(path)]


def episode_records(path: Path) -> EpisodeRecords:
    """Return the per-episode outcomes of one verified result file."""
    records = read_verified(path).records
    if not isinstance(records, EpisodeRecords):
        raise UsageError(f"{path} is a probe, which has no episodes", fix="use probe_records")
    return records


def probe_records(path: Path) -> ProbeRecords:
    """Return the per-image outcomes of one verified probe result file."""
    records = read_verified(path).records
    if not isinstance(records, ProbeRecords):
        raise UsageError(f"{path} holds no linear probe", fix="use episode_records for episodes")
    return records
