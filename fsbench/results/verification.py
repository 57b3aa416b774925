"""Rules for one result and its records, and the reading of results that keep them."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.records import EpisodeRecords, ProbeRecords, columns
from fsbench.core.schema import ScoreRecord, Summary
from fsbench.core.specs import BALANCED, EpisodicSpec, Frozen, ProbeSpec
from fsbench.core.tasks import TaskPattern
from fsbench.results.entry import ENTRY_FILE, Entry, Loaded, read_entry
from fsbench.results.names import result_flags
from fsbench.results.summary import summarize, summarize_episodes
from fsbench.results.table import format_score

HELD_OUT = {"held_out", "held_out_curve", "chosen"}
"""Records of the choice on the held-out part, of which a spec has none, the first or the others."""
CHANCE = 1.5
"""Logits that are never finite are right in so many parts of chance at most."""
AGAIN = "evaluate the task again with --overwrite; results must not be edited"


@dataclass(frozen=True)
class Problem:
    """A broken rule: its code, what breaks it, a sentence that says what is wrong, and the fix."""

    code: str
    where: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}\n    fix: {self.fix}"


Check = TypeVar("Check", bound=Callable[..., Iterator[str]])


class RuleList(list[tuple[str, str, Callable[..., Iterator[str]]]]):
    """The rules of one kind of thing in order: code, fix, and check, which yields sentences."""

    def add(self, code: str, fix: str = AGAIN) -> Callable[[Check], Check]:
        """Return a decorator that makes a rule of a function."""

        def append(check: Check) -> Check:
            self.append((code, fix, check))
            return check

        return append

    def find_problems(self, where: object, *subject: object) -> Iterator[Problem]:
        """Yield a Problem for each breach. subject: what the checks take; where: its name."""
        for code, fix, check in self:
            for text in check(*subject):
                yield Problem(code, str(where), text[:600], fix)


OUTCOME_RULES = RuleList()
"""Rules for a result and its records by themselves."""


@OUTCOME_RULES.add("dataset")
def check_dataset(loaded: Loaded, _: Summary) -> Iterator[str]:
    """Check pool and groups against the protocol, and the test images of a probe."""
    data, spec, tests = loaded.result.dataset, loaded.result.spec, loaded.result.dataset.test_counts
    track = spec.episode.track if isinstance(spec, EpisodicSpec) else "classic"
    if isinstance(spec, EpisodicSpec) and data.pool != spec.episode.pool:
        yield f"images are the pool {data.pool}, protocol {spec.protocol} has {spec.episode.pool}"
    if (data.groups is not None) != (track == "disjoint"):
        groups = "no groups" if data.groups is None else "groups"
        yield f"it states {groups} of images on the track {track}"
    parts = zip(tests, data.class_counts, strict=False)
    fits = len(tests) == len(data.class_counts) and all(n <= most for n, most in parts)
    if (tests or BALANCED in spec.variant) and not (fits and sum(tests) == loaded.result.score.n):
        yield f"the counts of test images sum to {sum(tests)}, not to {loaded.result.score.n}"


@OUTCOME_RULES.add("contradiction")
def check_contradictions(loaded: Loaded, summary: Summary) -> Iterator[str]:
    """Check that episodes are sorted and without repeats, and do not contradict each other.

    A class has no more right or wrong queries than dense ones; a collapsed episode is right for one
    class; logits that are never finite predict no better than one class.
    """
    records = loaded.records
    if not isinstance(records, EpisodeRecords):
        return
    index, (n, n_way, n_query) = records.index, records.correct.shape
    if index[0] < 0 or (index[1:] <= index[:-1]).any():
        yield "episodes are unsorted, or one is there twice"
    if summary.collapsed:
        collapsed = records.right[records.collapsed]
        if (collapsed.sum(axis=1) != n_query).any() or (collapsed % n_query).any():
            yield "a collapsed episode is not right for exactly one class"
    if summary.non_finite == n > 1 and summary.score.mean > CHANCE / n_way:
        yield "no logits are finite, but more are right than by chance"
    if records.dense_correct is not None and records.dense_total is not None:
        others = records.dense_correct - records.right
        if (others < 0).any() or (others > records.dense_total - n_query).any():
            yield "fewer dense queries are right or wrong than queries of a class"


@OUTCOME_RULES.add("probe")
def check_probe(loaded: Loaded, _: Summary) -> Iterator[str]:
    """Check that rates and choices are those of the spec, and curves those of the outcomes."""
    records, spec = loaded.records, loaded.result.spec
    if not isinstance(records, ProbeRecords) or not isinstance(spec, ProbeSpec):
        return
    if tuple(records.lr) != spec.lrs:
        yield "other learning rates than those of the spec"
    choices = {"held_out_curve", "chosen"} if spec.epoch == "best" else {"held_out"}
    if {*columns(records)} & HELD_OUT != (choices if spec.held_out else set()):
        yield "other choices of the rate than those of the spec"
    values = [v for v in columns(records).values() if v.dtype != np.bool_]
    if not all(np.isfinite(v).all() for v in values):
        yield "NaN or infinity among the outcomes of the probe"
        return
    pairs = [(records.curve[:, -1], records.last), (records.curve.max(axis=1), records.best)]
    if records.held_out_curve is not None and records.chosen is not None:
        epochs = records.held_out_curve.argmax(axis=1)
        pairs.append((records.curve[np.arange(len(epochs)), epochs], records.chosen))
    if not all(np.allclose(c, right.mean(axis=1), rtol=0, atol=1e-6) for c, right in pairs):
        yield "the curve of accuracies differs from the outcomes"


@OUTCOME_RULES.add("flags")
def check_flags(loaded: Loaded, _: Summary) -> Iterator[str]:
    """Check that flags are facts of the data; only `limited` is taken from the result's word."""
    result = loaded.result
    index = loaded.records.index if isinstance(loaded.records, EpisodeRecords) else None
    expected = result_flags(result.dataset, result.spec, index, "limited" in result.flags)
    if result.flags != expected:
        says, needs = (", ".join(flags) or "none" for flags in (result.flags, expected))
        yield f"the flags are {says}, its data need {needs}"


@OUTCOME_RULES.add("score")
def check_summary(loaded: Loaded, summary: Summary) -> Iterator[str]:
    """Check that mean, interval, counts and details equal those that the records give."""
    for name, expected in summary:
        actual = getattr(loaded.result, name)
        if actual != expected and not is_close(actual, expected):
            says, gives = describe_value(actual), describe_value(expected)
            what = "" if name == "score" else f" of {name.replace('_', ' ')}"
            yield f"the file says {says}{what}, its outcomes give {gives}"


def describe_value(value: object) -> str:
    if isinstance(value, ScoreRecord):
        return f"{format_score(value)} % over {value.n:,}"
    return "other values" if isinstance(value, Frozen | dict) else str(value)


def is_close(a: object, b: object) -> bool:
    """Return whether nested records and mappings are equal up to 1e-9, the rounding of sums."""
    if isinstance(a, Frozen) and isinstance(b, Frozen):
        a, b = dict(a), dict(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_close(a[key], b[key]) for key in a)
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=0, abs_tol=1e-9)
    return a == b


def find_problems(results: Sequence[Loaded]) -> list[Problem]:
    """Return what is wrong with results. Raise UsageError for one without any outcome."""
    problems: list[Problem] = []
    parts = [c.records for c in results if isinstance(c.records, EpisodeRecords)]
    of_episodes = iter(summarize_episodes(parts))
    for loaded in results:
        result, is_episodic = loaded.result, isinstance(loaded.records, EpisodeRecords)
        facts = loaded.records, result.spec, result.dataset.test_counts
        summary = next(of_episodes) if is_episodic else summarize(*facts)
        problems += OUTCOME_RULES.find_problems(loaded, loaded, summary)
    return problems


def find_entries(path: Path) -> list[Path]:
    """Return the visible folders of entries at or below `path`, sorted. Raise UsageError."""
    folders = []
    for folder, names, files in os.walk(path):  # also while another process removes some
        names[:] = [name for name in names if not name.startswith(".")]
        if ENTRY_FILE in files:
            folders.append(Path(folder))
    if not folders:
        what = "holds no results" if path.exists() else "does not exist"
        raise UsageError(
            f"{path} {what}", fix="give the folder that `fsbench benchmark -o DIR` wrote"
        )
    return sorted(folders)


def read_verified(folder: Path) -> Entry:
    """Read an entry whose results keep every rule. Raise ValidationFailed naming what is wrong."""
    entry = read_entry(folder)
    require_right(*entry.loaded)
    return entry


def require_right(*loaded: Loaded) -> None:
    """Raise ValidationFailed naming everything wrong with these results."""
    if problems := find_problems(loaded):
        raise ValidationFailed("\n  ".join(map(str, problems)))


def read_loaded(path: Path) -> Iterator[Loaded]:
    """Yield all results at or below `path`, verified entry by entry."""
    return (loaded for folder in find_entries(path) for loaded in read_verified(folder).loaded)


def read_one_result(reference: str | Path) -> Loaded:
    """Return a verified result, named by a folder and a task or column as DIR:TASK.

    The task may leave out what only one spec in the folder can mean; of several seeds it is the
    first. Raises UsageError.
    """
    folder, text = str(reference), ""
    while not Path(folder).is_dir() and ":" in folder:
        folder, _, end = folder.rpartition(":")
        text = f"{end}:{text}" if text else end
    loaded = list(read_loaded(Path(folder)))
    named = [one for one in loaded if not text or str(one.result.column) == text]
    if not named:
        pattern = TaskPattern.parse(text)
        same = (one for one in loaded if one.result.dataset.name == pattern.dataset)
        named = [one for one in same if pattern.covers(one.result.task)]
    if len({(one.result.spec_digest, one.result.score.n) for one in named}) != 1:
        listed = dict.fromkeys(str(one.result.column) for one in named or loaded)
        raise UsageError(
            f"'{reference}' names {len(named)} results of {folder}",
            fix=f"name one as DIR:TASK; there are {', '.join(listed)[:500]}",
        )
    return named[0]
