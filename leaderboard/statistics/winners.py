"""When does which entry win: a shallow decision tree over what is known of the columns.

A column's facts are its data set, shots, adaptation, input size and variant (a track has one
protocol); its winner has the highest mean there. The tree (scikit-learn) asks at most three
questions. With few columns such a tree describes more than it predicts, so it says how often it
names the winner of a column that it was grown without.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.errors import UsageError
from fsbench.seeding import seed_for
from leaderboard.rank import Ranking
from leaderboard.statistics.ranks import DIGITS
from leaderboard.statistics.record import Branch, WinnerTree

FEWEST = 8
"""Cells below which no tree is grown."""
DEPTH, LEAF = 3, 2
"""Questions on a path at most, and cells that a leaf needs."""
ALL_IMAGES = 1_000_000
"""Shots of a probe, which trains on whole classes: more than any episode has."""

COLUMN = re.compile(
    r"(?P<dataset>[^:]+):(?P<shape>[^/@ ]+)(?:/(?P<adaptation>[^@ ]+))?(?:@\S+)?"
    r" (?P<size>\d+)px(?P<variant>.*)"
)
Facts = Mapping[str, str | int]


class Question(NamedTuple):
    """Answered for every cell by a number; yes where it is at most, or at least, the threshold."""

    fact: str
    value: str | None
    numbers: NDArray[np.float64]


def winner_tree(ranking: Ranking) -> WinnerTree:
    """Over the board's columns and its ranked entries. Raises UsageError for too few cells."""
    ranked = sorted((s for tier in ranking.tiers for s in tier), key=lambda s: s.name)
    if not ranked:
        raise UsageError("a tree of winners without ranked entries", fix="rank one or more")
    winners = [
        max(ranked, key=lambda s: round(s.scores[c].mean, DIGITS)).name for c in ranking.columns
    ]
    return grow([facts(column) for column in ranking.columns], winners)


def facts(column: str) -> Facts:
    """What a column's label says of it."""
    found = COLUMN.fullmatch(column)
    if found is None:
        return {"column": column}
    way, _, shots = found["shape"].removesuffix("s").partition("w")
    episodic = way.isdigit() and shots.isdigit()
    return {
        "data set": found["dataset"],
        "adaptation": found["adaptation"] or found["shape"],
        "variant": found["variant"].strip() or "none",
        "shots": int(shots) if episodic else ALL_IMAGES,
        "input size": int(found["size"]),
    }


def grow(cells: Sequence[Facts], winners: Sequence[str]) -> WinnerTree:
    """The tree for cells with these facts and winners. Raises UsageError below eight cells."""
    from sklearn.model_selection import LeaveOneOut, cross_val_score
    from sklearn.tree import DecisionTreeClassifier

    asked = tuple(questions(cells))
    if len(cells) < FEWEST or not asked:
        held = "one cell" if len(cells) == 1 else f"{len(cells)} cells"
        raise UsageError(f"a tree of winners over {held}", fix=f"it needs {FEWEST} that differ")
    x, y = np.stack([question.numbers for question in asked], axis=1), np.array(winners)
    seed = seed_for("winner tree") % 2**32
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=seed)
    left_out = float(cross_val_score(tree, x, y, cv=LeaveOneOut()).mean())
    tree.fit(x, y)
    return WinnerTree(
        root=branch(tree.tree_, 0, asked, x, y),
        cells=len(cells),
        explained=float(tree.score(x, y)),
        left_out=left_out,
        baseline=max(Counter(winners).values()) / len(winners),
    )


def questions(cells: Sequence[Facts]) -> Iterator[Question]:
    """Numbers as they are, each other value as yes or no; nothing on which all cells agree."""
    for fact in sorted({name for cell in cells for name in cell}):
        held = [cell.get(fact, "none") for cell in cells]
        values = sorted(set(held), key=str)
        if len(values) > 1 and all(isinstance(value, int) for value in values):
            yield Question(fact, None, np.array(held, np.float64))
        elif len(values) > 1:
            for value in values if len(values) > 2 else values[:1]:
                yield Question(fact, str(value), np.array([h == value for h in held], np.float64))


def branch(
    tree: Any,
    node: int,
    asked: Sequence[Question],
    x: NDArray[np.float64],
    y: NDArray[np.str_],
) -> Branch:
    """A node of scikit-learn's tree and all below it, from the cells that reach it."""
    wins = dict(sorted(Counter(y.tolist()).items(), key=lambda item: (-item[1], item[0])))
    here: dict[str, Any] = {"winner": next(iter(wins)), "cells": len(y), "wins": wins}
    if tree.children_left[node] < 0:
        return Branch(**here)
    question, threshold = asked[tree.feature[node]], tree.threshold[node]
    below = x[:, tree.feature[node]] <= threshold
    low = branch(tree, tree.children_left[node], asked, x[below], y[below])
    high = branch(tree, tree.children_right[node], asked, x[~below], y[~below])
    if question.value is not None:
        return Branch(**here, question=f"{question.fact} is {question.value}", yes=high, no=low)
    largest = int(question.numbers[question.numbers <= threshold].max())
    return Branch(**here, question=f"{question.fact} <= {largest}", yes=low, no=high)
