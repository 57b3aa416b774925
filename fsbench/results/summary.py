"""Summary of the records of a result, recomputed by every reader."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, Records
from fsbench.core.schema import ScoreRecord, Summary
from fsbench.core.specs import BALANCED, ProbeSpec, Spec

Details = dict[str, float | int | str]

Rule = Literal["test", "held_out", "held_out_epoch"]
CHOICE_RULES: dict[Rule, str] = {
    "test": "best learning rate and epoch, picked on the test images as SEAL reports",
    "held_out": "learning rate picked on a held-out part of train, last epoch",
    "held_out_epoch": "learning rate and epoch picked on a held-out part of train",
}
BESIDE: dict[Rule, str] = {"test": "best on test", "held_out": "lr held out"}
"""Ends the row of the other rule in a table."""


def rule_of(spec: ProbeSpec) -> Rule:
    return "held_out_epoch" if spec.epoch == "best" else spec.select


def find_rule_beside(spec: ProbeSpec) -> Rule:
    """Return the rule whose figure stands beside the score."""
    return "held_out" if spec.select == "test" else "test"


class Choice(NamedTuple):
    """A learning rate (row of the records), an epoch from 1, right (N,) of every test image."""

    row: int
    epoch: int
    right: NDArray[np.bool_]


def choose_rate(records: ProbeRecords, rule: Rule) -> Choice:
    """Return the best learning rate and epoch, the first of equally good ones."""
    if rule != "test" and records.held_out_curve is not None and records.chosen is not None:
        curve = records.held_out_curve
        row, epoch = divmod(int(curve.argmax()), curve.shape[1])
        return Choice(row, epoch + 1, records.chosen[row])
    if rule != "test" and records.held_out is not None:
        row = int(np.argmax(records.held_out))
        return Choice(row, records.curve.shape[1], records.last[row])
    row = int(np.argmax(records.best.mean(axis=1)))
    return Choice(row, int(np.argmax(records.curve[row])) + 1, records.best[row])


def describe_choices(records: ProbeRecords, spec: ProbeSpec, counts: Sequence[int]) -> Details:
    """Return last and best accuracy by learning rate, which is the score, and the other rule."""
    score, curve = choose_rate(records, spec.select), records.held_out_curve
    lr, epoch = float(records.lr[score.row]), score.epoch
    details: Details = {"score": CHOICE_RULES[rule_of(spec)], "lr": lr, "epoch": epoch}
    for rate, last, best in zip(records.lr, records.last, records.best, strict=True):
        details |= {f"last@{rate:g}": float(last.mean()), f"best@{rate:g}": float(best.mean())}
    held_out = records.held_out if curve is None else curve.max(axis=1)
    if held_out is None:
        return details
    rule = find_rule_beside(spec)
    choice = choose_rate(records, rule)
    beside = score_images(choice.right, counts, BALANCED in spec.variant)
    details |= {
        "beside": CHOICE_RULES[rule],
        "beside_mean": beside.mean,
        "beside_lr": float(records.lr[choice.row]),
        "beside_epoch": choice.epoch,
    }
    if beside.ci95 is not None:
        details["beside_ci95"] = beside.ci95
    tried = zip(records.lr, held_out, strict=True)
    return details | {f"held_out@{rate:g}": float(accuracy) for rate, accuracy in tried}


def scored_images(records: ProbeRecords | ImageRecords, spec: Spec) -> NDArray[np.bool_]:
    """Return right or wrong (N,) of each test image, by the rate and epoch that is the score."""
    if isinstance(records, ImageRecords):
        return records.correct
    return choose_rate(records, spec.select if isinstance(spec, ProbeSpec) else "test").right


def summarize(records: Records, spec: Spec, counts: Sequence[int] = ()) -> Summary:
    """Return all that follows from records; counts: test images of each class, if known."""
    if isinstance(records, EpisodeRecords):
        return summarize_episodes([records])[0]
    right, details, is_balanced = scored_images(records, spec), Details(), BALANCED in spec.variant
    if sum(counts) != right.size:
        counts = ()  # unknown, or edited
    if isinstance(records, ProbeRecords) and isinstance(spec, ProbeSpec):
        details = describe_choices(records, spec, counts)
    return Summary(
        score=score_images(right, counts, is_balanced),
        collapsed=int(is_one_class(right, counts)),
        details=details,
        other=score_images(right, counts, not is_balanced) if counts else None,
    )


def summarize_episodes(parts: Sequence[EpisodeRecords]) -> list[Summary]:
    """Return what follows from the episodes of each of several results."""
    scores = statistics.score_rows([part.accuracy for part in parts])
    accuracies = [part.dense_accuracy for part in parts]
    dense = iter(statistics.score_rows([values for values in accuracies if values is not None]))
    return [
        Summary(
            score=make_record(score),
            collapsed=np.count_nonzero(part.collapsed),
            non_finite=np.count_nonzero(~part.finite),
            dense=None if values is None else make_record(next(dense)),
        )
        for part, score, values in zip(parts, scores, accuracies, strict=True)
    ]


def score_images(right: NDArray[np.bool_], counts: Sequence[int], is_balanced: bool) -> ScoreRecord:
    """Return the score of test images (N,), in order of class with so many images each."""
    if is_balanced and counts:
        return make_record(statistics.balanced_score(right, counts))
    return make_record(statistics.score(right))


def is_one_class(right: NDArray[np.bool_], counts: Sequence[int]) -> bool:
    """Return whether all test images of one of several classes are right, and no other."""
    ends = np.cumsum(counts)
    shares = [right[end - n : end].mean() for end, n in zip(ends, counts, strict=True) if n]
    return len(shares) > 1 and max(shares) == sum(shares) == 1


def make_record(score: statistics.Score) -> ScoreRecord:
    return ScoreRecord(
        mean=score.mean, ci95=None if math.isnan(score.ci95) else score.ci95, n=score.n
    )
