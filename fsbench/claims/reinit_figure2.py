"""Decision tree over the experiments of the reinitialization study (Figure 2).

https://arxiv.org/abs/2109.00267, section 3.2. The tree is trained on Table 2: each of its 72 rows
is one example, labelled with its best method; features are training set size, number of classes,
network, augmentation and dropout. At most 4 levels and at least 7 examples per leaf, as in the
paper. The best method has the highest printed accuracy, in a tie the smaller standard error.

The paper prints no numbers beside the tree, so its statement about the predictions is checked, for
all networks but vgg16 together; the notes count each network alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from fsbench.claims import engine
from fsbench.claims.engine import ClaimFigure, Runs
from pretrain.recipes.reinit_study import Table2Row, load_table2, table2_networks

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

ROWS, DEPTH, LEAF = 72, 4, 7
GROUPS = (("all but vgg16", ("scnn", "mobilenet", "resnet50"), "LW"), ("vgg16", ("vgg16",), "FC"))
"""Name, networks, and the method that is best there according to the paper."""


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


@cache
def fit_tree() -> tuple["DecisionTreeClassifier", list[str], list[str]]:
    """Fit the tree to Table 2; return it with the names of its features and its predictions."""
    from sklearn.tree import DecisionTreeClassifier

    designs = [build_features(row) for row in load_table2()]
    values = [list(features.values()) for features in designs]
    # a fixed order breaks ties between splits
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    tree.fit(values, [select_best_method(row) for row in load_table2()])
    return tree, list(designs[0]), list(map(str, tree.predict(values)))


def count_predictions(networks: Sequence[str]) -> Counter[str]:
    pairs = zip(load_table2(), fit_tree()[2], strict=True)
    return Counter(prediction for row, prediction in pairs if row.network in networks)


def describe_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{method} {n}/{counts.total()}" for method, n in counts.most_common())


def judge_groups(runs: Runs) -> Iterator[ClaimFigure]:
    for name, networks, expected in GROUPS:
        counts = count_predictions(networks)
        most = all(counts[expected] > n for method, n in counts.items() if method != expected)
        half = 2 * counts[expected] > counts.total()
        ours = describe_counts(counts)
        yield engine.judge(f"{name}: predicted best", expected, ours, half, most)


def describe_tree() -> list[str]:
    from sklearn.tree import export_text

    alone = [f"{name}: {describe_counts(count_predictions([name]))}" for name in table2_networks()]
    tree, features, _ = fit_tree()
    text = export_text(tree, feature_names=features, decimals=1)
    return [*alone, *text.rstrip().splitlines()]


CLAIM = engine.Claim(
    source="reinitialization study, Figure 2 and section 3.2",
    statements={
        "tree": engine.ClaimStatement(
            text="LW performs best overall except on vgg16, where FC performs better",
            condition="the printed table is complete; nothing is trained",
            rule="a group of networks: reproduced if the tree predicts the paper's method for more"
            " than half of its settings, direction only if it predicts it more often than any"
            " other",
            conditions=lambda runs: [
                engine.require("rows of Table 2", "at least", ROWS, len(load_table2()), "")
            ],
            figures=judge_groups,
        )
    },
    notes=describe_tree,
)
