"""Shallow decision tree that predicts which entry wins a column.

The facts of a column are its data set, shots, adaptation, input size and variant (all columns of a
table have one protocol); its winner is the entry with the highest mean. The tree (scikit-learn)
has at most three levels. With few columns such a tree describes more than it predicts, so its
leave-one-out accuracy is reported as well.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fsbench.core.errors import UsageError
from fsbench.core.seeding import seed_for
from fsbench.core.specs import Frozen
from fsbench.core.tasks import ColumnId
from leaderboard.ranking.rank_intervals import DIGITS
from leaderboard.ranking.tiers import Ranking

FEWEST = 8
"""Minimum number of columns."""
DEPTH, LEAF = 3, 2
"""Maximum depth, and minimum number of columns in a leaf."""
ALL_IMAGES = 1_000_000
"""Shots of a probe, which trains on all images of a class: more than any episode has."""

ColumnFacts = Mapping[str, str | int]


class TreeBranch(Frozen):
    """A node of the tree: the most frequent winner of its columns, and a question unless a leaf."""

    winner: str
    cells: int
    wins: dict[str, int] = Field(description="columns won by each entry, most first")
    question: str | None = Field(None, description="e.g. 'shots <= 12' or 'data set is isic'")
    yes: "TreeBranch | None" = None
    no: "TreeBranch | None" = None


class WinnerTree(Frozen):
    """A shallow decision tree that predicts the winner of a column from its facts.

    The winner is the entry with the highest mean; `cells` counts columns.
    """

    root: TreeBranch
    cells: int
    explained: float = Field(description="share of the columns whose winner the tree predicts")
    left_out: float = Field(
        description="the same by leave-one-out: each column by a tree grown without it"
    )
    baseline: float = Field(description="share of the columns won by the most frequent winner")


class TreeQuestion(NamedTuple):
    """A feature of the tree: a number for every column, compared with a threshold."""

    fact: str
    value: str | None
    numbers: NDArray[np.float64]


def grow_winner_tree(ranking: Ranking) -> WinnerTree:
    """Grow the tree of a ranking. Raise UsageError if there are too few columns."""
    ranked = sorted((s for tier in ranking.tiers for s in tier), key=lambda s: s.name)
    if not ranked:
        raise UsageError("a tree of winners without ranked entries", fix="rank one or more")
    columns = ranking.columns
    best = [max(ranked, key=lambda s: round(s.scores[c].mean, DIGITS)) for c in columns]
    return grow_tree(list(map(read_column_facts, columns)), [entry.name for entry in best])


def read_column_facts(column: str) -> ColumnFacts:
    """Return the facts that a column's label states."""
    identity = ColumnId.parse(column)
    task = identity.task
    return {
        "data set": task.dataset,
        "adaptation": task.head or task.shape,
        "variant": " ".join(identity.variant) or "none",
        "shots": task.n_shot or ALL_IMAGES,
        "input size": identity.input_size,
    }


def grow_tree(cells: Sequence[ColumnFacts], winners: Sequence[str]) -> WinnerTree:
    """Return the tree for cells with these facts and winners.

    Raise UsageError for fewer than eight cells, and for cells with equal facts.
    """
    from sklearn.tree import DecisionTreeClassifier

    features = tuple(make_questions(cells))
    if len(cells) < FEWEST or not features:
        number = "one column" if len(cells) == 1 else f"{len(cells)} columns"
        raise UsageError(f"a tree of winners over {number}", fix=f"it needs {FEWEST} that differ")
    x, y = np.stack([question.numbers for question in features], axis=1), np.array(winners)
    seed = seed_for("winner tree") % 2**32

    def grow(rows: NDArray[np.int64]) -> Any:
        tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=seed)
        return tree.fit(x[rows], y[rows])

    rows = np.arange(len(cells))
    left_out = float(np.mean([grow(rows[rows != i]).predict(x[[i]]) == y[i] for i in rows]))
    tree = grow(rows)
    return WinnerTree(
        root=convert_node(tree.tree_, 0, features, x, y),
        cells=len(cells),
        explained=float(tree.score(x, y)),
        left_out=left_out,
        baseline=max(Counter(winners).values()) / len(winners),
    )


def make_questions(cells: Sequence[ColumnFacts]) -> Iterator[TreeQuestion]:
    """Yield the features: numbers as they are, other values one-hot, without constant ones."""
    for fact in sorted({name for cell in cells for name in cell}):
        facts_of_cells = [cell.get(fact, "none") for cell in cells]
        values = sorted(set(facts_of_cells), key=str)
        if len(values) > 1 and all(isinstance(value, int) for value in values):
            yield TreeQuestion(fact, None, np.array(facts_of_cells, np.float64))
        elif len(values) > 1:
            for value in values if len(values) > 2 else values[:1]:
                numbers = np.array([f == value for f in facts_of_cells], np.float64)
                yield TreeQuestion(fact, str(value), numbers)


def convert_node(
    tree: Any,
    node: int,
    features: Sequence[TreeQuestion],
    x: NDArray[np.float64],
    y: NDArray[np.str_],
) -> TreeBranch:
    """Convert a node of scikit-learn's tree and its subtree, for the columns that reach it."""
    wins = dict(sorted(Counter(y.tolist()).items(), key=lambda item: (-item[1], item[0])))
    here: dict[str, Any] = {"winner": next(iter(wins)), "cells": len(y), "wins": wins}
    if tree.children_left[node] < 0:
        return TreeBranch(**here)
    question, threshold = features[tree.feature[node]], tree.threshold[node]
    below = x[:, tree.feature[node]] <= threshold
    low = convert_node(tree, tree.children_left[node], features, x[below], y[below])
    high = convert_node(tree, tree.children_right[node], features, x[~below], y[~below])
    if question.value is not None:
        return TreeBranch(**here, question=f"{question.fact} is {question.value}", yes=high, no=low)
    largest = int(question.numbers[question.numbers <= threshold].max())
    return TreeBranch(**here, question=f"{question.fact} <= {largest}", yes=low, no=high)
