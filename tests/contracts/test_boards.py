"""Every official board file: intact, of the suite's defaults, and pinned for good."""

from hashlib import sha256
from itertools import product

import pytest
from support import drafts

from fsbench.core.specs import ProbeSpec
from fsbench.data.catalog import all_facts
from leaderboard.official import BOARDS, find_official_board, load_official_boards
from leaderboard.record import BoardFile

PINNED = {
    "cdfsl-2": "1a3b4da34aaa022a18957d724b69bb6b1c01dd4067728e9ec63c2171233a606a",
    "transfer-2": "65d964dfce46fa2d565ecda2566bd1dd3948f00300a9625c73e8e7377245a195",
    "transfer-3": "178aa5cbeeede0d42ef90f92bafdb2f2aa90d0bb5bdeca9fded3ae1ae65d8a1b",
}
"""Of files that must never change: a change of the suite's defaults is a new version."""

COLUMNS = [(file.title, column) for file in load_official_boards() for column in file.columns or ()]
IMAGES = {
    "chestx": 25_848,
    "isic": 10_015,
    "eurosat": 27_000,
    "cropdisease": 43_456,
    "flowers102": 7_169,
    "cub200": 11_788,
    "aircraft": 6_667,
    "mit67": 6_700,
    "dogs": 20_580,
}
"""Images of the CD-FSL targets; train and test images of SEAL (CVPR 2023), Table 3."""


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
    specs = {column: drafts.make_spec(column.name) for _, column in COLUMNS}
    assert [column for column, spec in specs.items() if spec.digest() != column.spec_digest] == []
    probes = {spec.split for spec in specs.values() if isinstance(spec, ProbeSpec)}
    assert probes == {"official"}
    assert {column.name.task.n_way for column in specs if column.name.task.head} == {5}


def test_cdfsl_has_every_cell_that_can_be_drawn() -> None:
    heads = ("linear", "logistic", "affine", "soft_kmeans")
    cells = product(
        heads,
        ("ibm", "startup", "ibm-disjoint", "startup-disjoint"),
        (224, 64),
        (1, 5, 20, 50),
        ("chestx", "isic", "eurosat", "cropdisease"),
    )
    names = {
        f"{d}:5w{k}s/{head}@{protocol} {size}px{' transductive' * (head == 'soft_kmeans')}"
        for head, protocol, size, k, d in cells
        if not (d == "eurosat" and "disjoint" in protocol)
    }
    assert {str(column.name) for board, column in COLUMNS if board == "cdfsl-2"} == names
    assert len(names) == 112 * len(heads)


def test_transfer_is_the_linear_probe_of_five_sets() -> None:
    names = {
        f"{d}:probe {size}px{rule}"
        for d in ("flowers102", "cub200", "aircraft", "mit67", "dogs")
        for size in (224, 64)
        for rule in ("", " lr-held-out")
    }
    assert {str(column.name) for title, column in COLUMNS if title == "transfer-2"} == names
    held_out = {name.replace("lr-held-out", "held-out") for name in names if "lr" in name}
    assert {str(column.name) for title, column in COLUMNS if title == "transfer-3"} == held_out


def test_what_is_known_of_the_images() -> None:
    """No fingerprint is invented: numbers of images, and the hash of STARTUP's lists of ids."""
    for title, column in COLUMNS:
        dataset = column.name.task.dataset
        startup = str(column.name.task.protocol).startswith("startup")
        lists = all_facts()[dataset].startup
        hashes = (None, lists.labeled_80_hash) if startup and lists else (IMAGES[dataset], None)
        if title == "cdfsl-2" and not startup:
            hashes = (IMAGES[dataset], lists.full_hash)
        assert (column.fingerprint, column.images, column.images_hash) == (None, *hashes)
        assert all_facts()[dataset].n_images == IMAGES[dataset]
