"""Decision tree over the experiments of the reinitialization study (Figure 2)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from fsbench.claims import engine
from fsbench.claims.engine import ClaimFigure, ClaimRule, Runs
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
        "augmentation": row.setting != "plain",
        "dropout": row.setting == "augmentation+dropout",
        **{name: row.network == name for name in table2_networks()},
    }


@cache
def fit_tree() -> "DecisionTreeClassifier":
    from sklearn.tree import DecisionTreeClassifier

    # a fixed order breaks ties between splits
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0)
    rows = load_table2()
    values = [list(build_features(row).values()) for row in rows]
    return tree.fit(values, [select_best_method(row) for row in rows])


def count_predictions(networks: Sequence[str]) -> Counter[str]:
    rows = [build_features(row) for row in load_table2() if row.network in networks]
    return Counter(map(str, fit_tree().predict([list(row.values()) for row in rows])))


def describe_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{method} {n}/{counts.total()}" for method, n in counts.most_common())


def require_rows(runs: Runs) -> list[engine.ClaimCondition]:
    return [engine.require("rows of Table 2", "at least", ROWS, [len(load_table2())], "")]


def judge_groups(runs: Runs) -> Iterator[ClaimFigure]:
    for name, networks, expected in GROUPS:
        counts = count_predictions(networks)
        is_most = all(counts[expected] > n for method, n in counts.items() if method != expected)
        is_half = 2 * counts[expected] > counts.total()
        ours = describe_counts(counts)
        yield engine.judge(f"{name}: predicted best", expected, ours, is_half, is_most)


def describe_tree() -> list[str]:
    from sklearn.tree import export_text

    alone = [f"{name}: {describe_counts(count_predictions([name]))}" for name in table2_networks()]
    names = list(build_features(load_table2()[0]))
    text = export_text(fit_tree(), feature_names=names, decimals=1)
    return [*alone, *text.rstrip().splitlines()]


CLAIM = engine.Claim(
    engine.read_claim_card("reinit_figure2"),
    {"tree": ClaimRule(require_rows, judge_groups)},
    notes=describe_tree,
)
