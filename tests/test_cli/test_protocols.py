"""`fsbench ls protocols` and `fsbench protocols diff`: versions of the spec, told apart."""

import re

import pytest
from support.cli import CommandLine

from fsbench.api.listing import protocol_fields, protocol_spec, protocol_specs
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import ColumnId, TaskId


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (
            "ibm",
            "startup",
            {"protocol": ["ibm", "startup"], "episode.pool": ["full", "labeled_80"]},
        ),
        (
            "ibm",
            "ibm-disjoint",
            {"protocol": ["ibm", "ibm-disjoint"], "episode.track": ["classic", "disjoint"]},
        ),
        ("ibm", "ibm:64px", {"image.input_size": [224, 64]}),
        ("startup:64px", "startup:64px", {}),
    ],
)
def test_exactly_the_fields_that_differ(a: str, b: str, expected: object, cli: CommandLine) -> None:
    rows = cli.json("protocols", "diff", f"linear@{a}", f"linear@{b}")
    assert {row["field"]: [row["a"], row["b"]] for row in rows} == expected


def test_a_field_of_one_alone_is_null_and_equal_ones_are_counted(cli: CommandLine) -> None:
    rows = cli.json("protocols", "diff", "linear@ibm", "affine@ibm")
    fields = {row["field"]: (row["a"], row["b"]) for row in rows}
    assert fields["affine.lr"] == (None, 0.01)
    assert fields["adaptation"] == ("linear", "affine")
    assert not any(field.startswith("head.") for field in fields)
    shown = cli("protocols", "diff", "affine@ibm", "linear@startup:84px")
    assert re.search(r"image.input_size +224 +84", shown.out)
    total = len(protocol_fields(protocol_spec("affine@ibm")))
    assert f"8 fields differ, {total - 8} are equal" in shown.err


def test_every_variant_is_listed_and_has_a_digest_and_a_column_of_its_own(cli: CommandLine) -> None:
    rows = {row["protocol"]: row for row in cli.json("ls", "protocols")}
    assert rows.keys() == protocol_specs().keys()
    assert rows["linear@startup-disjoint"]["pool"] == "labeled_80"
    assert rows["linear@startup-disjoint"]["track"] == "disjoint"
    names = [name for protocol in rows for name in (protocol, f"{protocol}:64px")]
    specs = [protocol_spec(name) for name in names]
    assert len({spec.digest() for spec in specs}) == len(names)
    columns = {str(ColumnId.of(TaskId.of("x", s), s)) for s in specs}
    assert len(columns) == len(names)


def test_the_digests_of_published_specs_stay() -> None:
    """Of specs as they were before there were tracks: results on disk are found by these."""
    ibm, startup = protocol_spec("linear@ibm"), protocol_spec("linear@startup")
    assert isinstance(ibm, EpisodicSpec)
    assert isinstance(startup, EpisodicSpec)
    assert ibm.episode.digest()[:12] == "c93846678556"
    assert ibm.digest()[:12] == "fa0a8c5455f0"
    assert startup.digest()[:12] == "1855269bb9b2"
