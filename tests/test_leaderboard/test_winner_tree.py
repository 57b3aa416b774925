"""The tree of winners on boards whose winners follow a known rule."""

from itertools import product

import numpy as np
import pytest
from support.pairs import contenders

from fsbench.core.errors import UsageError
from leaderboard.ranking.tiers import rank_entries
from leaderboard.ranking.winner_tree import (
    TreeBranch,
    WinnerTree,
    grow_tree,
    grow_winner_tree,
    read_column_facts,
)

CELLS = [
    f"{dataset}:5w{shots}s/linear@ibm 64px"
    for dataset, shots in product(("chestx", "eurosat", "isic"), (1, 5, 20, 50))
]


def rule(column: str) -> str:
    facts = read_column_facts(column)
    if facts["shots"] in {1, 5}:
        return "few"
    return "skin" if facts["data set"] == "isic" else "many"


def test_facts_of_a_column() -> None:
    assert read_column_facts("chestx:5w20s/affine@startup-disjoint 224px bn-train") == {
        "data set": "chestx",
        "adaptation": "affine",
        "variant": "bn-train",
        "shots": 20,
        "input size": 224,
    }
    probe = read_column_facts("folder-a.b:probe 64px")
    assert (probe["adaptation"], probe["variant"]) == ("probe", "none")
    assert probe["shots"] > 1000
    assert read_column_facts("eurosat:knn 64px #ab12ef")["variant"] == "#ab12ef"


def planted() -> WinnerTree:
    return grow_tree([read_column_facts(c) for c in CELLS], [rule(c) for c in CELLS])


def test_a_known_rule_is_found() -> None:
    tree = planted()
    assert (tree.explained, tree.cells, tree.baseline) == (1.0, 12, 0.5)
    assert tree.root.question == "shots <= 5"
    assert tree.root.wins == {"few": 6, "many": 4, "skin": 2}
    assert tree.root.yes == TreeBranch(winner="few", cells=6, wins={"few": 6})
    later = tree.root.no
    assert later is not None
    assert later.question == "data set is isic"
    assert later.yes == TreeBranch(winner="skin", cells=2, wins={"skin": 2})
    assert later.no == TreeBranch(winner="many", cells=4, wins={"many": 4})
    assert WinnerTree.model_validate_json(tree.model_dump_json()) == tree


def test_probes_have_more_shots_than_any_episode() -> None:
    columns = [*CELLS, "chestx:probe 64px", "eurosat:probe 64px", "isic:probe 64px"]
    winners = ["all" if "probe" in c else "few" for c in columns]
    root = grow_tree([read_column_facts(c) for c in columns], winners).root
    assert root.question in {"shots <= 50", "adaptation is linear"}
    assert root.yes is not None
    assert root.yes.wins == {"few": 12}


def test_chance_is_not_taken_for_a_rule() -> None:
    """Winners drawn at random: the tree fits some of them and foresees none."""
    rng = np.random.default_rng(0)
    trees = [
        grow_tree([read_column_facts(c) for c in CELLS], list(rng.choice(["a", "b"], 12)))
        for _ in range(12)
    ]
    assert np.mean([tree.explained for tree in trees]) > 0.7
    assert np.mean([tree.left_out for tree in trees]) < 0.6


def test_a_single_winner_needs_no_question() -> None:
    tree = grow_tree([read_column_facts(c) for c in CELLS], ["a"] * 12)
    assert tree.root == TreeBranch(winner="a", cells=12, wins={"a": 12})
    assert tree.left_out == tree.baseline == 1.0


def test_winners_of_a_board_have_the_highest_mean_whatever_the_order() -> None:
    board = {
        name: {c: [0.6 if rule(c) == name else 0.5] * 2 for c in CELLS}
        for name in ("few", "many", "skin")
    }
    tree = grow_winner_tree(rank_entries(contenders(board), CELLS))
    assert (
        tree
        == grow_winner_tree(rank_entries(contenders(dict(reversed(board.items()))), CELLS))
        == planted()
    )
    last_bit = {"b": [0.1, 0.2, 0.3], "a": [0.3, 0.2, 0.1]}
    ties = {name: dict.fromkeys(CELLS, values) for name, values in last_bit.items()}
    assert grow_winner_tree(rank_entries(contenders(ties), CELLS)).root.wins == {"a": 12}


def test_few_cells_or_cells_alike_are_refused() -> None:
    with pytest.raises(UsageError, match="over 7 columns"):
        grow_tree([read_column_facts(c) for c in CELLS[:7]], ["a"] * 7)
    with pytest.raises(UsageError, match="differ"):
        grow_tree([read_column_facts(CELLS[0])] * 9, ["a"] * 9)
    with pytest.raises(UsageError, match="without ranked entries"):
        grow_winner_tree(rank_entries({}, CELLS))
