"""Every official board file: intact, of the suite's defaults, and pinned for good."""

from hashlib import sha256

import pytest
from support import drafts

from fsbench.core.specs import ProbeSpec
from leaderboard.official import BOARDS, find_official_board, load_official_boards
from leaderboard.record import BoardFile

PINNED = {
    "cdfsl-2": "1a3b4da34aaa022a18957d724b69bb6b1c01dd4067728e9ec63c2171233a606a",
    "transfer-2": "65d964dfce46fa2d565ecda2566bd1dd3948f00300a9625c73e8e7377245a195",
    "transfer-3": "178aa5cbeeede0d42ef90f92bafdb2f2aa90d0bb5bdeca9fded3ae1ae65d8a1b",
}
"""Of files that must never change: a change of the suite's defaults is a new version."""


def test_no_version_is_ever_changed() -> None:
    files = {path.stem: sha256(path.read_bytes()).hexdigest() for path in BOARDS.iterdir()}
    assert files == PINNED
    assert {file.title for file in load_official_boards()} == set(PINNED)


@pytest.mark.parametrize("file", load_official_boards(), ids=lambda file: file.title)
def test_a_version_is_whole(file: BoardFile) -> None:
    assert file.frozen == file.content_digest
    assert file.official
    assert file.date is not None


@pytest.mark.parametrize("name", ["cdfsl", "transfer"])
def test_the_newest_version_is_that_of_todays_defaults(name: str) -> None:
    """Where it is not, a default changed: write the draft under the next version."""
    assert drafts.draft(name) == find_official_board(name)


def test_each_column_is_what_the_command_line_evaluates() -> None:
    columns = [column for file in load_official_boards() for column in file.columns or ()]
    specs = {column: drafts.make_spec(column.name) for column in columns}
    assert [column for column, spec in specs.items() if spec.digest() != column.spec_digest] == []
    probes = {spec.split for spec in specs.values() if isinstance(spec, ProbeSpec)}
    assert probes == {"official"}
    assert {column.name.task.n_way for column in specs if column.name.task.head} == {5}
