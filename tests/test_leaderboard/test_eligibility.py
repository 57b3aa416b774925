"""Whom a table lists unranked, and why: on boards in memory, whole tables at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import fakes, site

from fsbench.results.entry import Loaded
from leaderboard.record import BoardFile
from leaderboard.store import BoardEntry
from leaderboard.tables import EXTRA, BoardTable, rank_tracks

Change = Callable[[Loaded], Loaded]


def changed(**fields: Any) -> Change:
    """Replace fields of a result; its outcomes stay."""
    return lambda loaded: replace(loaded, result=loaded.result.model_copy(update=fields))


def cut(n: int) -> Change:
    """A short result over the first n episodes."""

    def make(loaded: Loaded) -> Loaded:
        score = loaded.result.score.model_copy(update={"n": n})
        short = loaded.result.model_copy(update={"score": score, "flags": ("short",)})
        return replace(loaded, result=short, records=loaded.records.take(np.arange(n)))

    return make


def edit(entry: BoardEntry, *changes: Change, first: bool = False) -> BoardEntry:
    """Change the results of an entry (first: only one)."""
    results = list(entry.loaded)
    for change in changes:
        results[: 1 if first else None] = map(change, results[: 1 if first else None])
    return site.pack(entry.name, results)


def board(names: str) -> list[BoardEntry]:
    return list(site.source(names, n_episodes=120).entries)


def rank(*entries: BoardEntry, **fields: Any) -> tuple[BoardTable, ...]:
    return rank_tracks(BoardFile(name="b", **fields), entries)


def reasons(table: BoardTable) -> dict[str, str]:
    return {entry.name: entry.reason for entry in table.ranking.unranked}


FAILED = 13
"""Of 120 episodes: more than a tenth."""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (cut(60), "short: not all episodes"),
        (changed(flags=("limited",)), "limited: not all episodes"),
        (changed(collapsed=FAILED), "one class for all queries in 13 of 120 episodes of "),
        (changed(non_finite=FAILED), "non-finite logits in 13 of 120 episodes of "),
    ],
)
def test_one_result_of_that_kind_unranks_its_entry_alone(change: Change, reason: str) -> None:
    a, b, c = board("abc")
    (table,), (without,) = rank(a, edit(b, change, first=True), c), rank(a, c)
    assert list(reasons(table)) == ["b"]
    assert reasons(table)["b"].startswith(reason)
    assert table.ranking.tiers == without.ranking.tiers


@pytest.mark.parametrize(
    ("failures", "flag"),
    [
        ({"collapsed": FAILED}, "one class for all queries in 10.8% of episodes"),
        ({"non_finite": 120}, "non-finite logits in 100.0% of episodes"),
        ({"collapsed": 60, "non_finite": 1}, "one class for all queries in 50.0% of episodes"),
        ({}, ""),
    ],
)
def test_a_random_control_stays_ranked_with_its_failures_beside(
    failures: dict[str, int], flag: str
) -> None:
    a, b, control = board("abc")
    facts = control.loaded[0].result.backbone.model_copy(update={"random_init": 0})
    (table,) = rank(a, b, edit(control, changed(backbone=facts, **failures)))
    assert reasons(table) == {}
    failed = [text for text in table.rows["c"].notes if "episodes" in text]
    assert failed[:1] == [flag][: bool(flag)]
    assert not any("episodes" in text for text in table.rows["a"].notes)


def test_a_tenth_of_the_episodes_may_fail() -> None:
    a, b = board("ab")
    (table,) = rank(a, edit(b, changed(collapsed=FAILED - 1, non_finite=FAILED - 1)))
    assert not table.ranking.unranked


def test_short_entries_are_unranked_also_where_all_are() -> None:
    a, b, c = board("abc")
    entries = [edit(a, cut(60)), edit(b, cut(60)), edit(c, cut(2))]
    (table,) = rank(*entries)
    assert reasons(table) == dict.fromkeys("abc", "short: not all episodes")
    (shorter,) = rank(*entries, episodes={"linear": 60})
    assert reasons(shorter) == {"c": "short: not all episodes"}
    assert {row.name for tier in shorter.ranking.tiers for row in tier} == {"a", "b"}
    (other,) = rank(*entries, episodes={"affine": 60})
    assert not other.ranking.tiers


def test_the_rows_of_first_images_stay_and_others_are_extra() -> None:
    a, b, c = board("abc")
    moved = fakes.official("eurosat").model_copy(update={"fingerprint": "9" * 64})
    main, other = rank(a, b, edit(c, changed(dataset=moved), first=True))
    assert reasons(main) == {
        "c": f"{c.loaded[0].result.column} is on other images or episodes than this table's"
    }
    assert [entry.name for entry in main.ranking.entries] == ["a", "b", "c"]
    assert reasons(other) == {"c": EXTRA}
    assert len(other.ranking.columns) == 1


def test_a_seed_that_fails_unranks_its_row() -> None:
    """Rows hold what an entry says, not the best part of it."""
    a, b = board("ab")
    twin = a.loaded[0].result.backbone.model_copy(update={"weights_hash": "f" * 64})
    second = edit(a, changed(backbone=twin))
    failed = edit(second, changed(collapsed=FAILED), first=True)
    reason = f"one class for all queries in 13 of 120 episodes of {failed.loaded[0].result.column}"
    for seed, expected in ((failed, {"a": f"{reason} (a seed 1)"}), (second, {})):
        (table,) = rank(site.pack("a", [*a.loaded, *seed.loaded]), b)
        assert reasons(table) == expected
    assert table.ranking.tiers[0][0].name == "a"
