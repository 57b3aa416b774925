"""Numbers stay: what was measured and shown is equal to tests/golden/numbers.json.

A commit that must change a number changes nothing else, says why, and writes the file anew with
`PYTHONPATH=tests python -m support.snapshot --write`. Digests of recipes are in test_recipes.py.
"""

import json
from typing import Any

import numpy as np
import pytest
from support import snapshot
from support.snapshot import ColumnOutcomes, Difference, compare, digest_outcomes, find_differences

from pretrain.recipes.registry import recipe_names

SHOWN = 40
"""Differences that a failure lists."""


@pytest.mark.parametrize("section", snapshot.SECTIONS)
def test_numbers_are_those_of_the_golden_file(section: str) -> None:
    assert set(snapshot.read_golden()) == set(snapshot.SECTIONS)
    differences = find_differences(section)
    listed = "\n".join(map(str, differences[:SHOWN]))
    assert not differences, f"{len(differences)} numbers changed:\n{listed}"


def test_every_recipe_has_a_recorded_digest() -> None:
    recorded = json.loads((snapshot.GOLDEN.parent / "recipe_digests.json").read_text("utf8"))
    assert set(recorded) == set(recipe_names())


CORRECT, DENSE = np.arange(30).reshape(3, 2, 5) % 2 == 0, np.arange(6).reshape(3, 2)


def outcomes(**changes: Any) -> ColumnOutcomes:
    values = {
        "column": "eurosat:2w1s/linear@ibm 32px",
        "spec_digest": "a" * 64,
        "fingerprint": "b" * 64,
        "index": np.array([0, 1, 4]),
        "correct": CORRECT,
        "dense_correct": DENSE,
    }
    return ColumnOutcomes(**values | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"correct": CORRECT ^ (np.arange(30).reshape(3, 2, 5) == 29)},
        {"correct": CORRECT.reshape(3, 5, 2)},
        {"index": np.array([0, 1, 5])},
        {"dense_correct": DENSE + 1},
        {"dense_correct": None},
        {"column": "eurosat:2w1s/linear@ibm 64px"},
        {"spec_digest": "c" * 64},
        {"fingerprint": "c" * 64},
    ],
)
def test_one_other_outcome_is_another_digest(changes: dict[str, Any]) -> None:
    other = outcomes(column="isic:2w1s/linear@ibm 32px")
    assert digest_outcomes([outcomes(**changes), other]) != digest_outcomes([outcomes(), other])


def test_the_order_of_results_and_episodes_is_no_difference() -> None:
    one, other = outcomes(), outcomes(column="isic:2w1s/linear@ibm 32px")
    turned = one._replace(
        index=one.index[::-1], correct=one.correct[::-1], dense_correct=one.dense_correct[::-1]
    )
    assert digest_outcomes([one, other]) == digest_outcomes([other, turned])
    assert digest_outcomes([one])["results"] == 1


def test_a_difference_says_where_what_was_and_what_is() -> None:
    was = {"board": {"row": {"tier": 1, "p": 0.25, "columns": [0.5, None]}, "gone": {"tier": 2}}}
    now = {"board": {"row": {"tier": 2, "p": 0.25 + 1e-12, "columns": [0.5, 0.1]}}}
    assert [str(d) for d in compare(was, now)] == [
        "board > gone: was {'tier': 2}, is 'absent'",
        "board > row > columns > 1: was None, is 0.1",
        "board > row > tier: was 1, is 2",
    ]
    assert list(compare(0.25, 0.25001, ("p",))) == [Difference(("p",), 0.25, 0.25001)]
    assert list(compare(1, True)) == [Difference((), 1, True)]
    assert list(compare(1e-13, 2e-13))
    assert list(compare([1.0], [1.0, 2.0]))


def test_the_file_is_written_as_it_is_read() -> None:
    stored = snapshot.GOLDEN.read_text(encoding="utf8")
    assert snapshot.write_json(json.loads(stored)) + "\n" == stored
