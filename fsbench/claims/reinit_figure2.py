"""Decision tree over the experiments of the reinitialization study (Figure 2).

https://arxiv.org/abs/2109.00267, section 3.2. The tree is trained on Table 2: each of its 72 rows
is one example, labelled with its best method; features are training set size, number of classes,
network, augmentation and dropout. At most 4 levels and at least 7 examples per leaf, as in the
paper. The best method has the highest printed accuracy, in a tie the smaller standard error.

The paper prints no numbers beside the tree, so its statement about the predictions is checked, for
all networks but vgg16 together; the notes count each network alone.
"""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from fsbench.claims import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    choose_verdict,
    require_at_least,
)
from fsbench.core.progress import SILENT, Reporter
from pretrain.recipes.reinit_study import Table2Row, load_table2, table2_networks

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

CLAIM = Claim(
    source="reinitialization study, Figure 2 and section 3.2",
    statements={
        "tree": ClaimStatement(
            text="LW performs best overall except on vgg16, where FC performs better",
            condition="the printed table is complete; nothing is trained",
            rule="a group of networks: reproduced if the tree predicts the paper's method for more"
            " than half of its settings, direction only if it predicts it more often than any"
            " other",
        )
    },
)
ROWS = 72
"""Rows of Table 2."""
GROUPS = (("all but vgg16", ("scnn", "mobilenet", "resnet50"), "LW"), ("vgg16", ("vgg16",), "FC"))
"""Name, networks, and the method that is best there according to the paper."""
DEPTH, LEAF = 4, 7


class FittedTree(NamedTuple):
    """The tree, the names of its features, and its predictions for the rows of Table 2."""

    tree: "DecisionTreeClassifier"
    features: tuple[str, ...]
    predictions: tuple[str, ...]


def select_best_method(row: Table2Row) -> str:
    """Return the method of highest accuracy, in a tie of smallest standard error."""
    return max(row.accuracy, key=lambda method: (row.accuracy[method], -row.error[method]))


def build_features(row: Table2Row) -> dict[str, float]:
    """Return the features of a row; networks are indicators."""
    return {
        "train_images": row.train_images,
        "classes": row.classes,
        "augmentation": float(row.setting != "plain"),
        "dropout": float(row.setting == "augmentation+dropout"),
        **{name: float(row.network == name) for name in table2_networks()},
    }


def fit_tree() -> FittedTree:
    """Fit the tree to Table 2; a fixed order breaks ties between splits."""
    from sklearn.tree import DecisionTreeClassifier

    designs = [build_features(row) for row in load_table2()]
    values = [list(features.values()) for features in designs]
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    tree.fit(values, [select_best_method(row) for row in load_table2()])
    return FittedTree(tree, tuple(designs[0]), tuple(map(str, tree.predict(values))))


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Fit the tree and judge its predictions; the notes print the tree."""
    from sklearn.tree import export_text

    fitted = fit_tree()
    alone = (
        f"{n}: {_describe_counts(count_predictions((n,), fitted.predictions))}"
        for n in table2_networks()
    )
    tree = export_text(fitted.tree, feature_names=list(fitted.features), decimals=1)
    figures = [_judge_group(n, nets, m, fitted.predictions) for n, nets, m in GROUPS]
    return CLAIM.judge(
        settings,
        {"tree": ([require_at_least("rows of Table 2", [len(load_table2())], ROWS, "")], figures)},
        notes=(*alone, *tree.rstrip().splitlines()),
    )


def count_predictions(chosen: tuple[str, ...], predictions: tuple[str, ...]) -> dict[str, int]:
    """Count the predictions on these networks by method, most frequent first."""
    pairs = zip(load_table2(), predictions, strict=True)
    return dict(Counter(p for row, p in pairs if row.network in chosen).most_common())


def _describe_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{method} {n}/{sum(counts.values())}" for method, n in counts.items())


def _judge_group(
    name: str, chosen: tuple[str, ...], expected: str, predictions: tuple[str, ...]
) -> ClaimFigure:
    """Judge the predictions on a group of networks by the rule."""
    counts = count_predictions(chosen, predictions)
    most = all(counts.get(expected, 0) > n for method, n in counts.items() if method != expected)
    half = 2 * counts.get(expected, 0) > sum(counts.values())
    return ClaimFigure(
        what=f"{name}: predicted best",
        published=expected,
        ours=_describe_counts(counts),
        verdict=choose_verdict(half, most),
    )
