"""Which published figures stand beside a table: never those of another track than papers used."""

from typing import Any

import pytest
from support import fakes, site

from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import ColumnId, Data, Track
from leaderboard.columns import TrackColumns
from leaderboard.record import Column
from leaderboard.store import BoardEntry
from leaderboard.tables import select_published

SPEC = EpisodicSpec(n_episodes=2)
LINEAR = "isic:5w1s/linear@ibm 64px"


def table(name: str, data: Data | None = None) -> TrackColumns:
    column = Column(name=ColumnId.parse(name), spec_digest="a" * 64, fingerprint=None)
    return TrackColumns(Track.of(column.name, data), (column,))


def entry(*pretraining_data: str) -> BoardEntry:
    return site.entry("a", fakes.facts(pretraining_data=pretraining_data), 0.5, ["isic"], [SPEC])


def tasks(rows: tuple[Any, ...]) -> set[str]:
    return {cell.task for row in rows for cell in row.cells}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("isic:5w1s/soft_kmeans@ibm 64px transductive", None),
        ("isic:5w1s/soft_kmeans@ibm 64px transductive", "official"),
        ("isic:5w1s/linear@startup-disjoint 64px", None),
        ("isic:5w1s/linear@ibm-disjoint 64px", "official"),
        (LINEAR, "subset"),
    ],
)
def test_tracks_that_no_paper_measured_stand_alone(name: str, data: Data | None) -> None:
    assert select_published(table(name, data), [entry("tinyimagenet")]) == ()


def test_one_adaptation_of_an_official_board_and_all_of_a_free_one() -> None:
    shots = (1, 5, 20, 50)
    linear = {f"isic:5w{k}s/linear" for k in shots}
    assert tasks(select_published(table(LINEAR), [])) == linear | {
        f"isic:5w{k}s/affine" for k in shots
    }
    own_tasks = {"tinyimagenet:in-domain"}
    assert tasks(select_published(table(LINEAR, "official"), [])) == linear | own_tasks
    held_out = select_published(table("dogs:probe 224px lr-held-out", "official"), [])
    assert tasks(held_out) == {"dogs:probe"} | own_tasks


def test_accuracies_in_a_domain_stand_beside_entries_of_that_domain() -> None:
    toys = table("folder-x:5w1s/linear@ibm 64px")
    assert select_published(toys, [entry(), entry("toy_source")]) == ()
    selected = select_published(toys, [entry("toy_source"), entry("pets")])
    assert tasks(selected) == {
        f"pets:in-domain{k}" for k in ("", " augmented", " augmented dropout")
    }
    assert len(selected) == 24
