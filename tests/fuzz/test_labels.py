"""Label files and split lists of the CD-FSL data sets: the same ids and labels, or a refusal."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from fuzz.cases import DAMAGE, QUICK, SIZES, Tally, damage
from fuzz.tables import HARMLESS, TABLES, Rows, Table, clean, harmless
from hypothesis import strategies as st

from fsbench.core.errors import DataError
from fsbench.data.base import TargetDataset

Fault = Callable[[Rows, str, Random], Rows]


def without(rows: Rows, key: str, random: Random) -> Rows:
    """A column that is needed is not there."""
    place = rows[0].index(key)
    return [[cell for i, cell in enumerate(row) if i != place] for row in rows]


def renamed(rows: Rows, key: str, random: Random) -> Rows:
    other = random.choice([key.upper() + "!", key + "s", "", "../" + key])
    return [[other if cell == key else cell for cell in rows[0]], *rows[1:]]


def column_twice(rows: Rows, key: str, random: Random) -> Rows:
    place = rows[0].index(key)
    return [[*row, row[place]] for row in rows]


def row_twice(rows: Rows, key: str, random: Random) -> Rows:
    return [*rows, list(random.choice(rows[1:]))]


def unknown(rows: Rows, key: str, random: Random) -> Rows:
    """A label that nothing knows, in a column that is not the key."""
    changed = [list(row) for row in rows]
    labels = ["Massx", "", "nan", "inf", "0.5", "2", "1.0.0", "\u202e", "Mass|", "-1"]
    random.choice(changed[1:])[1] = random.choice(labels)
    return changed


STRUCTURE: dict[str, Fault] = {
    "without": without,
    "renamed": renamed,
    "column_twice": column_twice,
    "nothing": lambda rows, key, random: [],
}
CONTENT: dict[str, Fault] = {"row_twice": row_twice, "unknown": unknown}
REFUSED = {
    "chestx": STRUCTURE | CONTENT,
    "isic": STRUCTURE | CONTENT,
    "isic lesions": STRUCTURE | {"row_twice": row_twice},
}


def labels(dataset: TargetDataset) -> dict[str, int]:
    return dict(zip(dataset.canonical_ids, dataset.labels.tolist(), strict=True))


@pytest.fixture(params=list(TABLES))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return TABLES[request.param](tmp_path)


@pytest.fixture
def faults(request: pytest.FixtureRequest, table: Table) -> dict[str, Fault]:
    """What the table must refuse. A list may repeat an id, which says nothing new."""
    name = request.node.callspec.params["table"]
    return REFUSED.get(name, STRUCTURE | {"header_alone": lambda rows, key, random: rows[:1]})


@SIZES
def test_the_same_labels_or_a_refusal(
    size: int, table: Table, faults: dict[str, Fault], tally: Tally
) -> None:
    table.write(clean(table.rows))
    first = table.load()

    def check(kinds: frozenset[str], fault: str, seed: int) -> None:
        random = Random(seed)
        rows = faults[fault](table.rows, table.key, random) if fault else table.rows
        if rows:
            table.write(harmless(rows, kinds, random))
        else:
            table.write(b"\xef\xbb\xbf" if "mark" in kinds else b"")
        named = "" if fault == "header_alone" else table.file.name
        outcome = tally.attempt(table.load, DataError, named)
        assert (outcome is None) == bool(fault), (fault, kinds)
        if outcome is not None:
            assert labels(outcome) == labels(first)
            assert outcome.images_hash == first.images_hash
            assert (outcome.groups and outcome.groups.hash) == (first.groups and first.groups.hash)

    kinds = st.frozensets(st.sampled_from(HARMLESS))
    tally.explore(share(size), check, kinds, st.sampled_from(["", "", *faults]),
                  st.integers(0, 2**32))  # fmt: skip


@SIZES
def test_damaged_tables(size: int, table: Table, tally: Tally) -> None:
    """Bytes more, less or other never give an image another label."""
    table.write(clean(table.rows))
    first, whole = table.load(), clean(table.rows)

    def check(how: str, place: int, more: bytes) -> None:
        table.write(damage(whole, how, place, more))
        outcome = tally.attempt(table.load, DataError)
        assert outcome is None or labels(outcome).items() <= labels(first).items()

    tally.explore(share(size), check, *DAMAGE)


def share(size: int) -> int:
    """Cases of each table: together they are `size` or more."""
    return max(QUICK, -(-size // len(TABLES)))
