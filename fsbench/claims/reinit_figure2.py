"""Decision tree over the experiments of the reinitialization study (Figure 2)."""

from collections import Counter
from functools import cache

from pandas import DataFrame
from sklearn.tree import DecisionTreeClassifier, export_text

from fsbench.claims import engine
from fsbench.claims.engine import Judgements, Runs
from pretrain.recipes.reinit_study import Table2Row, load_table2, table2_networks

ROWS, DEPTH, LEAF = 72, 4, 7
GROUPS = (("all but vgg16", ("scnn", "mobilenet", "resnet50"), "LW"), ("vgg16", ("vgg16",), "FC"))
"""Name, networks, and the method that is best there according to the paper."""


def select_best_method(row: Table2Row) -> str:
    """Return the method of highest accuracy, in a tie of smallest standard error."""
    return max(row.accuracy, key=lambda method: (row.accuracy[method], -row.error[method]))


@cache
def fit_tree() -> tuple[DecisionTreeClassifier, DataFrame]:
    """Return the tree and its features of every row; networks are indicators."""
    rows = DataFrame(load_table2())
    features = rows[["train_images", "classes"]].assign(
        augmentation=rows.setting != "plain",
        dropout=rows.setting == "augmentation+dropout",
        **{name: rows.network == name for name in table2_networks()},
    )
    # a fixed order breaks ties between splits
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    return tree.fit(features, list(map(select_best_method, load_table2()))), features


def count_predictions(*networks: str) -> Counter[str]:
    tree, features = fit_tree()
    return Counter(map(str, tree.predict(features[features[[*networks]].any(axis=1)])))


def describe_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{method} {n}/{counts.total()}" for method, n in counts.most_common())


def judge_groups(runs: Runs) -> Judgements:
    yield engine.require("rows of Table 2", "at least", ROWS, [len(load_table2())], "")
    for name, networks, expected in GROUPS:
        counts = count_predictions(*networks)
        is_most = all(counts[expected] > n for method, n in counts.items() if method != expected)
        is_half = 2 * counts[expected] > counts.total()
        ours = describe_counts(counts)
        yield engine.judge(f"{name}: predicted best", expected, ours, is_half, is_most)


def describe_tree() -> list[str]:
    tree, features = fit_tree()
    text = export_text(tree, feature_names=list(features), decimals=1)
    alone = [f"{name}: {describe_counts(count_predictions(name))}" for name in table2_networks()]
    return [*alone, *text.rstrip().splitlines()]


CLAIM = engine.Claim(
    engine.read_claim_card("reinit_figure2"), {"tree": judge_groups}, notes=describe_tree
)
