"""Label files and split lists of the CD-FSL data sets: the same ids and labels, or a refusal."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from fuzz.cases import QUICK, SIZES, Tally
from fuzz.tables import HARMLESS, TABLES, Rows, Table, clean, harmless
from hypothesis import strategies as st

from fsbench.cli.main import run
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


def nothing(rows: Rows, key: str, random: Random) -> Rows:
    return []


def header_alone(rows: Rows, key: str, random: Random) -> Rows:
    return rows[:1]


def row_twice(rows: Rows, key: str, random: Random) -> Rows:
    again = list(random.choice(rows[1:]))
    return [*rows, again]


def unknown(rows: Rows, key: str, random: Random) -> Rows:
    """A label that nothing knows, in a column that is not the key."""
    changed = [list(row) for row in rows]
    row = random.choice(changed[1:])
    row[1] = random.choice(
        ["Massx", "", "nan", "inf", "0.5", "2", "1.0.0", "\u202e", "Mass|", "-1"]
    )
    return changed


STRUCTURE: dict[str, Fault] = {f.__name__: f for f in (without, renamed, column_twice, nothing)}
CONTENT: dict[str, Fault] = {f.__name__: f for f in (row_twice, unknown)}
REFUSED = {
    "chestx": STRUCTURE | CONTENT,
    "isic": STRUCTURE | CONTENT,
    "isic lesions": STRUCTURE | {"row_twice": row_twice},
}


def labels(dataset: TargetDataset) -> dict[str, int]:
    return dict(zip(dataset.canonical_ids, dataset.labels.tolist(), strict=True))


def groups(dataset: TargetDataset) -> str | None:
    return dataset.groups.hash if dataset.groups else None


@pytest.fixture(params=list(TABLES))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return TABLES[request.param](tmp_path)


@pytest.fixture
def faults(request: pytest.FixtureRequest, table: Table) -> dict[str, Fault]:
    """What the table must refuse. A list may repeat an id, which says nothing new."""
    name = request.node.callspec.params["table"]
    return REFUSED.get(name, STRUCTURE | {"header_alone": header_alone})


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
            assert groups(outcome) == groups(first)

    kinds = st.frozensets(st.sampled_from(HARMLESS))
    tally.explore(share(size), check, kinds, st.sampled_from(["", "", *faults]),
                  st.integers(0, 2**32))  # fmt: skip


@SIZES
def test_damaged_tables(size: int, table: Table, tally: Tally) -> None:
    """A byte more, less or other never gives an image another label."""
    table.write(clean(table.rows))
    first, whole = table.load(), clean(table.rows)

    def check(how: str, place: int, byte: int) -> None:
        at = place % len(whole)
        table.write(
            {
                "cut": whole[:at],
                "changed": whole[:at] + bytes([byte]) + whole[at + 1 :],
                "more": whole[:at] + bytes([byte]) + whole[at:],
                "less": whole[:at] + whole[at + 1 :],
                "wide": whole.decode().encode("utf-16"),
            }[how]
        )
        outcome = tally.attempt(table.load, DataError)
        assert outcome is None or labels(outcome).items() <= labels(first).items()

    hows = st.sampled_from(["cut", "changed", "more", "less", "wide"])
    tally.explore(share(size), check, hows, st.integers(0, 2**16), st.integers(0, 255))


def share(size: int) -> int:
    """Cases of each table: together they are `size` or more."""
    return max(QUICK, -(-size // len(TABLES)))


@pytest.mark.parametrize(
    "data", [b"", b"file,label\na,Mass\n", "a\n".encode("utf-16"), b"\xff\xfe"]
)
def test_the_command_line_names_the_table(
    data: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = TABLES["chestx"](tmp_path)
    table.write(data)
    with pytest.raises(SystemExit) as stop:
        run(["episodic", "-m", "fsbench/toy_resnet", "--random-init", "0", "-t", "chestx:2w1s",
             "--data", str(tmp_path), "-o", str(tmp_path / "out")])  # fmt: skip
    shown = capfd.readouterr().err
    assert stop.value.code == 3, shown
    assert "Data_Entry_2017.csv" in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "out").exists()
