"""Which published figures stand beside a table: never those of another track than papers used."""

import pytest

from fsbench.core.tasks import ColumnId, Data, Track
from leaderboard.published import PublishedEntry, select_published

LINEAR = "isic:5w1s/linear@ibm 64px"


def select(name: str, *sources: str, data: Data | None = None) -> tuple[PublishedEntry, ...]:
    """What stands beside a table of one column. sources: pretraining data of its entries."""
    column = ColumnId.parse(name)
    return select_published(Track.of(column, data), [column], sources)


def tasks(rows: tuple[PublishedEntry, ...]) -> set[str]:
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
    assert select(name, "tinyimagenet", data=data) == ()


def test_one_adaptation_of_a_table_of_one_head_and_all_of_a_mixed_one() -> None:
    shots = (1, 5, 20, 50)
    linear = {f"isic:5w{k}s/linear" for k in shots}
    assert tasks(select(LINEAR)) == linear | {f"isic:5w{k}s/affine" for k in shots}
    own_tasks = {"tinyimagenet:in-domain"}
    assert tasks(select(LINEAR, data="official")) == linear | own_tasks
    held_out = select("dogs:probe 224px lr-held-out", data="official")
    assert tasks(held_out) == {"dogs:probe"} | own_tasks


def test_accuracies_in_a_domain_stand_beside_entries_of_that_domain() -> None:
    toys = "folder-x:5w1s/linear@ibm 64px"
    assert select(toys, "toy_source") == ()
    selected = select(toys, "toy_source", "pets")
    assert tasks(selected) == {
        f"pets:in-domain{k}" for k in ("", " augmented", " augmented dropout")
    }
    assert len(selected) == 24
