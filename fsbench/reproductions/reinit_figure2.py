"""Figure 2 of the reinitialization study: a decision tree over the design of the experiments.

Trained on Table 2: each of its 72 rows is one example, its best method the label, the training set
size, the number of classes, network, augmentation and dropout the features. At most 4 levels and at
least 7 examples a leaf, as in the paper. The best method is that of the highest printed accuracy;
in a tie, that of the smaller standard error. The paper prints no figure beside the drawn tree, so
its statement on the predictions is checked, which is one about all networks but vgg16 together; the
notes count each network alone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions._outcome import (
    OVERALL,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    judge_claim,
)
from pretrain.recipes.reinit_table2 import Row, networks, table2

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

SOURCE = "reinitialization study, Figure 2 and section 3.2"
CLAIM = "LW performs best overall except on vgg16, where FC performs better"
RULE = (
    "a group of networks: reproduced when the tree predicts the paper's method for more than half"
    " of its settings, direction only when for more than any other; " + OVERALL
)
SEEDS = 0
GROUPS = (("all but vgg16", ("scnn", "mobilenet", "resnet50"), "LW"), ("vgg16", ("vgg16",), "FC"))
"""Name, networks, and the method that the paper calls the best one there."""
DEPTH, LEAF = 4, 7


class FittedTree(NamedTuple):
    """The tree, the names of its features and what it predicts for the rows of Table 2."""

    tree: DecisionTreeClassifier
    features: tuple[str, ...]
    predictions: tuple[str, ...]


def best_method(row: Row) -> str:
    """The row's method of highest accuracy, of smallest standard error in a tie."""
    return max(row.accuracy, key=lambda method: (row.accuracy[method], -row.error[method]))


def design_features(row: Row) -> dict[str, float]:
    """Features of a row; networks as indicators."""
    return {
        "train_images": row.train_images,
        "classes": row.classes,
        "augmentation": float(row.setting != "plain"),
        "dropout": float(row.setting == "augmentation+dropout"),
        **{name: float(row.network == name) for name in networks()},
    }


def fit_tree() -> FittedTree:
    """The tree over Table 2; ties between splits are broken by a fixed order."""
    from sklearn.tree import DecisionTreeClassifier

    designs = [design_features(row) for row in table2()]
    values = [list(features.values()) for features in designs]
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    tree.fit(values, [best_method(row) for row in table2()])
    return FittedTree(tree, tuple(designs[0]), tuple(map(str, tree.predict(values))))


def run(seeds: int = SEEDS, report: Reporter = SILENT) -> ClaimOutcome:
    """What the tree predicts on each network, and the tree in words."""
    from sklearn.tree import export_text

    fitted = fit_tree()
    figures = tuple(_judge_group(n, nets, m, fitted.predictions) for n, nets, m in GROUPS)
    alone = (
        f"{n}: {_describe_counts(count_predictions((n,), fitted.predictions))}" for n in networks()
    )
    tree = export_text(fitted.tree, feature_names=list(fitted.features), decimals=1)
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=0,
        figures=figures,
        verdict=judge_claim(figures),
        notes=(*alone, *tree.rstrip().splitlines()),
    )


def count_predictions(chosen: tuple[str, ...], predictions: tuple[str, ...]) -> dict[str, int]:
    """How often each method is predicted on these networks, most frequent first."""
    pairs = zip(table2(), predictions, strict=True)
    return dict(Counter(p for row, p in pairs if row.network in chosen).most_common())


def _describe_counts(found: dict[str, int]) -> str:
    return ", ".join(f"{method} {n}/{sum(found.values())}" for method, n in found.items())


def _judge_group(
    name: str, chosen: tuple[str, ...], wanted: str, predictions: tuple[str, ...]
) -> ClaimFigure:
    """What is predicted on a group of networks beside what the paper says."""
    found = count_predictions(chosen, predictions)
    most = all(found.get(wanted, 0) > n for method, n in found.items() if method != wanted)
    half = 2 * found.get(wanted, 0) > sum(found.values())
    directed: ClaimVerdict = "direction only" if most else "not reproduced"
    return ClaimFigure(
        what=f"{name}: predicted best",
        published=wanted,
        ours=_describe_counts(found),
        verdict="reproduced" if half else directed,
    )
