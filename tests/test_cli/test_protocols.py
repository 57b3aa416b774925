"""`fsbench ls protocols` and `fsbench protocols diff`: versions of the spec, told apart."""

import pytest
from support.cli import CommandLine

from fsbench.api.listing import protocol_fields, protocol_spec, protocol_specs
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import ColumnId, TaskId


def differing(cli: CommandLine, a: str, b: str) -> dict[str, tuple[object, object]]:
    rows = cli.json("protocols", "diff", a, b)
    return {row["field"]: (row["a"], row["b"]) for row in rows}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (
            "linear@ibm",
            "linear@startup",
            {"protocol": ("ibm", "startup"), "episode.pool": ("full", "labeled_80")},
        ),
        (
            "linear@ibm",
            "linear@ibm-disjoint",
            {"protocol": ("ibm", "ibm-disjoint"), "episode.track": ("classic", "disjoint")},
        ),
        ("linear@ibm", "linear@ibm:64px", {"image.input_size": (224, 64)}),
        ("affine@startup:64px", "affine@startup:64px", {}),
    ],
)
def test_exactly_the_fields_that_differ(a: str, b: str, expected: object, cli: CommandLine) -> None:
    assert differing(cli, a, b) == expected


def test_a_field_of_one_alone_is_null(cli: CommandLine) -> None:
    fields = differing(cli, "linear@ibm", "affine@ibm")
    assert fields["affine.lr"] == (None, 0.01)
    assert fields["adaptation"] == ("linear", "affine")
    assert not any(field.startswith("head.") for field in fields)


def test_people_read_a_table_and_how_many_fields_are_equal(cli: CommandLine) -> None:
    out = cli("protocols", "diff", "affine@ibm", "linear@startup:84px")
    assert "image.input_size" in out.out
    assert "84" in out.out
    total = len(protocol_fields(protocol_spec("affine@ibm")))
    assert f"8 fields differ, {total - 8} are equal" in out.err


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
