"""Whom a table lists unranked, and why: on boards in memory, whole tables at once."""

from collections.abc import Callable
from typing import Any

import pytest
from support import fakes, site

from leaderboard.official import load_official_boards
from leaderboard.ranking.outcomes import VerifiedResult
from leaderboard.record import BoardFile
from leaderboard.store import BoardEntry
from leaderboard.tables import BoardTable, rank_tracks

Change = Callable[[VerifiedResult], VerifiedResult]


def changed(**fields: Any) -> Change:
    """Replace fields of a result; its outcomes stay."""
    return lambda cell: VerifiedResult(
        cell.path, cell.result.model_copy(update=fields), cell.outcomes
    )


def cut(n: int) -> Change:
    """A short result over the first n episodes."""

    def make(cell: VerifiedResult) -> VerifiedResult:
        outcomes, result = cell.outcomes, cell.result
        fewer = type(outcomes)(outcomes.index[:n], outcomes.right[:n], outcomes.draws, 75)
        score = result.score.model_copy(update={"n": n})
        short = result.model_copy(update={"score": score, "flags": ("short",)})
        return VerifiedResult(cell.path, short, fewer)

    return make


def edit(entry: BoardEntry, *changes: Change, first: bool = False, **file: Any) -> BoardEntry:
    """Change the results of an entry (first: only one), or fields of its file."""
    cells = list(entry.cells)
    for change in changes:
        cells[: 1 if first else None] = map(change, cells[: 1 if first else None])
    return BoardEntry(entry.file.model_copy(update=file), tuple(cells))


def board(*names: str) -> list[BoardEntry]:
    return list(site.source(names, n_episodes=120).entries)


def rank(entries: list[BoardEntry]) -> tuple[BoardTable, ...]:
    return rank_tracks(BoardFile(name="b"), entries)


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
    a, b, c = board("a", "b", "c")
    (table,) = rank([a, edit(b, change, first=True), c])
    assert list(reasons(table)) == ["b"]
    assert reasons(table)["b"].startswith(reason)
    (without,) = rank([a, c])
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
    a, b, control = board("a", "b", "control")
    facts = control.cells[0].result.backbone.model_copy(update={"random_init": 0})
    (table,) = rank([a, b, edit(control, changed(backbone=facts, **failures))])
    assert reasons(table) == {}
    failed = [text for text in table.flags["control"] if "episodes" in text]
    assert failed[:1] == [flag][: bool(flag)]
    assert not any("episodes" in text for text in table.flags["a"])


def test_a_tenth_of_the_episodes_may_fail() -> None:
    a, b = board("a", "b")
    (table,) = rank([a, edit(b, changed(collapsed=FAILED - 1, non_finite=FAILED - 1))])
    assert not table.ranking.unranked


def test_short_entries_are_unranked_also_where_all_are() -> None:
    a, b, c = board("a", "b", "c")
    entries = [edit(a, cut(60)), edit(b, cut(60)), edit(c, cut(2))]
    (table,) = rank(entries)
    assert reasons(table) == dict.fromkeys("abc", "short: not all episodes")
    (stated,) = rank_tracks(BoardFile(name="b", episodes={"linear": 60}), entries)
    assert reasons(stated) == {"c": "short: not all episodes"}
    assert {row.name for tier in stated.ranking.tiers for row in tier} == {"a", "b"}
    (other,) = rank_tracks(BoardFile(name="b", episodes={"affine": 60}), entries)
    assert not other.ranking.tiers


def test_a_version_has_the_episodes_of_its_specs() -> None:
    official = load_official_boards()[-1]
    with pytest.raises(ValueError, match="the episodes of its specs"):
        BoardFile.model_validate({**official.model_dump(mode="json"), "episodes": {"linear": 60}})


def test_one_row_per_weights() -> None:
    """Five copies of the leader change no tier; the earlier one stands, or the one with more."""
    a, b, *copies = board("a", "b", "copy", "later", "more")
    twin = a.cells[0].result.backbone
    copies = [edit(copy, changed(backbone=twin), submitted="2026-02-01") for copy in copies]
    (table,) = rank([a, b, *copies])
    assert reasons(table) == dict.fromkeys(
        ("copy", "later", "more"), "the same weights and features as a"
    )
    (without,) = rank([a, b])
    assert table.ranking.tiers == without.ranking.tiers
    early = edit(copies[0], submitted="2020-01-01")
    assert reasons(rank([a, b, early])[0]) == {"a": "the same weights and features as copy"}


def test_other_images_have_a_table_of_their_own() -> None:
    a, b, c = board("a", "b", "c")
    moved = fakes.official("eurosat").model_copy(update={"fingerprint": "9" * 64})
    main, other = rank([a, b, edit(c, changed(dataset=moved), first=True)])
    assert reasons(main) == {
        "c": f"{c.cells[0].result.column} is on other images or episodes than this table's"
    }
    assert [entry.name for entry in main.ranking.entries] == ["a", "b", "c"]
    assert [(e.name, e.tier) for e in other.ranking.entries] == [("c", 1)]
    assert len(other.ranking.columns) == 1
